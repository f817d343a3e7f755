"""Values are judged as pydantic in strict mode judges JSON, all faults at once, and no value is repeated."""

import json
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pointsman import Event, Machine, NonBlank, State, Tasks, note, optional
from pointsman.kernel import schema
from pointsman.kernel.annotations import schema_of


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    model_config = ConfigDict(extra="forbid")
    street: Annotated[str, Field(min_length=2)]
    number: int | None = None


class Node(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: str
    below: "list[Node]" = []


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    name: str


TYPES: list[Any] = [
    str,
    int,
    float,
    bool,
    None,
    str | None,
    int | str,
    list[int],
    list[str | None],
    dict[str, int],
    dict[str, list[bool]],
    tuple[int, str],
    Literal["a", None],
    Colour,
    NonBlank,
    Annotated[str, Field(min_length=1, max_length=3)],
    Annotated[str, Field(pattern=r"^[a-c]+$")],
    Annotated[int, Field(ge=0, lt=10)],
    Annotated[int, Field(multiple_of=3)],
    Annotated[float, Field(gt=0, le=1.5)],
    Annotated[list[int], Field(min_length=1, max_length=2)],
    Address,
    Address | None,
    list[Address],
    Node,
    Cat | Dog,
    Annotated[Cat | Dog, Field(discriminator="kind")],
    dict[str, Address],
    Any,
]

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.sampled_from([0.0, 1.0, 0.5, 1.5, 2.0, -0.5])
    | st.sampled_from(["", " ", "a", "b", "abc", "abcd", "red", "blue", "cat", "dog", "5", "\t\n"])
)
KEYS = st.sampled_from(["street", "number", "label", "below", "kind", "lives", "name", "other"])
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "street": LEAVES,
        "number": LEAVES,
        "label": LEAVES,
        "kind": st.sampled_from(["cat", "dog"]),
        "lives": LEAVES,
        "name": LEAVES,
    },
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@pytest.mark.parametrize("annotation", TYPES, ids=str)
@given(value=VALUES | LIKELY | st.lists(LIKELY, max_size=2))
def test_a_value_fits_exactly_when_strict_pydantic_takes_its_json(annotation: Any, value: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    try:
        adapter.validate_json(json.dumps(value), strict=True)
        taken = True
    except ValidationError:
        taken = False
    assert (schema.faults(schema_of(annotation), value, "it") == []) is taken


@pytest.mark.parametrize("annotation", TYPES, ids=str)
def test_every_common_type_is_within_the_subset(annotation: Any) -> None:
    assert list(schema.unsupported(schema_of(annotation))) == []


@pytest.mark.parametrize("annotation", [datetime, date, UUID, Decimal, set[str], frozenset[int], tuple[int, ...]], ids=str)
def test_formats_and_sets_are_within_the_subset(annotation: Any) -> None:
    assert list(schema.unsupported(schema_of(annotation))) == []


@pytest.mark.parametrize(
    ("form", "unfit"),
    [
        ({"type": "string", "format": "binary"}, "format 'binary'"),
        ({"type": "array", "contains": {}}, "keyword 'contains'"),
        ({"type": "spam"}, "type 'spam'"),
        ({"type": "string", "pattern": "("}, "a pattern that Python's re does not take"),
        ({"$defs": {"x": {"not": {}}}, "$ref": "#/$defs/x"}, "keyword 'not'"),
        ({"type": "string", "minimum": 3}, "keyword 'minimum'"),
        ({"allOf": [{"type": "string"}]}, "keyword 'allOf'"),
    ],
)
def test_what_would_not_be_judged_is_named(form: dict[str, Any], unfit: str) -> None:
    assert unfit in list(schema.unsupported(form))


@pytest.mark.parametrize("text", ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.123456+14:00", "1969-12-31T23:59:59-08:00"])
def test_a_time_with_its_offset_fits(text: str) -> None:
    assert schema.faults(schema_of(datetime), text, "at") == []


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31T12:00:00z",
        "2026-01-31t12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-01-31T25:00:00Z",
        "2026-01-31T12:00Z",
        "2026-01-31",
        "10000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-01-31T12:00:00+25:00",
        "٢٠٢٦-01-31T12:00:00Z",
        "",
    ],
)
def test_any_other_time_does_not(text: str) -> None:
    assert schema.faults(schema_of(datetime), text, "at") == [("at", "must be a time with its offset, as in 2026-01-31T12:00:00Z")]


ID = "01234567-89ab-7def-8123-456789abcdef"


@pytest.mark.parametrize("text", [f"{{{ID}}}", f"urn:uuid:{ID}", ID.replace("-", ""), ""])
def test_a_uuid_has_one_form(text: str) -> None:
    assert len(schema.faults(schema_of(UUID), text, "id")) == 1
    assert schema.faults(schema_of(UUID), ID.upper(), "id") == []


