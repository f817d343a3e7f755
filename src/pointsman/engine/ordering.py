"""What a creator asks of a task besides its fields, as any door brings it: read once, every fault at once."""

from collections.abc import Sequence
from typing import Any

from pointsman.errors import Refused, invalid
from pointsman.kernel.ingest import identifier
from pointsman.kernel.terms import Terms
from pointsman.types import Instant, instant

LARGEST_PRIORITY = 1_000
MOST_NAMES = 16
LATEST: Instant = 253_402_300_799_999_999
"""The last microsecond that a year of four digits can name."""


def terms(priority: Any, tags: Any, needs: Any, run_at: Any) -> Terms:
    found = list[tuple[str, str]]()
    if type(priority) is not int:
        found.append(("priority", "has the wrong type"))
    elif not -LARGEST_PRIORITY <= priority <= LARGEST_PRIORITY:
        found.append(("priority", f"must be from {-LARGEST_PRIORITY} to {LARGEST_PRIORITY}"))
    called, needed = _gathered("tags", tags, found), _gathered("needs", needs, found)
    at = _gathered_time("run_at", run_at, found)
    if found:
        raise invalid(*found)
    return Terms(priority, called, needed, at)


def names(path: str, given: Any) -> tuple[str, ...]:
    """At most 16 identifiers, sorted, each once; none for None."""
    found = list[tuple[str, str]]()
    several = _gathered(path, given, found)
    if found:
        raise invalid(*found)
    return several


def _gathered(path: str, given: Sequence[Any] | None, found: list[tuple[str, str]]) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list | tuple | set | frozenset):
        found.append((path, "must be a list of names"))
        return ()
    if len(given) > MOST_NAMES:
        found.append((path, f"holds at most {MOST_NAMES} names"))
        return ()
    wrong = [fault for number, name in enumerate(given) for fault in identifier(name, f"{path}.{number}")]
    found += wrong
    return () if wrong else tuple(sorted(set(given)))


def _gathered_time(path: str, given: Any, found: list[tuple[str, str]]) -> Instant | None:
    try:
        return moment(path, given)
    except Refused as no:
        found += [(item["path"], item["message"]) for item in no.failed]
        return None


def moment(path: str, given: Any) -> Instant | None:
    """A time as an `Instant`, or as RFC 3339 with its offset."""
    if given is None or (type(given) is int and 0 <= given <= LATEST):
        return given
    if type(given) is int:
        raise invalid((path, "must be a time from 1970 to 9999, in µs"))
    if not isinstance(given, str):
        raise invalid((path, "has the wrong type"))
    try:
        return moment(path, instant(given))
    except (ValueError, OverflowError):
        raise invalid((path, "must be a time with its offset, as in 2026-01-31T12:00:00Z")) from None
