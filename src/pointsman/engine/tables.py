"""What every table beside the tasks and their entries must say: rows that vouch for themselves, or follow from history."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pointsman.engine.past import at_version
from pointsman.errors import StoreError
from pointsman.kernel import limits
from pointsman.kernel.chain import GENESIS
from pointsman.kernel.limits import Use
from pointsman.store import (
    checkpoints,
    feed,
    graph,
    history,
    holds,
    hooks,
    judgements,
    lanes,
    machines,
    operations,
    outbox,
    proposals,
    pruning,
    requests,
    schedules,
)
from pointsman.store import limits as uses
from pointsman.store.database import Tx

T = TypeVar("T")

PAGE = 200


@dataclass(frozen=True, slots=True)
class Broken:
    """A fault, with the task and the version of the entry where they are known."""

    what: str
    task: str | None = None
    version: int | None = None


def outside_tasks(tx: Tx) -> list[Broken]:
    of_tasks = (_machines, _strays, _dependencies, _prunings, _requests, _feed, _proposals, _judgements)
    of_the_ledger = (_operations, _testimonies, _checkpoints)
    of_the_board = (_holds, _hooks, _messages, _schedules, _lanes, _uses)
    return [fault for look in (*of_tasks, *of_the_ledger, *of_the_board) for fault in _looked(tx, look)]


def _looked(tx: Tx, look: Callable[[Tx], Iterator[Broken]]) -> Iterator[Broken]:
    """What one look finds; a row that cannot be read ends it with a fault."""
    try:
        yield from look(tx)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a tampered row may break anything that reads it; it is to be named
        yield Broken(f"a row of the {look.__name__.strip('_')} cannot be read: {type(error).__name__}")


def _every(tx: Tx, after: Callable[[Tx, Any, int], Sequence[T]], first: Any, place: Callable[[T], Any]) -> Iterator[T]:
    """Every row of a table, page by page: those behind the place of the last."""
    last = first
    while page := after(tx, last, PAGE):
        yield from page
        last = place(page[-1])


def _itself(row: T) -> T:
    return row


def _first(row: Sequence[Any]) -> Any:
    return row[0]


def _machines(tx: Tx) -> Iterator[Broken]:
    yield from (Broken(f"machine {row.name} version {row.version} was altered") for row in machines.every(tx) if not row.sound)


def _strays(tx: Tx) -> Iterator[Broken]:
    for after, upto in history.windows(tx):
        strays = tx("stray_entries", after=after, upto=upto)
        yield from (Broken(f"a stray {what} stands in the store (key {key})") for what, key in strays)


def _prunings(tx: Tx) -> Iterator[Broken]:
    """A chain of their own; only the first fault is told, since all that follows hangs on it."""
    previous = GENESIS
    for number, row in enumerate(pruning.every(tx), 1):
        if not row.follows(number, previous):
            yield Broken(f"pruning number {number} was altered, or is missing")
            return
        previous = row.hash


def _dependencies(tx: Tx) -> Iterator[Broken]:
    yield from (Broken("the store says that it waits for others, and history does not", task) for task in graph.strays(tx))


def _requests(tx: Tx) -> Iterator[Broken]:
    yield from (Broken(f"the request {key!r} of {by} does not match history", task) for by, key, task in requests.unmatched(tx))
    yield from (Broken("its idempotency record is gone", *row) for row in requests.missing(tx, pruning.kept_from(tx)))


def _feed(tx: Tx) -> Iterator[Broken]:
    yield from (Broken(what) for what in feed.faults(tx, PAGE))


def _proposals(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, proposals.after, None, lambda row: row.id)
    yield from (Broken(f"the proposal {row.id} was altered", row.task) for row in every if row.sealed != row)


def _judgements(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, judgements.after, None, _itself)
    yield from (Broken(f"the judgement of {row.check} was altered", row.task) for row in every if not row.sound)


def _operations(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, operations.after, "", lambda row: row.operation.id)
    yield from (Broken(f"the operation {row.operation.id} was altered", row.operation.task) for row in every if not row.sound)


def _testimonies(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, operations.altered, 0, _first)
    yield from (Broken(f"a testimony of the operation {operation} was altered") for _, operation, wrong in every if wrong)


def _checkpoints(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, checkpoints.altered, 0, _first)
    yield from (Broken("its checkpoint was altered", task) for _, task, wrong in every if wrong)


def _holds(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, holds.after, None, lambda row: row.hold.id)
    yield from (Broken(f"the hold {row.hold.id} was altered") for row in every if not row.sound)


def _hooks(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, hooks.after, "", lambda row: row.hook.id)
    yield from (Broken(f"the hook {row.hook.id} was altered") for row in every if not row.sound)


def _messages(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, outbox.after, 0, lambda row: row.key)
    yield from (Broken(f"a message about version {row.message.version} was altered", row.message.task) for row in every if not row.sound)
    yield from (Broken(fault) for fault in outbox.unpaired(tx))


def _schedules(tx: Tx) -> Iterator[Broken]:
    every = _every(tx, schedules.after, None, _itself)
    yield from (Broken(f"the schedule {row.name} of {row.machine} was altered") for row in every if not row.sound)


def _lanes(tx: Tx) -> Iterator[Broken]:
    yield from (Broken(f"lane {key} was altered") for key, wrong in _every(tx, lanes.altered, 0, _first) if wrong)


def _uses(tx: Tx) -> Iterator[Broken]:
    """What was taken of limits follows from the entries that took it."""
    every = _every(tx, uses.after, None, _itself)
    yield from (
        Broken(f"a use of limit {use.name} is not what history says", task) for task, at, use in every if not _took(tx, task, at, use)
    )


def _took(tx: Tx, task_id: str, version: int, use: Use) -> bool:
    entry, task = at_version(tx, task_id, version)
    published = machines.find(tx, task.machine, task.machine_version)
    event = None if published is None else published.definition.event.get(entry.link.event)
    return event is not None and use in limits.uses(event, task)
