"""What the end of a task means for others: dependents that waited for it, children to be cancelled with it, and a parent
that joins it.

The transaction that ends a task only leaves a mark, however many wait. Then its process tells them, in bounded units, each
of which finds what is still to do. A caller waits for `MOST_TOLD` of them; the rest, and all when its process dies, is a duty's.
"""

from collections.abc import Iterable
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from pointsman.engine import related
from pointsman.engine.decision import Deciding
from pointsman.engine.door import Call, Door
from pointsman.engine.record import Chance
from pointsman.engine.registry import Registry
from pointsman.engine.steps import Steps, Write, drive
from pointsman.errors import StoreError
from pointsman.kernel import graph as rules
from pointsman.kernel.bound import Bound
from pointsman.kernel.cancelling import cancelled
from pointsman.kernel.lease import POINTSMAN
from pointsman.kernel.task import Fate, Task
from pointsman.store import graph, news, tasks
from pointsman.store.database import Tx
from pointsman.store.graph import Seen
from pointsman.store.requests import Request
from pointsman.store.tasks import Stored
from pointsman.types import Duration, seconds

if TYPE_CHECKING:
    from pointsman.engine.view import Engine

AT_ONCE = 64
"""Tasks that one unit tells."""

MOST_TOLD = 4 * AT_ONCE
"""Tasks that are told before whoever ended one is answered; a unit that tells none counts as one."""

PATIENCE: Duration = seconds(5)
"""How long the process that ended a task is left to tell it."""

TAKEN_AT_ONCE = 16


def follow(deciding: Deciding, task_id: str, tx: Tx) -> tuple[int, bool]:
    """One bounded part of telling an end: how many were told, and whether more is to do. Each locks its tasks in id order, and
    one kind of them: first dependents, then children, then the parent."""
    marker = graph.marker(tx, task_id)
    if marker is None:
        return 0, False
    ended = graph.seen(tx, task_id)
    assert ended is not None, "tasks are not removed"
    told = _dependents(deciding, tx, task_id, ended)
    if not told and marker.cascade:
        told = _children(deciding, tx, task_id)
    if told == AT_ONCE or (told and (marker.cascade or ended.parent)):
        return told, True
    if ended.parent is not None:
        _joined(deciding, tx, ended.parent)
    return told, not graph.unmark(tx, task_id, marker.times)


def telling(deciding: Deciding, most: float = MOST_TOLD) -> Steps[None]:
    """Tell the ends that a committed decision left to be told, and those that they bring, up to so many tasks."""
    told = 0
    while deciding.ended and told < most:
        following = min(deciding.ended)
        count, more = yield Write(partial(follow, deciding, following))
        told += max(count, 1)
        if not more:
            deciding.ended.discard(following)


def unasked(registry: Registry, chance: Chance, ended: Iterable[str]) -> Deciding:
    """Ends to be told for nobody who waits."""
    call = Call(POINTSMAN, Door("duty"), None, Request(POINTSMAN.name, "", ""), given=False)
    return Deciding(call, registry, chance, {*ended})


def take_over(engine: "Engine") -> int:
    """Tell ends that nobody tells any more; how many were taken."""
    found = engine.db.read(lambda tx: graph.left(tx, tx.now - PATIENCE, TAKEN_AT_ONCE))
    for task in found:
        tell(engine, task)
    return len(found)


def tell(engine: "Engine", task: str, most: float = inf) -> None:
    """All of an end and of the ends that it brings, or up to so many tasks of it."""
    drive(telling(unasked(engine.registry, engine.chance, [task]), most), engine.db)


def is_marked(engine: "Engine", task: str) -> bool:
    """Whether a task's end is still to be told."""
    return engine.db.read(lambda tx: graph.marker(tx, task)) is not None


def _standing(registry: Registry, tx: Tx, seen: Seen) -> rules.Standing:
    definition = registry.definition(tx, seen.machine, seen.version)
    return rules.standing(definition, seen.state, parked=seen.parked)


def _machine(deciding: Deciding, tx: Tx, task: Task) -> Bound:
    """Its form alone: none of its functions is asked."""
    return Bound(deciding.registry.definition(tx, task.machine, task.machine_version), {})


def _dependents(deciding: Deciding, tx: Tx, task_id: str, ended: Seen) -> int:
    """Tell some of those who wait for a task; how many. One that is no longer parked tells nobody."""
    standing = _standing(deciding.registry, tx, ended)
    if standing == "open":
        return 0
    found = graph.due(tx, task_id, blocked_too=standing == "done", limit=AT_ONCE)
    for dependent, fate in found:
        _told(deciding, tx, dependent, rules.EFFECTS[standing, fate], f"task {task_id}, which it waits for, is {ended.state}", task_id)
    return len(found)


def _told(deciding: Deciding, tx: Tx, dependent: Stored, effect: rules.Effect, reason: str, cause: str) -> None:
    """A dependent waits for one task less, or is cancelled; one that is over already only loses the dependency."""
    machine = _machine(deciding, tx, dependent.task)
    final = machine.definition.state[dependent.task.state].final
    if effect == "cancel" and not final:
        deciding.unasked(tx, machine, dependent, cancelled(machine.definition, dependent.task, tx.now, reason, cause))
        found = tasks.find(tx, dependent.task.id)
        assert found is not None, "it is locked"
        dependent, final = found, True
    if not (graph.settle(tx, dependent.task.id, cause) and tasks.unblock(tx, dependent, final=final)):
        raise StoreError("store_busy", "the dependent moved inside the transaction; nothing was written, try again")
    if dependent.blockers == 1:
        news.note(tx, dependent.task, final=final)


def _children(deciding: Deciding, tx: Tx, task_id: str) -> int:
    """Cancel some of the open children, and what is below them; how many."""
    found = graph.open_children(tx, task_id, AT_ONCE)
    for child in found:
        machine = _machine(deciding, tx, child.task)
        step = cancelled(machine.definition, child.task, tx.now, f"its parent, task {task_id}, was cancelled", task_id)
        deciding.unasked(tx, machine, child, step)
        graph.mark(tx, step.after, cascade=True)
        deciding.ended.add(child.task.id)
    return len(found)


def _joined(deciding: Deciding, tx: Tx, parent_id: str) -> None:
    """Give a parent back when its rule is met, or can no longer be met. It is locked before its children are counted, as
    it is by whoever makes one more."""
    parent = tasks.find(tx, parent_id)
    if parent is None or parent.task.joining is None:
        return
    children = related.children_of(deciding.registry, tx, parent_id)
    met = rules.is_over(parent.task.joining, children)
    if met is not None:
        machine = _machine(deciding, tx, parent.task)
        deciding.unasked(tx, machine, parent, rules.joined(machine.definition, parent.task, children, met=met, now=tx.now))


# ── nobody is stranded ───────────────────────────────────────────────────────────────────────────────────────────────


def stranded(registry: Registry, tx: Tx) -> list[tuple[str, str]]:
    """Open tasks that nothing will ever move on, each with why: (task, in words)."""
    found = [(task, f"waits for {what}, and there is none") for task, what in graph.stranded(tx)]
    found += [(circle[0], "waits for itself: " + " → ".join(circle)) for circle in rules.circles(graph.waits(tx))]
    for dependent, upstream, fate, seen in graph.untold(tx):
        if _forgotten(registry, tx, fate, seen):
            found.append((dependent, f"waits for task {upstream}, whose end nobody is to tell"))
    return found


def _forgotten(registry: Registry, tx: Tx, fate: Fate, seen: Seen | None) -> bool:
    return seen is None or (_standing(registry, tx, seen), fate) in rules.EFFECTS
