"""Lanes: one number for each combination of what decides whom a task may go to, so that whoever claims looks at what
suits it and passes over the rest whatever its length."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pointsman.kernel import limits
from pointsman.kernel.chain import digest, parse
from pointsman.kernel.definition import Definition
from pointsman.kernel.task import Task
from pointsman.store.database import Row, Tx
from pointsman.types import Instant

OPEN = 1
"""The lane of a task that anybody may take."""
_OPEN_TEXT = '{"limits":[],"needs":[],"tags":[]}'


@dataclass(frozen=True, slots=True)
class Lane:
    """A state and lane of a machine version in which some task can be claimed, with its first place. `limits` are those of
    the event that acquires, each with its subject; `initial` says that it is the state in which tasks begin."""

    machine: str
    machine_version: int
    state: str
    key: int
    needs: frozenset[str]
    tags: frozenset[str]
    limits: tuple[tuple[str, str], ...]
    place: Instant
    head: int
    initial: bool


def text(definition: Definition, before: Task | None, after: Task) -> str | None:
    """The lane of a task after a step, in words; None where it stays. Only limits make it change."""
    if before is None:
        return limits.lane(definition, after)
    if not definition.limits:
        return None
    found = limits.lane(definition, after)
    return None if found == limits.lane(definition, before) else found


NEAR = 16
"""So much of a line is looked at before all its lanes are: as a rule its first task suits."""
Place = tuple[Instant, int]
"""A place in the line: the rank that is stored, then the key."""
END: Place = (2**62, 0)


def ahead(tx: Tx, definition: Definition) -> None:
    """`near` is asked next."""
    tx.ahead("first_in_line", machine=definition.name, machine_version=definition.version, limit=NEAR)


def near(tx: Tx, definition: Definition) -> tuple[list[Lane], Place]:
    """The lanes of the first tasks in line, and up to which place there is no other."""
    rows = tx("first_in_line", machine=definition.name, machine_version=definition.version, limit=NEAR)
    firsts: dict[tuple[str, int], Row] = {}
    for row in rows:
        firsts.setdefault((row[0], row[1]), row)
    return _lanes(definition, firsts.values()), END if len(rows) < NEAR else (rows[-1][3], rows[-1][4] + 1)


def with_work(tx: Tx, definition: Definition) -> list[Lane]:
    """Every lane of a machine version in which some task can be claimed, the first in line first."""
    rows = tx("lanes_with_work", machine=definition.name, machine_version=definition.version, before="")
    return _lanes(definition, rows)


def _lanes(definition: Definition, rows: Iterable[Row]) -> list[Lane]:
    """A lane whose row is gone, as `verify` says, holds up no other."""
    return [_lane(definition, *row) for row in rows if row[2] is not None]


def _lane(definition: Definition, state: str, key: int, text: str, place: Instant, head: int) -> Lane:
    return Lane(definition.name, definition.version, state, key, *_read(text), place, head, state == definition.initial)


@lru_cache(maxsize=1_000)
def _read(text: str) -> tuple[frozenset[str], frozenset[str], tuple[tuple[str, str], ...]]:
    """Needs, tags and limits of a lane. Its text is the same at every claim."""
    form = parse(text)
    return frozenset(form["needs"]), frozenset(form["tags"]), tuple((name, subject) for name, subject in form["limits"])


def interned(tx: Tx, text: str) -> int:
    """The number of a lane, which there is from now on."""
    if text == _OPEN_TEXT:
        return OPEN
    key = _digest(text)
    if found := tx("find_lane", digest=key):
        return found[0]
    tx("add_lane", digest=key, text=text)
    return tx("find_lane", digest=key)[0]


def _digest(text: str) -> str:
    return digest("lane", text)


def altered(tx: Tx, after: int, limit: int) -> list[tuple[int, bool]]:
    """Each lane behind a key, and whether it was altered."""
    return [(key, kept != _digest(text)) for key, kept, text in tx("lanes_after", after=after, limit=limit)]