def test_all_faults_of_a_nested_value_come_at_once_with_their_paths() -> None:
    value = [{"street": "x", "number": "7"}, {"number": True, "zip": 1}, 5]
    assert schema.faults(schema_of(list[Address]), value, "to") == [
        ("to[0].street", "must have at least 2 characters"),
        ("to[0].number", "must be a whole number or null"),
        ("to[1].street", "is required"),
        ("to[1].number", "must be a whole number or null"),
        ("to[1].zip", "is not a known member"),
        ("to[2]", "must be an object"),
    ]


def test_the_one_alternative_of_the_values_type_tells_what_is_wrong() -> None:
    found = schema.faults(schema_of(Address | None), {"street": "x"}, "to")
    assert found == [("to.street", "must have at least 2 characters")]


@settings(deadline=None)
@given(st.text(min_size=6))
def test_no_message_repeats_the_value(secret: str) -> None:
    value = {"street": 5, secret: secret, "number": secret}
    for _, message in schema.faults(schema_of(Address), value, "to"):
        assert message in ("must be text", "is required", "is not a known member", "must be a whole number or null")


def test_an_option_is_of_its_own_type() -> None:
    form = schema_of(Literal["a", 1, None])
    assert [schema.faults(form, value, "it") for value in ("a", 1, None)] == [[], [], []]
    assert schema.faults(form, True, "it") == schema.faults(form, 1.0, "it") == [("it", 'must be one of "a", 1, null')]


def test_a_set_holds_an_item_once() -> None:
    form = schema_of(set[int])
    assert schema.faults(form, [1, 2], "it") == []
    assert schema.faults(form, [1, 2, 1], "it") == [("it", "must not hold the same item twice")]


# ── proposals and creation ───────────────────────────────────────────────────────────────────────────────────────

TASKS = Tasks.definition


def test_arguments_are_judged_and_completed() -> None:
    assert schema.arguments(TASKS, TASKS.event["request_approval"], {"draft": "x"}) == ({"draft": "x"}, [])
    assert schema.arguments(TASKS, TASKS.event["reject"], {}) == ({"review_note": ""}, [])
    assert schema.arguments(TASKS, TASKS.event["reject"], {"review_note": None}) == ({"review_note": ""}, [])
    assert schema.arguments(TASKS, TASKS.event["approve"], {"review_note": "fine"}) == ({"review_note": "fine"}, [])
    assert schema.arguments(TASKS, TASKS.event["claim"], {}) == ({}, [])


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ({}, [("args.draft", "is required")]),
        ({"draft": None}, [("args.draft", "must not be null")]),
        ({"draft": 5}, [("args.draft", "must be text or null")]),
        ({"draft": True, "state": "done"}, [("args.state", "is not an argument of this event"), ("args.draft", "must be text or null")]),
        ({"draft": "x", "a b": 1}, [("args.(key)", "is not an argument of this event")]),
        ({"draft": "\0"}, [("args.draft", "must not contain NUL")]),
        ([], [("args", "must be an object")]),
        (None, [("args", "must be an object")]),
    ],
)
def test_arguments_that_do_not_fit(args: Any, found: list[tuple[str, str]]) -> None:
    assert schema.arguments(TASKS, TASKS.event["request_approval"], args)[1] == found


def test_a_creator_gives_only_what_no_event_sets() -> None:
    complete = {"title": "a", "brief": "b", "draft": None, "review_note": None}
    assert schema.initial_fields(TASKS, {"title": "a", "brief": "b"}) == (complete, [])
    _, found = schema.initial_fields(TASKS, {"title": " ", "draft": "pre-written", "review_note": "", "owner": "me"})
    assert found == [
        ("fields.draft", "is set by an event, so it cannot be given at creation"),
        ("fields.review_note", "is set by an event, so it cannot be given at creation"),
        ("fields.owner", "is not a field that can be given"),
        ("fields.title", "must not be blank"),
        ("fields.brief", "is required"),
    ]


class Plain(Machine, name="plain"):
    topic: str | None
    labels: list[str] = []
    remark: str | None = note()
    new = State(initial=True)
    end = State(final=True, outcome="failed")
    stop = Event(new >> end, sets=optional("labels", ["stopped"]))


def test_a_note_that_no_event_sets_may_be_given() -> None:
    assert schema.initial_fields(Plain.definition, {"topic": None, "remark": "by hand"})[1] == []
    assert schema.initial_fields(Plain.definition, {"topic": None, "remark": 5})[1] == [("fields.remark", "must be text or null")]


def test_a_required_field_may_be_null_when_its_type_says_so() -> None:
    assert schema.initial_fields(Plain.definition, {})[1] == [("fields.topic", "is required")]


def test_defaults_are_not_shared_between_tasks() -> None:
    one, _ = schema.initial_fields(Plain.definition, {"topic": None})
    other, _ = schema.initial_fields(Plain.definition, {"topic": None})
    assert one["labels"] == other["labels"] == []
    assert one["labels"] is not other["labels"]
    stop = Plain.definition.event["stop"]
    first, second = (schema.arguments(Plain.definition, stop, {})[0]["labels"] for _ in range(2))
    assert first == second == ["stopped"]
    assert first is not second
