"""Idempotency records: which step answered a principal's key.

The row is inserted in the step's own transaction. Two transactions with one key cannot both commit, so whether an
unknown COMMIT happened is settled by running the unit again: it finds the row, or it inserts it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pointsman.kernel.chain import canonical
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


@dataclass(frozen=True, slots=True)
class Answered:
    digest: str
    task: str
    version: int


def find(tx: Tx, request: Request) -> Answered | None:
    """What was answered under a key; whoever asks under it at the same moment is waited for."""
    tx("take_key", principal=request.principal, key=request.key)
    row = tx("find_request", principal=request.principal, key=request.key)
    return None if row is None else Answered(*row)


def keep(tx: Tx, request: Request, task_id: str, version: int, at: Instant) -> None:
    tx("add_request", principal=request.principal, key=request.key, digest=request.digest, task=task_id, version=version, at=at)


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
    """Records that history does not bear out, a window at a time."""
    after = ("", "")
    while rows := tx("request_keys_after", after_principal=after[0], after_key=after[1], limit=WINDOW):
        upto = rows[-1]
        ends = {"after_principal": after[0], "after_key": after[1], "upto_principal": upto[0], "upto_key": upto[1]}
        yield from tx("unmatched_requests", **ends)
        after = upto


def missing(tx: Tx, kept_from: Instant) -> Iterator[tuple[str, int]]:
    """(task, version) of entries as late as this, or later, whose record is gone."""
    for after, upto in history.windows(tx):
        yield from tx("entries_without_request", after=after, upto=upto, kept_from=kept_from)
