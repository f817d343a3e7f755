"""Idempotency records: which step answered a principal's key.

The row is inserted in the step's own transaction. Two transactions with one key cannot both commit, so whether an
unknown COMMIT happened is settled by running the unit again: it finds the row, or it inserts it. An answer that was there
already, under its dedupe_key, is bound to the key as well; no step says so, and the row vouches for itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.task import Task
from pointsman.store import history
from pointsman.store.database import Tx
from pointsman.types import Instant

WINDOW = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """An idempotency key with the digest of the request it stands for."""

    principal: str
    key: str
    digest: str


Known = tuple[str, int]
"""A task that was there already, and its version when it was answered."""


@dataclass(frozen=True, slots=True)
class Answered:
    """`known` where the answer was there already."""

    digest: str
    task: str
    version: int
    known: Sequence[Known] = ()


def find(tx: Tx, request: Request) -> Answered | None:
    """What was answered under a key; whoever asks under it at the same moment is waited for."""
    tx("take_key", principal=request.principal, key=request.key)
    row = tx("find_request", principal=request.principal, key=request.key)
    if row is None:
        return None
    of, task, version, known = row
    return Answered(of, task, version, () if known is None else [(there, at) for there, at in parse(known)])


def keep(tx: Tx, request: Request, task_id: str, version: int, at: Instant) -> None:
    tx("add_request", principal=request.principal, key=request.key, digest=request.digest, task=task_id, version=version, at=at)


def bind(tx: Tx, request: Request, known: Sequence[Known], at: Instant) -> None:
    """Keep that tasks which were there answered a request."""
    task, version = known[0]
    row = [request.principal, request.key, request.digest, task, version, at, canonical([list(item) for item in known])]
    tx("bind_request", **dict(zip(_BOUND, row, strict=True)), hash=_seal(row))


_BOUND = ("principal", "key", "digest", "task", "version", "at", "known")


def _seal(row: Sequence[Any]) -> str:
    return digest("request bound", [*row])


def keep_all(tx: Tx, answered: Sequence[tuple[Request, Task]]) -> None:
    """The same for many steps, each with its task after it."""
    rows = [
        {
            "principal": asked.principal,
            "key": asked.key,
            "digest": asked.digest,
            "task": task.id,
            "version": task.version,
            "at": task.updated_at,
        }
        for asked, task in answered
    ]
    tx("add_requests", rows=canonical(rows))


Unmatched = tuple[str, str, str]
"""(principal, key, task) of a record that does not stand in history as it says."""


def unmatched(tx: Tx) -> Iterator[Unmatched]:
    """Records that neither history nor their own hash bears out, a window at a time."""
    after = ("", "")
    while rows := tx("request_keys_after", after_principal=after[0], after_key=after[1], limit=WINDOW):
        upto = rows[-1]
        ends = {"after_principal": after[0], "after_key": after[1], "upto_principal": upto[0], "upto_key": upto[1]}
        yield from tx("unmatched_requests", **ends)
        yield from ((row[0], row[1], row[3]) for row in tx("bound_requests", **ends) if row[-1] != _seal(row[:-1]))
        after = upto


def missing(tx: Tx, kept_from: Instant) -> Iterator[tuple[str, int]]:
    """(task, version) of entries as late as this, or later, whose record is gone."""
    for after, upto in history.windows(tx):
        yield from tx("entries_without_request", after=after, upto=upto, kept_from=kept_from)
