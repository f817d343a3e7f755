"""Names and moments as any door brings them: tags, needs and capabilities, and when a task may begin."""

from collections.abc import Mapping, Sequence
from typing import Any

from pointsman.kernel.ingest import Faults, identifier
from pointsman.types import Instant, instant

MOST_NAMES = 16
LATEST: Instant = 253_402_300_799_999_999
"""The last microsecond that a year of four digits can name."""


def names(given: Any, path: str) -> tuple[tuple[str, ...], Faults]:
    """At most 16 identifiers, sorted, each once; none for None."""
    if given is None:
        return (), []
    if not isinstance(given, list | tuple | set | frozenset):
        return (), [(path, "must be a list of names")]
    listed: Sequence[Any] = list(given)  # pyright: ignore[reportUnknownArgumentType]
    if len(listed) > MOST_NAMES:
        return (), [(path, f"holds at most {MOST_NAMES} names")]
    wrong = [fault for number, name in enumerate(listed) for fault in identifier(name, f"{path}[{number}]")]
    return (() if wrong else tuple(sorted(set(listed)))), wrong


def several(given: Mapping[str, Any]) -> tuple[dict[str, tuple[str, ...]], Faults]:
    """Lists of names by what they are for."""
    read = {path: names(value, path) for path, value in given.items()}
    return {path: listed for path, (listed, _) in read.items()}, [fault for _, faults in read.values() for fault in faults]


def moment(given: Any, path: str) -> tuple[Instant | None, Faults]:
    """A time as an `Instant`, or as RFC 3339 with its offset; none for None."""
    try:
        at = instant(given) if isinstance(given, str) else given
    except (ValueError, OverflowError):
        return None, [(path, "must be a time with its offset, as in 2026-01-31T12:00:00Z")]
    if at is not None and type(at) is not int:
        return None, [(path, "has the wrong type")]
    if at is not None and not 0 <= at <= LATEST:
        return None, [(path, "must be a time from 1970 to 9999")]
    return at, []
