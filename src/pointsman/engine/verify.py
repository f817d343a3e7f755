"""Does the past still say what it said? Recompute every hash, refold every task, compare the live rows.

Each fault names the first bad entry of its task and what is wrong with it. Tasks are read page by page, each page on
one snapshot, so verification runs beside live work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.engine.past import step
from pointsman.engine.tables import PAGE, Broken, outside_tasks
from pointsman.errors import StoreError
from pointsman.kernel import limits
from pointsman.kernel.chain import GENESIS
from pointsman.kernel.graph import EFFECTS, standing
from pointsman.kernel.operation import as_json
from pointsman.kernel.task import Task
from pointsman.store import (
    feed,
    graph,
    history,
    machines,
    operations,
    pruning,
    snapshots,
    tasks,
)
from pointsman.store.database import Database, Row, Tx
from pointsman.store.history import Recorded
from pointsman.store.pruning import Pruned


@dataclass(frozen=True, slots=True)
class Report:
    tasks: int
    entries: int
    faults: tuple[Broken, ...]

    @property
    def ok(self) -> bool:
        return not self.faults


def verify(db: Database, head: Mapping[str, Any] | None = None) -> Report:
    """Everything, and whether the feed still holds the exported `head`."""
    faults = db.read(outside_tasks)
    faults += [] if head is None else db.read(lambda tx: _beyond(tx, head))
    counted = entries = after = 0
    while page := db.read(lambda tx, after=after: _page(tx, after)):
        for key, count, fault in page:
            after, counted, entries = key, counted + 1, entries + count
            faults += [fault] if fault else []
    return Report(counted, entries, tuple(faults))


def _page(tx: Tx, after: int) -> list[tuple[int, int, Broken | None]]:
    return [(row[0], *_judged(tx, row)) for row in tx("tasks_after", after=after, limit=PAGE)]


def _judged(tx: Tx, row: Row) -> tuple[int, Broken | None]:
    """A task's entries, how many, and its first fault. What cannot even be read is a fault, not the end."""
    try:
        return _task(tx, row)
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 - a tampered row may break anything that reads it; it is to be named
        return 0, Broken(f"it cannot be read: {type(error).__name__}", str(row[1]))


def _task(tx: Tx, row: Row) -> tuple[int, Broken | None]:
    task_id = row[1]
    entries = history.of_task(tx, task_id, 0)
    kept = snapshots.of_task(tx, row[0])
    if pruned := pruning.of_task(tx, row[0]):
        return len(entries), _without_payloads(tx, row, entries, pruned, kept)
    task, head, told = None, GENESIS, dict[str, tuple[int, Any]]()
    for version, entry in enumerate(entries, 1):
        if what := history.broken(entry, head, version):
            return len(entries), Broken(what, task_id, version)
        task, head = step(task, entry), entry.hash
        if what := _unlike(entry, task, kept):
            return len(entries), Broken(what, task_id, version)
        if said := (entry.payload or {}).get("operation"):
            told[said["id"]] = version, said
    if task is None:
        return 0, Broken("a task without history", task_id)
    if kept:
        return len(entries), Broken("a stray snapshot stands in the store", task_id, min(kept))
    return len(entries), _ledger(tx, task, told) or _live(tx, row, task, head)


def _ledger(tx: Tx, task: Task, told: Mapping[str, tuple[int, Any]]) -> Broken | None:
    """A task's operations are those of its history, each as its last entry says."""
    there = {kept.operation.id: (kept.version, as_json(kept.operation)) for kept in operations.every(tx, task.id)}
    for operation in sorted(there.keys() | told.keys()):
        if there.get(operation) != told.get(operation):
            version = told.get(operation, there.get(operation, (task.version, None)))[0]
            return Broken(f"the operation {operation} is not what history says", task.id, version)
    return None


