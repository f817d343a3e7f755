"""What need not be kept for ever, and what is written down when it goes.

`prunings` says, as a chain of its own, from when on idempotency records are complete. `pruned` says of a task that its
payloads are gone, with a hash that vouches for the live row in their place.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pointsman.kernel.chain import GENESIS, digest
from pointsman.kernel.task import Task
from pointsman.store import operations, snapshots, tasks
from pointsman.store.database import Database, Tx
from pointsman.store.tasks import Stored
from pointsman.types import Instant

WINDOW = 1_000
"""Rows looked at in one transaction, so that no lock is held long."""
KEYS = 10_000
TASKS = 20


@dataclass(frozen=True, slots=True)
class Removed:
    """How many rows go, or went. `tasks` are final tasks whose payloads do."""

    requests: int = 0
    refusals: int = 0
    proposals: int = 0
    judgements: int = 0
    tasks: int = 0


@dataclass(frozen=True, slots=True)
class Pruning:
    """One act of pruning: what was older than `before` may be missing since."""

    number: int
    before: Instant
    payloads: int
    at: Instant
    hash: str

    def follows(self, number: int, previous: str) -> bool:
        """Whether it is the one with this number, after the hash of the one before it, and unaltered."""
        return self.number == number and self.hash == _chained(previous, number, self.before, self.payloads, self.at)


def _chained(previous: str, number: int, before: Instant, payloads: int, at: Instant) -> str:
    return digest("pruning", [previous, number, before, payloads, at])


def every(tx: Tx) -> list[Pruning]:
    return [Pruning(*row) for row in tx("list_prunings")]


def kept_from(tx: Tx) -> Instant:
    """What is as late as this, or later, was never pruned."""
    return max((pruning.before for pruning in every(tx)), default=0)


def prunable(tx: Tx, before: Instant, payloads: bool) -> Removed:
    """What a pruning would remove."""
    found = Removed(*tx("count_prunable", before=before))
    return found if payloads else replace(found, tasks=0)


def begin(tx: Tx, before: Instant, payloads: bool) -> None:
    """Say what may be missing, before anything is."""
    tx("lock_prunings")
    last = every(tx)[-1:]
    number, previous = (last[0].number + 1, last[0].hash) if last else (1, GENESIS)
    values = {"number": number, "before": before, "payloads": int(payloads), "at": tx.now}
    tx("add_pruning", **values, hash=_chained(previous, number, before, int(payloads), tx.now))


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is pruned window by window, in the order of its key. `key` names the parts of it."""

    name: str
    look: str
    prune: str
    key: tuple[str, ...]

    def window(self, tx: Tx, after: tuple[str, ...], before: Instant) -> tuple[int, tuple[str, ...] | None]:
        """Remove the old rows of the window behind `after`; how many, and where it ends, None behind the last row."""
        start = dict(zip((f"after{part}" for part in self.key), after, strict=True))
        rows = tx(self.look, **start, limit=WINDOW)
        if not rows:
            return 0, None
        end = dict(zip((f"upto{part}" for part in self.key), rows[-1], strict=True))
        return len(tx(self.prune, **start, **end, before=before)), rows[-1]


TABLES = (
    Table("requests", "request_keys_after", "prune_requests", ("_principal", "_key")),
    Table("proposals", "proposal_ids_after", "prune_proposals", ("",)),
    Table("judgements", "judgement_keys_after", "prune_judgements", ("_task", "_check", "_digest")),
)


def windows(db: Database, table: Table, before: Instant) -> Iterator[int]:
    """How many rows went, a transaction at a time."""
    after: tuple[str, ...] | None = ("",) * len(table.key)
    while after is not None:
        count, after = db.run(_window(table, after, before))
        yield count


def _window(table: Table, after: tuple[str, ...], before: Instant) -> Callable[[Tx], tuple[int, tuple[str, ...] | None]]:
    return lambda tx: table.window(tx, after, before)


def refusals(tx: Tx, before: Instant) -> int:
    return len(tx("prune_refusals", before=before))


def final_tasks(db: Database, before: Instant) -> Iterator[list[str]]:
    """Ids of tasks that have been final for so long and still have payloads, a few at a time."""
    last, after = db.read(lambda tx: tx("last_task_key")[0]), 0
    while after < last:
        found = db.read(_between(after, before))
        yield from (found[start : start + TASKS] for start in range(0, len(found), TASKS))
        after += KEYS


def _between(after: int, before: Instant) -> Callable[[Tx], list[str]]:
    return lambda tx: [row[0] for row in tx("tasks_to_prune", after=after, upto=after + KEYS, before=before)]


def drop(tx: Tx, ids: list[str]) -> int:
    """Drop the payloads of final tasks; how many tasks. One that somebody pruned meanwhile is left alone, and one with an
    operation in doubt: what came of it is still to be said."""
    return sum(_drop(tx, stored) for task_id in ids if (stored := tasks.find(tx, task_id)) is not None)


def _drop(tx: Tx, stored: Stored) -> bool:
    task = stored.task
    if task.begun:
        return False
    seal = _seal(tx, task, stored.head, tx.now)
    if tx("add_pruned", task=stored.key, version=task.version, at=tx.now, hash=seal) is None:
        return False
    tx("drop_payloads", task=stored.key)
    tx("drop_snapshots", task=stored.key)
    return True


def _seal(tx: Tx, task: Task, head: str, at: Instant) -> str:
    """Of the live row, and of the task's operations, which no entry vouches for any more."""
    return digest("pruned", [task.id, task.version, at, head, snapshots.body(task), *(kept.hash for kept in operations.every(tx, task.id))])


@dataclass(frozen=True, slots=True)
class Pruned:
    """That a task's payloads were dropped, at its last version."""

    version: int
    at: Instant
    hash: str

    def vouches_for(self, tx: Tx, stored: Stored) -> bool:
        """Whether the live row and its operations are what they were when its payloads went."""
        return self.version == stored.task.version and self.hash == _seal(tx, stored.task, stored.head, self.at)


def of_task(tx: Tx, task_key: int) -> Pruned | None:
    row: Any = tx("find_pruned", task=task_key)
    return None if row is None else Pruned(*row)
