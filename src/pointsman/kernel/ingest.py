"""The one validation of what comes from outside, the same for every door.

`parse` reads the bytes of a JSON body; `faults` walks a Python value that some door was given; `identifier` judges
names. What Pointsman writes itself (a worker's traceback) is not judged but made fit by `clean`, so that recording a
failure cannot fail. No message repeats what was sent.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

from pointsman.errors import Refusal, Refused
from pointsman.types import Json

Faults: TypeAlias = list[tuple[str, str]]
"""What is wrong, as (path, message)."""

TOTAL_BYTES = 1 << 20
TEXT_LENGTH = 262_144
KEY_LENGTH = 256
DEPTH = 64
MEMBERS = 10_000
NUMBER_LENGTH = 400
LISTED = 100
WHOLE = 1 << 63

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_IDENTIFIER = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9 ._@:/+#=()\[\]~-]{0,126}[A-Za-z0-9._@:/+#=()\[\]~-])?")
_UNFIT = re.compile("[\0\ud800-\udfff]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:]|-?[0-9][0-9.eE+-]*|NaN|-?Infinity', re.DOTALL)


def member(path: str, key: str) -> str:
    """The path of a member. A key that is not a plain word is not repeated."""
    shown = key if _PLAIN_KEY.fullmatch(key) else "(key)"
    return f"{path}.{shown}" if path else shown


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────────────────────


def parse(body: bytes) -> Json:
    """Read one JSON text: UTF-8, unique keys, finite numbers, at most 64 deep. Anything else is `malformed`."""
    if len(body) > TOTAL_BYTES:
        raise Refused(Refusal("too_large", f"a body may have {TOTAL_BYTES} bytes"))
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed("the body is not UTF-8", error.start) from None
    _shallow(text)
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _malformed("the body is not one JSON text", error.pos) from None
    except _Unfit as error:
        raise _malformed(str(error), _position(text)) from None


class _Unfit(Exception):
    """Grammatical JSON that has no one meaning."""


def _malformed(what: str, position: int) -> Refused:
    return Refused(Refusal("malformed", f"{what}, at position {position}", extra={"position": position}))


def _shallow(text: str) -> None:
    """Depth is judged before parsing: the parser recurses."""
    if text.count("[") + text.count("{") <= DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEPTH:
            raise _malformed(f"the body is nested deeper than {DEPTH}", token.start())


def _whole(digits: str) -> int:
    if len(digits) > NUMBER_LENGTH:
        raise _Unfit(f"a number has more than {NUMBER_LENGTH} digits")
    return int(digits)


def _finite(digits: str) -> float:
    if len(digits) > NUMBER_LENGTH or math.isinf(float(digits)):
        raise _Unfit("a number is too large")
    return float(digits)


def _constant(_: str) -> NoReturn:
    raise _Unfit("NaN and Infinity are not JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _Unfit("an object has a key twice")
    return members


_DECODER = json.JSONDecoder(parse_int=_whole, parse_float=_finite, parse_constant=_constant, object_pairs_hook=_unique)


def _position(text: str) -> int:
    """Where the first number or key is that `parse` could not take."""
    keys: list[set[str]] = []
    before: re.Match[str] | None = None
    for token in _TOKEN.finditer(text):
        match token[0]:
            case "{" | "[":
                keys.append(set())
            case "}" | "]":
                keys.pop()
            case ":" if before and keys:
                key = json.loads(before[0])
                if key in keys[-1]:
                    return before.start()
                keys[-1].add(key)
            case number if number[0] != '"' and not _fits(number):
                return token.start()
            case _:
                pass
        before = token
    return 0


def _fits(number: str) -> bool:
    return number != ":" and len(number) <= NUMBER_LENGTH and math.isfinite(float(number))


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────────


def faults(value: object, path: str = "") -> Faults:
    """Everything that keeps a value from being stored and hashed as JSON, on both stores, in any client."""
    walk = _Walk()
    walk.visit(value, path, 0)
    return walk.found[:LISTED]


class _Walk:
    """Counts what it has seen, so that neither a large value nor one that contains itself is walked to its end."""

    def __init__(self) -> None:
        self.found: Faults = []
        self.members = 0
        self.bytes = 0

    @property
    def done(self) -> bool:
        return len(self.found) >= LISTED or self.members > MEMBERS or self.bytes > TOTAL_BYTES

    def fault(self, path: str, message: str) -> None:
        self.found.append((path, message))

    def visit(self, value: object, path: str, depth: int) -> None:
        kind = type(value)
        if kind is str:
            self.text(value, path, TEXT_LENGTH)  # pyright: ignore[reportArgumentType]
        elif kind is dict or kind is list:
            self.nest(value, path, depth + 1)
        elif kind is int:
            if not -WHOLE <= value < WHOLE:  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
                self.fault(path, "must be a whole number of 64 bits")
        elif kind is float:
            if not math.isfinite(value):  # pyright: ignore[reportArgumentType]
                self.fault(path, "must be a finite number")
        elif value is not None and kind is not bool:
            self.fault(path, "must be JSON: text, a number, true, false, null, a list or an object")

    def text(self, text: str, path: str, longest: int) -> None:
        self.bytes += len(text)
        if len(text) > longest:
            self.fault(path, f"must have at most {longest} characters")
        if "\0" in text:
            self.fault(path, "must not contain NUL")
        if not text.isascii():
            self.encoded(text, path)
        if self.bytes > TOTAL_BYTES:
            self.fault(path, f"all text together must have at most {TOTAL_BYTES} bytes")

    def encoded(self, text: str, path: str) -> None:
        try:
            self.bytes += len(text.encode()) - len(text)
        except UnicodeEncodeError:
            self.fault(path, "must not contain a lone surrogate")

    def nest(self, value: Any, path: str, depth: int) -> None:
        if depth > DEPTH:
            return self.fault(path, f"must not be nested deeper than {DEPTH}")
        self.members += len(value)
        if self.members > MEMBERS:
            return self.fault(path, f"all lists and objects together must have at most {MEMBERS} members")
        for item, place in self.members_of(value, path):
            if self.done:
                return None
            self.visit(item, place, depth)
        return None

    def members_of(self, value: Any, path: str) -> Iterable[tuple[object, str]]:
        if type(value) is list:
            yield from ((item, f"{path}[{index}]") for index, item in enumerate(value))  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            return
        for key, item in value.items():
            if type(key) is not str:
                self.fault(path, "must have text as keys")
                continue
            place = member(path, key)
            self.text(key, place, KEY_LENGTH)
            yield item, place


def identifier(value: object, path: str) -> Faults:
    """The rule for names of principals, sessions, keys and tags: ASCII, so that two that look alike are alike."""
    if type(value) is not str:
        return [(path, "must be text")]
    if not value.strip():
        return [(path, "must not be blank")]
    if len(value) > 128:
        return [(path, "must have at most 128 characters")]
    if not _IDENTIFIER.fullmatch(value):
        return [(path, "must be ASCII letters, digits, inner spaces or any of ._@:/+#=()[]~- and begin with a letter or digit")]
    return []


def clean(text: str) -> str:
    """Text of our own, made storable: what no store takes becomes U+FFFD, and what is too long is cut."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text[:TEXT_LENGTH])
