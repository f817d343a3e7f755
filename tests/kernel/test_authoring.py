"""A class body closes into one frozen definition and the functions it names."""

import re
import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from types import ModuleType
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import BaseModel, Field

from pointsman import Event, Machine, NonBlank, State, Tasks, Verdict, check, computed, contributor, note, optional, owner, result, role
from pointsman.kernel import schema
from pointsman.kernel.definition import Check, Function, Setting
from pointsman.kernel.exported import export, restore
from pointsman.kernel.functions import guard
from pointsman.kernel.marks import always
from pointsman.types import hours, minutes


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    number: str
    amount: float


@check(version=2, timeout=minutes(5))
def is_small(order: Order, limit: float | None) -> Verdict:
    return Verdict(limit is None or order.amount < limit, f"{type(order).__name__} of {order.amount}", {"amount": order.amount})


@check
def is_red(colour: Colour) -> Verdict:
    return Verdict(colour is Colour.RED)


def due_soon(due: datetime | None) -> bool:
    return due is not None and due < datetime(2030, 1, 1, tzinfo=UTC)


def brightest(colour: Colour) -> Colour:
    return colour


def misdescribed(colour: Colour) -> int:
    return colour.value


def is_morning(now: int) -> bool:
    return now % hours(24) < hours(12)


def unannotated(colour, due) -> Verdict:
    return Verdict(True)


def in_the_morning_by_anyone(principal: Any, now: int) -> Verdict:
    return Verdict(now > 0, "the clock stands still")


class Refunds(Machine, name="refunds"):
    """Money goes back.

    But not too much of it.
    """

    version = 3
    LIMIT: ClassVar[int] = 100
    _private = 5

    order: Order
    colour: Colour = Colour.RED
    due: datetime | None = None
    limit: Annotated[float, Field(gt=0)] | None = 100
    remark: str = note("none")
    receipt: Order | None = result()

    new = State(initial=True)
    mine = State(lease=minutes(5), on_lapse=new)
    paid = State(final=True)
    lost = State(final=True, outcome="failed")
    gone = State(final=True, outcome="cancelled")

    working = new | mine
    lead = role("lead") & ~contributor

    small = is_small
    red = is_red
    open_minded = check(unannotated, version=4)

    @check(eager=True)
    @staticmethod
    def numbered(order: Order) -> Verdict:
        return Verdict(order.number.isdigit(), "a number has digits only")

    soon = computed(due_soon, version=2)
    bright = computed(brightest)

    take = Event(new >> mine, acquires=True, when=(is_morning, guard(in_the_morning_by_anyone, version=2)))
    pay = Event(mine >> paid, by=owner | lead, sets=("receipt", optional("remark", "paid")), requires=(small, numbered), otherwise=new)
    lose = Event(working >> lost, by=lead)
    leave = Event(~(mine | lost) >> gone)

    proves = (always(paid, take),)


REFUNDS = Refunds.definition


def test_the_definition_says_what_the_class_says() -> None:
    assert (REFUNDS.name, REFUNDS.version, REFUNDS.doc) == ("refunds", 3, "Money goes back.\n\nBut not too much of it.")
    assert [item.name for item in REFUNDS.fields] == ["order", "colour", "due", "limit", "remark", "receipt"]
    assert [(item.kind, item.required, item.default) for item in REFUNDS.fields] == [
        ("content", True, None),
        ("content", False, "red"),
        ("content", False, None),
        ("content", False, 100),
        ("note", False, "none"),
        ("result", False, None),
    ]
    assert REFUNDS.content == ("order", "colour", "due", "limit")
    assert REFUNDS.state["mine"].on_lapse == "new"
    assert REFUNDS.cancels_to == "gone"
    assert REFUNDS.event["pay"].sets == (Setting("receipt"), Setting("remark", required=False, default="paid"))
    assert (REFUNDS.event["pay"].requires, REFUNDS.event["pay"].otherwise) == (("small", "numbered"), "new")
    assert REFUNDS.event["lose"].moves == (("new", "lost"), ("mine", "lost"))
    assert REFUNDS.event["take"].when == (Function("is_morning"), Function("in_the_morning_by_anyone", 2))


def test_every_other_state_is_one_that_is_not_final() -> None:
    assert REFUNDS.event["leave"].moves == (("new", "gone"),)


def test_a_check_reads_what_its_parameters_name_and_takes_null_where_they_say_so() -> None:
    line = REFUNDS.check["small"].line
    assert REFUNDS.check["small"] == Check(
        "small", Function("is_small", 2), (("order", False), ("limit", True)), timeout=minutes(5), line=line
    )
    assert REFUNDS.check["open_minded"].reads == (("colour", True), ("due", True))
    assert REFUNDS.check["numbered"].eager


def test_functions_are_kept_by_kind_name_and_version_and_take_stored_values() -> None:
    functions = Refunds.functions
    assert set(functions) == {(kind, function.name, function.version) for kind, function in REFUNDS.functions()}
    order = {"number": "7", "amount": 5.5}
    assert functions["check", "is_small", 2](order=order, limit=None) == Verdict(True, "Order of 5.5", {"amount": 5.5})
    assert functions["check", "is_red", 1](colour="blue") == Verdict(False)
    assert functions["computed", "due_soon", 2](due="2029-12-31T23:59:59Z") is True
    assert functions["computed", "brightest", 1](colour="blue") == "blue"
    assert functions["guard", "is_morning", 1] is is_morning


def test_a_function_on_plain_json_is_kept_as_it_is() -> None:
    assert Tasks.functions["check", "mentions_topic", 1].__module__ == "pointsman.builtin"
    assert not hasattr(Tasks.functions["check", "mentions_topic", 1], "__wrapped__")


