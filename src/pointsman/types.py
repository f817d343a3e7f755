"""Ids, times and JSON as the whole of Pointsman spells them.

Times are integers: microseconds of UTC since 1970 (`Instant`), and plain microseconds for spans (`Duration`).
Text forms (RFC 3339) exist only at the edges; `iso` and `instant` convert.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import TypeAlias
from uuid import UUID

Json: TypeAlias = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Fields: TypeAlias = dict[str, Json]
Instant: TypeAlias = int
Duration: TypeAlias = int

MICROSECOND: Duration = 1
SECOND: Duration = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_UUID = re.compile(r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")


EARLIEST: Instant = -(2**63)
"""Before every time that a database can hold."""


def seconds(n: float) -> Duration:
    return round(n * SECOND)


def minutes(n: float) -> Duration:
    return seconds(60 * n)


def hours(n: float) -> Duration:
    return seconds(3600 * n)


def iso(at: Instant) -> str:
    """An instant as RFC 3339 in UTC with all six digits, so that text order is time order."""
    return (EPOCH + timedelta(microseconds=at)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str) -> Instant:
    """Read RFC 3339. Any other text is a ValueError, also a time without an offset, which names no instant."""
    if not _RFC3339.fullmatch(text):
        raise ValueError("not a time with its offset, as in 2026-01-31T12:00:00Z")
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def task_id(value: str | UUID) -> str:
    """The one spelling of an id: lower case with hyphens. Any other text is a ValueError."""
    if not isinstance(value, str | UUID) or not _UUID.fullmatch(text := str(value)):  # pyright: ignore[reportUnnecessaryIsInstance] - any caller
        raise ValueError("not a UUID of the form 01234567-89ab-7def-8123-456789abcdef")
    return text.lower()


def uuid7(at: Instant, random: int) -> str:
    """RFC 9562 version 7: 48 bits of milliseconds, then 74 random bits. Both come in as arguments."""
    value = (at // 1000 & (1 << 48) - 1) << 80 | 7 << 76 | (random >> 62 & 0xFFF) << 64 | 2 << 62 | random & (1 << 62) - 1
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
