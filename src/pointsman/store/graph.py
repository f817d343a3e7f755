"""Tasks among tasks: the index over what each waits for, the children of each, and ends that are still to be told."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.kernel.chain import canonical
from pointsman.kernel.task import Dependency, Fate, Task
from pointsman.store.database import Row, Tx
from pointsman.store.tasks import COLUMNS, Stored, stored
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a task stands, read without a lock."""

    machine: str
    version: int
    state: str
    parked: bool
    parent: str | None


@dataclass(frozen=True, slots=True)
class Waited:
    """A dependency as it stands; `upstream` is None for a task that is gone. `told` while its end is still told to others."""

    task: str
    on_failure: Fate
    settled: bool
    upstream: Seen | None
    was_parked: bool
    told: bool


@dataclass(frozen=True, slots=True)
class Marker:
    """An end that is still to be told: to open children too (`cascade`), and how often there was reason to."""

    cascade: bool
    times: int


_FLAG = {0: False, 1: True}


def add(tx: Tx, dependent: str, dependency: Dependency, *, settled: bool) -> None:
    tx("add_dependency", dependent=dependent, upstream=dependency.task, on_failure=dependency.on_failure, settled=int(settled))


def of_task(tx: Tx, task_id: str) -> list[Waited]:
    return [_waited(row) for row in tx("dependencies_of", dependent=task_id)]


def _waited(row: Row) -> Waited:
    task, on_failure, settled, *upstream, was_parked, told = row
    return Waited(task, on_failure, _FLAG[settled], _upstream(upstream), bool(was_parked), bool(told))


def due(tx: Tx, upstream: str, *, blocked_too: bool, limit: int) -> list[tuple[Stored, Fate]]:
    """Dependents that an end concerns, locked, in id order; those with fate `block` only when it was a good end."""
    rows = tx("due_dependents", upstream=upstream, blocked_too=int(blocked_too), limit=limit)
    return [(stored(row[: len(COLUMNS)], tx.now), row[-1]) for row in rows]


def settle(tx: Tx, dependent: str, upstream: str) -> bool:
    return tx("settle_dependency", dependent=dependent, upstream=upstream) is not None


def open_children(tx: Tx, parent: str, limit: int) -> list[Stored]:
    """Locked, in id order."""
    return [stored(row, tx.now) for row in tx("open_children", parent=parent, limit=limit)]


def children(tx: Tx, parent: str) -> list[tuple[str, int, str, int]]:
    """(machine, version, state, count)."""
    return tx("children", parent=parent)


def deduped(tx: Tx, machine: str, key: str) -> str | None:
    row = tx("find_deduped", machine=machine, dedupe_key=key)
    return None if row is None else row[0]


def lock_joins(tx: Tx) -> None:
    """Two joins that begin beside one another could close a circle that neither sees."""
    tx("lock_joins")


def is_awaited(tx: Tx, task_id: str) -> bool:
    """Whether any task waits for this one: by a dependency, or as its parent that joins it."""
    return bool(tx("is_awaited", task=task_id)[0])


def waits_of(tx: Tx, task_id: str, limit: int, *, joins: bool = False) -> list[str]:
    """The tasks that an open one waits for; with `joins`, as if it waited for its children."""
    return [row[0] for row in tx("waits_of", task=task_id, joins=int(joins), limit=limit)]


def waits(tx: Tx) -> list[tuple[str, str]]:
    """(task, what it waits for) of all open tasks that wait for another open one."""
    return [(row[0], row[1]) for row in tx("waits")]


def parent_of(tx: Tx, task_id: str) -> str | None:
    row = tx("parent_of", id=task_id)
    return None if row is None else row[0]


def seen(tx: Tx, task_id: str) -> Seen | None:
    row = tx("standing_of", id=task_id)
    return None if row is None else Seen(row[0], row[1], row[2], row[3] is not None, row[4])


def mark(tx: Tx, task: Task, *, cascade: bool = False) -> bool:
    """Remember that the task ended or was parked; False when that concerns nobody."""
    return tx("mark_settling", task=task.id, at=task.updated_at, cascade=int(cascade), parent=task.parent) is not None


def mark_all(tx: Tx, ended: Sequence[Task]) -> list[str]:
    """The same for many tasks; those that concern somebody."""
    rows = [{"task": task.id, "at": task.updated_at, "parent": task.parent} for task in ended]
    return [row[0] for row in tx("mark_settlings", rows=canonical(rows))] if rows else []


def marker(tx: Tx, task_id: str) -> Marker | None:
    row = tx("settling", task=task_id)
    return None if row is None else Marker(bool(row[0]), row[1])


def unmark(tx: Tx, task_id: str, times: int) -> bool:
    """It was told to all; False when there is reason to look again."""
    return tx("settled", task=task_id, times=times) is not None


def left(tx: Tx, before: Instant, limit: int) -> list[str]:
    """Ends that somebody began to tell before this time, and did not finish."""
    return [row[0] for row in tx("left_settling", before=before, limit=limit)]


def strays(tx: Tx) -> list[str]:
    return [row[0] for row in tx("stray_dependencies")]


def stranded(tx: Tx) -> Sequence[tuple[str, str]]:
    """(task, what it waits for and is not there)."""
    return tx("stranded")


def untold(tx: Tx) -> list[tuple[str, str, Fate, Seen | None]]:
    """(dependent, upstream, fate, upstream as it stands): ends that nobody is to tell."""
    return [(*row[:3], _upstream(row[3:])) for row in tx("untold_ends")]


def _upstream(row: Sequence[Any]) -> Seen | None:
    machine, version, state, parked = row
    return None if machine is None else Seen(machine, version, state, parked is not None, None)
