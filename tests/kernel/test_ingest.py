"""What comes from outside is judged once, without repeating it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman import Refused
from pointsman.kernel import ingest

MARKER = "canary"


@pytest.mark.parametrize(
    ("body", "position"),
    [
        (b'{"canary": 1, "canary": 2}', 14),
        (b'{"a": {"canary": 1, "c\\u0061nary": 2}}', 20),
        (b'[{"a": 1}, {"a": 1}, {"a": 1, "a": 1}]', 30),
        (b'{"a": "NaN canary", "b": NaN}', 25),
        (b"[Infinity]", 1),
        (b"[-Infinity]", 1),
        (b'["1e400", 1e400]', 10),
        (b"[-1e999]", 1),
        (b'{"canary": \xff}', 11),
        (b"\xef\xbb\xbf{}", 0),
        (b"{} canary", 3),
        (b"", 0),
        (b"   ", 3),
        (b"{'canary': 1}", 1),
        (b'{"canary": 1,}', 13),
        (b"[" * 100_000, 64),
        (b'{"a":' * 65 + b"1" + b"}" * 65, 320),
        (b'["[[[", ' + b"[" * 70 + b"]" * 70 + b"]", 71),
        (b"[" + b"9" * 5000 + b"]", 1),
        (b'{"a": 1' + b"0" * 400 + b"}", 6),
        (b"[0." + b"1" * 5000 + b"]", 1),
        (b'"\n"', 1),
        (b"[01]", 2),
    ],
)
def test_a_malformed_body_is_refused_with_its_position(body: bytes, position: int) -> None:
    with pytest.raises(Refused) as caught:
        ingest.parse(body)
    assert caught.value.code == "malformed"
    assert caught.value.refusal.extra == {"position": position}
    assert MARKER not in str(caught.value)
    assert len(str(caught.value)) < 120


def test_the_deepest_body_is_read() -> None:
    assert ingest.parse(b"[" * 64 + b"]" * 64)


def test_a_body_over_the_limit_is_too_large() -> None:
    assert ingest.parse(b'"' + b"x" * (ingest.TOTAL_BYTES - 2) + b'"')
    with pytest.raises(Refused) as caught:
        ingest.parse(b'"' + b"x" * (ingest.TOTAL_BYTES - 1) + b'"')
    assert caught.value.code == "too_large"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_every_json_text_is_read_as_it_is(value: Any) -> None:
    assert ingest.parse(json.dumps(value).encode()) == value


@settings(deadline=None)
@given(
    st.binary(max_size=60)
    | st.text(alphabet='{}[]":,\\0123456789eE+-.NaInfity \ud800').map(lambda text: text.encode(errors="surrogatepass"))
)
def test_any_bytes_are_read_or_malformed(body: bytes) -> None:
    try:
        value = ingest.parse(body)
    except Refused as refused:
        assert refused.code == "malformed"
        assert 0 <= refused.refusal.extra["position"] <= len(body)
    else:
        assert json.loads(body) == value


@settings(deadline=None)
@given(JSON)
def test_what_is_judged_fit_can_be_stored_and_read_back(value: Any) -> None:
    if not ingest.faults(value):
        assert json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode()) == value


@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ("a\0b", "it", "must not contain NUL"),
        ({"a": ["x", {"b": "\0"}]}, "it.a[1].b", "must not contain NUL"),
        ({"a\0": 1}, "it.(key)", "must not contain NUL"),
        ({"\ud800": 1}, "it.(key)", "must not contain a lone surrogate"),
        ("\udfff", "it", "must not contain a lone surrogate"),
        ([float("nan")], "it[0]", "must be a finite number"),
        (float("-inf"), "it", "must be a finite number"),
        (2**63, "it", "must be a whole number of 64 bits"),
        (-(2**63) - 1, "it", "must be a whole number of 64 bits"),
        ((1, 2), "it", "must be JSON: text, a number, true, false, null, a list or an object"),
        ({"a": b"x"}, "it.a", "must be JSON: text, a number, true, false, null, a list or an object"),
        ({1: "x"}, "it", "must have text as keys"),
        ({"x" * 257: 1}, "it.(key)", "must have at most 256 characters"),
        ("x" * 262_145, "it", "must have at most 262144 characters"),
        ([0] * 10_001, "it", "all lists and objects together must have at most 10000 members"),
        ([[0] * 100] * 100, "it[99]", "all lists and objects together must have at most 10000 members"),
        (["\U0001f600" * 100_000] * 3, "it[2]", "all text together must have at most 1048576 bytes"),
    ],
    ids=range(17),
)
def test_what_no_store_takes_is_a_fault_with_its_path(value: Any, path: str, message: str) -> None:
    assert (path, message) in ingest.faults(value, "it")


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), True, None, "", 1e308, {}, [], "\U0001f600", "x" * 262_144, [0] * 10_000])
def test_the_last_that_fits_is_no_fault(value: Any) -> None:
    assert ingest.faults(value, "it") == []


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_is_judged_for_values_as_for_bodies() -> None:
    assert ingest.faults(nested(64)) == []
    assert [message for _, message in ingest.faults(nested(65))] == ["must not be nested deeper than 64"]


def test_a_value_that_holds_itself_is_judged_in_the_end() -> None:
    value: list[Any] = ["\0"]
    value += [value, value]
    assert 0 < len(ingest.faults(value)) <= ingest.LISTED


def test_all_faults_come_at_once() -> None:
    found = ingest.faults({"a": "\0", "b": float("inf"), "c": 2**64, "d": "\ud800"})
    assert [path for path, _ in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize("name", ["ann", "worker-a", "ann.lee@example.org", "ci/build:7", "dependabot[bot]", "Ann Lee", "7", "x" * 128])
def test_a_name_that_is_fit(name: str) -> None:
    assert ingest.identifier(name, "by") == []


@pytest.mark.parametrize(
    "name",
    [
        *"\0\n\r\t \u200b\u202e",
        "",
        "  ",
        " ann",
        "ann ",
        "ann\n",
        "an\u0000n",
        "\u0430nn",
        "Zoe\u0308",
        "Zoë",
        "x" * 129,
        "a<b>",
        "'",
        "ann\u202e",
        None,
        5,
        True,
        ["ann"],
    ],
)
def test_a_name_that_is_not(name: Any) -> None:
    ((path, message),) = ingest.identifier(name, "by")
    assert path == "by"
    assert message.startswith("must")


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_is_always_fit(text: str) -> None:
    cleaned = ingest.clean(text)
    assert ingest.faults(cleaned) == []
    assert len(cleaned) == len(text)


def test_cleaned_text_is_cut() -> None:
    assert len(ingest.clean("x" * (ingest.TEXT_LENGTH + 1))) == ingest.TEXT_LENGTH
