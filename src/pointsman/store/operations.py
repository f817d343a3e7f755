"""The operations table, one row for each durable step, and what replaced owners said of them.

A row stands as its last entry says, which is that of `version`; its own hash vouches for all of it, also once the payload of that
entry was pruned.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.operation import Operation, Said
from pointsman.store.database import Row, Tx
from pointsman.types import Instant, Json

PAGE = 500
MOST_TESTIMONIES = 20
"""How many are kept of one operation: whoever was replaced may be a loop."""

_MEMBERS = tuple(item.name for item in fields(Operation))
_JSON = ("request", "result")
_FIXED = ("task", "name", "kind", "effect", "request", "request_digest", "settle", "compensates")


@dataclass(frozen=True, slots=True)
class Kept:
    """An operation as stored: the version of the entry that made it so, the hash of the row, and the row that it vouches for."""

    operation: Operation
    version: int
    hash: str
    row: Sequence[Any]

    @property
    def sound(self) -> bool:
        return self.hash == _hash(self.row)


@dataclass(frozen=True, slots=True)
class Testimony:
    """What somebody who did not own the task any more said of an operation."""

    by: str
    epoch: int | None
    at: Instant
    status: str
    result: Json
    note: str | None

    def repeats(self, other: "Testimony") -> bool:
        return self.row == replace(other, at=self.at).row

    @property
    def row(self) -> tuple[Any, ...]:
        return self.by, self.epoch, self.at, self.status, canonical(self.result), self.note


def _seal(operation: str, row: Sequence[Any]) -> str:
    return digest("testimony", [operation, *row])


def _hash(row: Sequence[Any]) -> str:
    """Of the members in their order and the version, JSON as the text that is stored."""
    return digest("operation", [*row])


def _kept(row: Row) -> Kept:
    *values, version, hash_ = row
    members: dict[str, Any] = dict(zip(_MEMBERS, values, strict=True))
    operation = Operation(**{**members, **{name: parse(members[name]) for name in _JSON}})
    return Kept(operation, version, hash_, (*values, version))


def ahead(tx: Tx, task_id: str, name: str) -> None:
    """`find` is asked next."""
    tx.ahead("find_operation", task=task_id, name=name)


def find(tx: Tx, task_id: str, name: str) -> Kept | None:
    """What a task, locked by whoever decides, has under a name."""
    row = tx("find_operation", task=task_id, name=name)
    return None if row is None else _kept(row)


def alike(tx: Tx, task_key: int, effect: str | None, compensates: str | None) -> list[Operation]:
    """What a task, locked by whoever decides, has of a declared effect, or that undoes one operation."""
    return [_kept(row).operation for row in tx("operations_alike", task=task_key, effect=effect, compensates=compensates)]


def by_id(tx: Tx, operation: str) -> Kept | None:
    row = tx("operation", id=operation)
    return None if row is None else _kept(row)


def of_task(tx: Tx, task_id: str, after: str, limit: int) -> list[Kept]:
    """A page of a task's operations by id: to the millisecond in the order in which they were first begun."""
    return [_kept(row) for row in tx("operations_of", task=task_id, after=after, limit=limit)]


def every(tx: Tx, task_id: str) -> Iterator[Kept]:
    """All operations of a task, in the same order."""
    after = ""
    while page := of_task(tx, task_id, after, PAGE):
        yield from page
        after = page[-1].operation.id


def put(tx: Tx, task_key: int, before: Kept | None, operation: Operation, version: int) -> None:
    """Write an operation's step, which is the entry of this version."""
    values: dict[str, Any] = {name: getattr(operation, name) for name in _MEMBERS}
    values |= {name: canonical(values[name]) for name in _JSON}
    seal = _hash([*values.values(), version])
    values |= {"task": task_key, "version": version, "hash": seal}
    if before is None:
        return tx("add_operation", **values)
    moved = {name: value for name, value in values.items() if name not in _FIXED}
    return tx("advance_operation", **moved, expected_version=before.version)


def testify(tx: Tx, operation: Operation, by: str, epoch: int | None, said: Said) -> None:
    """Keep what was said, once, unless enough was."""
    made, of = Testimony(by, epoch, tx.now, said.status, said.result, said.note), operation.id
    heard = testimonies(tx, operation.task, of, of).get(of, ())
    if len(heard) < MOST_TESTIMONIES and not any(made.repeats(kept) for kept in heard):
        tx("add_testimony", operation=of, **dict(zip(made.__slots__, made.row, strict=True)), hash=_seal(of, made.row))


def testimonies(tx: Tx, task_id: str, first: str, last: str) -> Mapping[str, Sequence[Testimony]]:
    """What was said of a task's operations whose ids lie from one to another, by operation."""
    found = defaultdict[str, list[Testimony]](list)
    for operation, *said in tx("testimonies_of", task=task_id, first=first, last=last):
        found[operation].append(_testimony(tuple(said)))
    return found


def _testimony(row: Row) -> Testimony:
    by, epoch, at, status, result, note = row
    return Testimony(by, epoch, at, status, parse(result), note)


def altered(tx: Tx, after: int, limit: int) -> list[tuple[int, str, bool]]:
    """(key, operation, whether it was altered) of a page of testimonies."""
    rows = tx("testimonies_after", after=after, limit=limit)
    return [(key, operation, hash_ != _seal(operation, row)) for key, operation, *row, hash_ in rows]


def after(tx: Tx, last: str, limit: int) -> list[Kept]:
    return [_kept(row) for row in tx("operations_after", after=last, limit=limit)]
