"""Snapshots of a task every so many versions: they make any version cheap, and say nothing that history does not."""

from collections.abc import Mapping
from typing import Any

from pointsman.kernel.chain import canonical, parse
from pointsman.kernel.task import Task, changes
from pointsman.store.database import Tx

EVERY = 32


def body(task: Task) -> str:
    """The whole task, in the form of the first entry's changes, with its time."""
    return canonical({"at": task.updated_at, "changes": changes(None, task)})


def keep(tx: Tx, moved: Mapping[int, Task]) -> None:
    """Keep one of each task that is due, by their keys."""
    due = [{"task": key, "version": task.version, "body": body(task)} for key, task in moved.items() if task.version % EVERY == 0]
    if due:
        tx("add_snapshots", rows=canonical(due))


def before(tx: Tx, task_id: str, version: int) -> tuple[int, dict[str, Any]] | None:
    """The last one at or before a version: its version and what `body` kept."""
    row = tx("snapshot_before", task=task_id, version=version)
    return None if row is None else (row[0], parse(row[1]))


def of_task(tx: Tx, task_key: int) -> dict[int, str]:
    return dict(tx("snapshots_of", task=task_key))