def test_a_computed_value_of_another_type_is_an_error() -> None:
    class M(Machine, name="m"):
        colour: Colour
        wrong = computed(misdescribed)
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end)

    with pytest.raises(TypeError, match="misdescribed: its value must be a whole number"):
        M.functions["computed", "misdescribed", 1](colour="red")


def test_a_check_can_still_be_called_as_a_function() -> None:
    assert is_small(Order(number="7", amount=5), limit=1).ok is False
    assert Refunds.numbered(Order(number="x", amount=5)).reason == "a number has digits only"


def test_models_are_closed_and_carry_no_derived_titles() -> None:
    form = REFUNDS.field["order"].schema
    assert form["additionalProperties"] is False
    assert "title" not in str(form)
    assert schema.faults(form, {"number": "7", "amount": 1, "note": ""}, "order") == [("order.note", "is not a known member")]


def test_every_part_keeps_its_line() -> None:
    with open(__file__, encoding="utf-8") as file:
        source = file.read().splitlines()
    parts = (*REFUNDS.fields, *REFUNDS.states, *REFUNDS.events, *REFUNDS.checks, *REFUNDS.computed)
    told = {item.name: source[item.line - 1].strip() for item in parts}
    assert all(re.match(rf"(def )?{name}\b|@check\(eager=True\)", line) for name, line in told.items()), told
    assert source[REFUNDS.line - 1].startswith("class Refunds(")
    assert source[REFUNDS.proves[0].line - 1].strip().startswith("proves = ")


@pytest.mark.parametrize("machine", [Tasks, Refunds])
def test_a_definition_comes_back_from_its_export(machine: type[Machine]) -> None:
    form = export(machine.definition)
    assert export(restore(form)) == form
    assert hash(restore(form)) == hash(machine.definition)


# ── spellings that mean something else ───────────────────────────────────────────────────────────────────────────

A, B, C = State(), State(), State()
MISSPELT: list[tuple[str, Callable[[], Any]]] = [
    (r"write `\(a \| b\) >> c`", lambda: A | B >> C),
    ("write `a >> b, b >> c`", lambda: A >> B >> C),
    (r"`a >> b \| c` means", lambda: A >> B | C),
    ("a move leads to one state", lambda: A >> (B | C)),
    ("`~` stands outermost", lambda: (~A | B) >> C),
    ("`~` stands outermost", lambda: (A | ~B) >> C),
    ("`~` stands once", lambda: ~~A >> C),
    ("combine states with", lambda: (A or B) >> C),
    ("list moves with commas", lambda: Event(A >> B and B >> C)),
    ("an event is made of moves", lambda: Event(A, B >> C)),
    ("combine rules with", lambda: Event(A >> B, by=owner or role("x"))),
]


@pytest.mark.parametrize(("teaches", "spelling"), MISSPELT, ids=range(len(MISSPELT)))
def test_a_misspelt_move_is_a_type_error_that_teaches(teaches: str, spelling: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=teaches):
        spelling()


def test_a_machine_needs_a_name() -> None:
    with pytest.raises(TypeError, match="name"):

        class M(Machine):
            pass


def test_a_machine_derives_from_machine_alone() -> None:
    with pytest.raises(TypeError, match="derives from Machine alone"):

        class M(Tasks, name="m"):
            pass


# ── where a class may stand ──────────────────────────────────────────────────────────────────────────────────────

EXAMPLE = """
from pointsman import Event, Machine, NonBlank, State, Verdict, check, note, optional, owner
from pydantic import BaseModel


class Order(BaseModel):
    number: str


def mentions(title: str, draft: str | None, order: Order) -> Verdict:
    return Verdict(draft is not None and order.number in draft)


class Works(Machine, name="works"):
    title: NonBlank
    order: Order
    draft: str | None = None
    review_note: str | None = note()

    new = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    topic = check(mentions, eager=True)
    take = Event(new >> new, acquires=True)
    finish = Event(new >> done, by=owner, sets="draft", requires=topic)
    drop = Event(~(done | failed) >> failed, sets=optional("review_note", ""))
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Run a text as a module of its own."""

    def run(text: str) -> dict[str, Any]:
        module = ModuleType("written_by_an_author")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(text, "author.py", "exec", dont_inherit=True), vars(module))
        return vars(module)

    return run


def test_types_may_be_written_for_later(run: Callable[[str], dict[str, Any]]) -> None:
    now, later = run(EXAMPLE)["Works"], run("from __future__ import annotations\n" + EXAMPLE)["Works"]
    assert export(now.definition) == export(later.definition)
    given = {"title": "x", "draft": "order 7", "order": {"number": "7"}}
    assert later.functions["check", "mentions", 1](**given) == now.functions["check", "mentions", 1](**given) == Verdict(True)


def test_a_class_may_stand_in_a_function(run: Callable[[str], dict[str, Any]]) -> None:
    head, body = EXAMPLE.split("class Works")
    inside = f"def make():\n{textwrap.indent('class Works' + body, '    ')}\n    return Works\n"
    outside, made = run(EXAMPLE)["Works"], run(head + inside)["make"]()
    later = run("from __future__ import annotations\n" + head + inside)["make"]()
    assert export(outside.definition) == export(made.definition) == export(later.definition)


def test_a_check_may_be_shared_by_machines() -> None:
    class One(Machine, name="one"):
        colour: Colour
        red = is_red
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, requires=red)

    class Two(Machine, name="two"):
        title: NonBlank
        colour: Colour = Colour.BLUE
        really_red = is_red
        new = State(initial=True)
        end = State(final=True, outcome="failed")
        stop = Event(new >> end, requires=really_red)

    assert One.definition.event["stop"].requires == ("red",)
    assert Two.definition.event["stop"].requires == ("really_red",)