def _without_payloads(tx: Tx, row: Row, entries: list[Recorded], pruned: Pruned, kept: dict[int, str]) -> Broken | None:
    """A task whose payloads were pruned cannot be folded: its chain is recomputed, and the record of the pruning vouches
    for the live row."""
    task_id, head = row[1], GENESIS
    for version, entry in enumerate(entries, 1):
        if what := history.broken(entry, head, version, pruned=True):
            return Broken(what, task_id, version)
        head = entry.hash
    stored = tasks.stored(row, tx.now)
    if not pruned.vouches_for(tx, stored):
        return Broken("the live row is not what it was when its payloads were pruned", task_id, pruned.version)
    last = entries[-1].link if entries else None
    if last is None or (last.version, last.to_state, last.epoch, last.at) != _moved(stored.task):
        return Broken("the live row is not what its last entry says", task_id, pruned.version)
    if kept:
        return Broken("a stray snapshot stands in the store", task_id, min(kept))
    return _live(tx, row, stored.task, head)


def _moved(task: Task) -> tuple[int, str, int, int]:
    return task.version, task.state, task.epoch, task.updated_at


def _unlike(entry: Recorded, task: Task, kept: dict[int, str]) -> str | None:
    """What an entry's payload must bear out: its own columns, and the snapshot taken after it."""
    link = entry.link
    if (link.to_state, link.epoch) != (task.state, task.epoch):
        return "its columns and its payload disagree"
    due = link.version % snapshots.EVERY == 0
    if kept.pop(link.version, None) != (snapshots.body(task) if due else None):
        return "the snapshot after it is not what history says"
    return None


def _live(tx: Tx, row: Row, task: Task, head: str) -> Broken | None:
    published = machines.find(tx, task.machine, task.machine_version)
    if published is None:
        return Broken("its machine version was never published", task.id, task.version)
    final = published.definition.state[task.state].final
    waited = graph.of_task(tx, task.id) if task.blocked_by else []
    if what := _waits(tx, task, waited):
        return Broken(what, task.id, task.version)
    blockers, lane = sum(not item.settled for item in waited), limits.lane(published.definition, task)
    expected = tasks.columns(task, final=final, head=head) | {"key": row[0], "blockers": blockers, "lane": lane}
    for name, value in zip((*tasks.COLUMNS, "final", "place", "lane"), row, strict=True):
        if name != "lease_until" and value != expected[name]:
            return Broken(f"the live row's {name} is not what history says", task.id, task.version)
    return None


def _waits(tx: Tx, task: Task, waited: Sequence[graph.Waited]) -> str | None:
    """The index over what a task waits for must say the same, and be settled exactly where an end has settled it."""
    if {(item.task, item.on_failure) for item in waited} != {(item.task, item.on_failure) for item in task.blocked_by}:
        return "the tasks that it waits for are not those that history names"
    wrong = [item.task for item in waited if not _settled_rightly(tx, item)]
    return f"whether it still waits for {wrong[0]} is not what history says" if wrong else None


def _settled_rightly(tx: Tx, item: graph.Waited) -> bool:
    """Until an end is told to all, either may be."""
    if item.upstream is None or (form := machines.find(tx, item.upstream.machine, item.upstream.version)) is None:
        return False
    stands = standing(form.definition, item.upstream.state, parked=item.upstream.parked)
    due = (stands, item.on_failure) in EFFECTS
    if item.settled:
        return due or (item.was_parked and item.on_failure != "block")
    return not due or item.told


def _beyond(tx: Tx, head: Mapping[str, Any]) -> list[Broken]:
    """The exported head must stand in the feed: the chain up to it was recomputed before."""
    seq, last = head["seq"], feed.head(tx).seq
    if seq > last:
        return [Broken(f"the tail was cut: the head names feed number {seq}, the feed ends at {last}")]
    row = feed.row(tx, seq)
    if seq and (row is None or row.hash != head["hash"]):
        return [Broken(f"feed number {seq} is not what the head names: entries before it were removed or changed")]
    return []
