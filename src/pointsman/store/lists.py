"""Lists of the tasks table: pages in an order that an index holds, so that their cost does not grow with the board; and counts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from pointsman.kernel.task import Task
from pointsman.store.database import Row, Tx
from pointsman.store.tasks import COLUMNS, PRIORITY_STEP, place, stored
from pointsman.types import EARLIEST, Instant

Order = Literal["created_at", "updated_at", "priority"]
Position = tuple[Instant, str]
"""A place in an ordered list: the value it is ordered by, and the id that breaks ties."""

FIRST: Position = (EARLIEST, "")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which tasks a list holds. `inbox` is a name: what it owns and what waits unowned in state `initial`."""

    machine: str | None = None
    states: Sequence[str] | None = None
    owner: str | None = None
    open: bool = False
    inbox: str | None = None
    initial: str | None = None

    def admits(self, task: Task, *, final: bool) -> bool:
        """The same question as the statements ask, of a task of the past."""
        return (
            self.machine in (None, task.machine)
            and (self.states is None or task.state in self.states)
            and self.owner in (None, task.owner)
            and not (self.open and final)
            and (self.inbox is None or task.owner == self.inbox or (task.owner is None and task.state == self.initial))
        )


def position(task: Task, order: Order) -> Position:
    return place(task) if order == "priority" else getattr(task, order), task.id


def page(tx: Tx, wanted: Filter, order: Order, limit: int, start: Position) -> list[Task]:
    """Up to `limit` tasks that follow `start` in this order, ties by id: the first of several lists, each of which an
    index holds in this order, so that the cost does not grow with the board."""
    common = {"after": start[0], "after_id": start[1], "machine": wanted.machine, "inbox": wanted.inbox, "limit": limit}
    rows = {row[0]: row for statement, chosen in _lists(tx, wanted, order) for row in tx(statement, **common, **chosen)}
    first = sorted(rows.values(), key=_RANK[order])[:limit]
    return [stored(row, tx.now).task for row in first]


def _lists(tx: Tx, wanted: Filter, order: Order) -> Iterator[tuple[str, dict[str, Any]]]:
    """The statements that hold the list together: one for each state, or the owner's open tasks."""
    states = wanted.states
    if states is None and wanted.open and (owner := wanted.owner or wanted.inbox):
        yield "list_owned", {"owner": owner, "order": order}
        states = (wanted.initial,) if wanted.inbox and wanted.initial and not wanted.owner else ()
    for state in _states(tx) if states is None else states:
        for final in (0,) if wanted.open else (0, 1):
            yield f"list_by_{order}", {"state": state, "final": final, "owner": wanted.owner, "initial": wanted.initial}


def _states(tx: Tx) -> list[str]:
    return [row[0] for row in tx("states")]


_ID, _CREATED, _UPDATED, _PRIORITY, _RUN = (COLUMNS.index(name) for name in ("id", "created_at", "updated_at", "priority", "run_at"))
_RANK: Mapping[Order, Callable[[Row], Position]] = {
    "created_at": itemgetter(_CREATED, _ID),
    "updated_at": itemgetter(_UPDATED, _ID),
    "priority": lambda row: ((row[_CREATED] if row[_RUN] is None else row[_RUN]) - row[_PRIORITY] * PRIORITY_STEP, row[_ID]),
}


def counted(tx: Tx) -> list[tuple[str, int, str, int]]:
    """(machine, version, state, count) of all tasks. Reads every row."""
    return tx("count_tasks")


def waiting(tx: Tx) -> list[tuple[str, str, int]]:
    """(machine, state, count) of the open tasks that nobody owns. Reads an index."""
    return tx("count_waiting")
