"""Parameters of a path, a query or a head: one declaration reads, judges and documents each. No message repeats what
was sent."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pointsman.errors import invalid
from pointsman.http.caller import faults as caller_faults
from pointsman.kernel import ingest
from pointsman.kernel.definition import Schema
from pointsman.types import instant

Where = Literal["path", "query", "header"]
LARGEST = (1 << 53) - 1
PAGE, LARGEST_PAGE = 100, 500
WAIT_S = 25
_DIGITS = re.compile(r"[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Parameter:
    """`read` turns its text into a value or raises ValueError with what is wrong. One with `many` may come several
    times and is a list; one that is `listed` is a list by itself, so that several are one, joined with commas."""

    name: str
    read: Callable[[str], Any]
    schema: Schema
    said: str
    where: Where = "query"
    required: bool = False
    many: bool = False
    listed: bool = False
    default: Any = None

    @property
    def place(self) -> str:
        return f"{self.where}.{self.name}"


def whole(text: str) -> int:
    """A version, or a feed number."""
    if not _DIGITS.fullmatch(text) or len(text) > 16 or int(text) > LARGEST:
        raise ValueError(f"must be a whole number from 0 to {LARGEST}")
    return int(text)


def limit(text: str) -> int:
    """Over the maximum clamps."""
    if not _DIGITS.fullmatch(text) or not text.strip("0"):
        raise ValueError("must be a whole number of 1 or more")
    return min(_bounded(text), LARGEST_PAGE)


def _bounded(digits: str) -> int:
    """The number, or one that is too large for any use of ours."""
    return int(digits.lstrip("0")[:9] or "0")


def flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError("must be one of " + ", ".join(words))
        return text

    return read


def name(text: str) -> str:
    if found := ingest.identifier(text, ""):
        raise ValueError(found[0][1])
    return text


def who(text: str) -> str:
    """The name of a caller; `anonymous` is none."""
    if found := caller_faults(text, ""):
        raise ValueError(found[0][1])
    return text


def free(text: str) -> str:
    if found := ingest.faults(text):
        raise ValueError(found[0][1])
    return text


def time(text: str) -> int:
    try:
        return instant(text)
    except (ValueError, OverflowError):
        raise ValueError("must be a time with its offset, as in 2026-01-31T12:00:00Z") from None


def moment(text: str) -> str | int:
    """A time, or a feed number as in #57."""
    if not text.startswith("#"):
        return time(text)
    return f"#{whole(text[1:])}"


def if_match(text: str) -> int | None:
    """The version that a strong entity tag names; `*` is any."""
    if text.strip() == "*":
        return None
    found = re.fullmatch(r'\s*"([0-9]{1,16})"\s*', text, re.ASCII)
    if found is None:
        raise ValueError('must be one strong entity tag, as in "7", or *')
    return whole(found[1])


def wait(text: str) -> int | None:
    """Seconds of `Prefer: wait=N`, bounded; other preferences are not ours."""
    found = re.search(r"(?:^|[,;])\s*wait\s*=\s*([^,;]*)", text, re.IGNORECASE)
    if found is None:
        return None
    seconds = found[1].strip().strip('"')
    if not _DIGITS.fullmatch(seconds):
        raise ValueError("must say a whole number of seconds, as in wait=5")
    return min(_bounded(seconds), WAIT_S)


def told(parameter: Parameter, values: list[str]) -> Any:
    """The value of a parameter from all its occurrences. Raises Refused `invalid`."""
    if not values:
        if parameter.required:
            raise invalid((parameter.place, "is required"))
        return parameter.default
    if parameter.listed:
        values = [", ".join(values)]
    if len(values) > 1 and not parameter.many:
        raise invalid((parameter.place, "may be given once"))
    try:
        return [parameter.read(value) for value in values] if parameter.many else parameter.read(values[0])
    except ValueError as fault:
        raise invalid((parameter.place, str(fault))) from None
