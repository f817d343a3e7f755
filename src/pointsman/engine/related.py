"""A new task among others: whose part it is, what it waits for, and whether it is there already.

All tasks involved are locked in id order, before anything of them is read: an upstream that ends, or a parent that is
given back, does so before or after, never meanwhile.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pointsman.engine.decision import Deciding, Done
from pointsman.engine.past import at_version
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.definition import Definition
from pointsman.kernel.graph import EFFECTS, Standing, Upstream, as_made, counted, standing
from pointsman.kernel.lease import not_mine, renewed
from pointsman.kernel.refuse import owns, refuse
from pointsman.kernel.schema import initial_fields
from pointsman.kernel.steps import Accept
from pointsman.kernel.task import Children, Dependency, Task
from pointsman.kernel.terms import Terms
from pointsman.store import graph, pruning, tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored

Around = dict[str, Stored]
"""Locked tasks by id."""


def locked(tx: Tx, wanted: Iterable[str | None]) -> Around:
    """Those of these tasks that exist."""
    found = {task: tasks.find(tx, task) for task in sorted({task for task in wanted if task is not None})}
    return {task: stored for task, stored in found.items() if stored is not None}


def around(tx: Tx, machine: str, terms: Terms) -> Around:
    known = None if terms.dedupe_key is None else graph.deduped(tx, machine, terms.dedupe_key)
    return locked(tx, [known, terms.parent, *(item.task for item in terms.blocked_by)])


def missing(terms: Terms, found: Around, path: str = "") -> list[dict[str, str]]:
    """Upstreams and parents that do not exist, each with its path."""
    wanted = [(f"{path}blocked_by[{index}].task", item.task) for index, item in enumerate(terms.blocked_by)]
    wanted += [] if terms.parent is None else [("parent", terms.parent)]
    return [{"path": place, "message": "no task has this id", "task": task} for place, task in wanted if task not in found]


def unknown(absent: list[dict[str, str]]) -> Refused:
    detail = "; ".join(f"{item['path']}: {item['message']}" for item in absent[:3])
    return Refused(Refusal("unknown_task", detail, task=absent[0]["task"], failed=absent))


def known(deciding: Deciding, tx: Tx, made: Task, fields: Mapping[str, Any], found: Around, path: str = "dedupe_key") -> Done | None:
    """The task that is there under the same dedupe_key, if it was asked for in the same words."""
    if made.dedupe_key is None or (task_id := graph.deduped(tx, made.machine, made.dedupe_key)) is None:
        return None
    there = found.get(task_id) or tasks.find(tx, task_id)
    assert there is not None, "it was found by its key"
    definition = deciding.registry.definition(tx, there.task.machine, there.task.machine_version)
    given, faults = initial_fields(definition, fields)
    first, names = _first(tx, there, definition, made)
    asked = first.but(fields={name: first.fields[name] for name in names})
    if faults or not as_made(asked, made.but(fields={name: given[name] for name in names})):
        raise conflict(task_id, path)
    return Done(there.task.but(deduped=True))


def _first(tx: Tx, there: Stored, definition: Definition, made: Task) -> tuple[Task, list[str]]:
    """The task as it was made, and the fields by which another is compared with it. Where its first payload was pruned, it
    is compared in what nothing moves: the fields that no event sets, and the terms but `run_at`."""
    if pruning.of_task(tx, there.key) is None:
        return at_version(tx, there.task.id, 1)[1], [*definition.field]
    return there.task.but(run_at=made.run_at), [name for name in definition.field if name not in definition.settable]


def conflict(task: str | None, path: str) -> Refused:
    detail = "a task with this dedupe_key was asked for in other words"
    return Refused(Refusal("dedupe_conflict", f"{path}: {detail}", task=task, failed=[{"path": path, "message": detail}]))


# ── parents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def children_of(registry: Registry, tx: Tx, parent: str) -> Children:
    rows = graph.children(tx, parent)
    definitions = {(row[0], row[1]): registry.definition(tx, row[0], row[1]) for row in rows}
    return counted([(definitions[machine, version], state, count) for machine, version, state, count in rows])


def admitted(deciding: Deciding, tx: Tx, parent: Stored, owner: Proposal, there: Children, more: int) -> None:
    """Its owner may give an open task so many children more; asking renews its lease."""
    definition = deciding.registry.definition(tx, parent.task.machine, parent.task.machine_version)
    if refusal := _not_as_parent(definition, parent.task, owner):
        raise Refused(refusal)
    if there.total + more > definition.max_children:
        raise Refused(_limit(definition, parent.task, owner, "max_children", definition.max_children))
    if _depth(tx, parent.task, definition.max_depth) >= definition.max_depth:
        raise Refused(_limit(definition, parent.task, owner, "max_depth", definition.max_depth))
    if parent.task.joining is None and owns(parent.task, owner.by, owner.session):
        lease = renewed(definition.state[parent.task.state], parent.task, tx.now, None)
        assert lease is None or tasks.renew(tx, parent, lease.expires_at), "it is locked"


def _not_as_parent(definition: Definition, parent: Task, owner: Proposal) -> Refusal | None:
    """Where no event acquires, nobody can be the owner, and anybody may."""
    if definition.state[parent.state].final:
        return refuse(definition, parent, owner.by, "wrong_state", f"the parent is over: it is {parent.state}")
    ownable = any(event.acquires for event in definition.events)
    return not_mine(definition, parent, owner, only_owner=ownable)


def _limit(definition: Definition, parent: Task, owner: Proposal, name: str, most: int) -> Refusal:
    return refuse(definition, parent, owner.by, "limit_reached", f"{name} of machine {definition.name} is {most}", limit={name: most})


def _depth(tx: Tx, task: Task, most: int) -> int:
    """How many parents are above a task; no more are counted than matter."""
    depth, above = 0, task.parent
    while above is not None and depth < most:
        depth, above = depth + 1, graph.parent_of(tx, above)
    return depth


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def upstreams(registry: Registry, tx: Tx, task_id: str) -> tuple[Upstream, ...]:
    """The tasks that a task still waits for, as they stand."""
    waited = [(item, item.upstream) for item in graph.of_task(tx, task_id) if not item.settled]
    return tuple(
        Upstream(
            item.task,
            item.on_failure,
            seen.state,
            standing(registry.definition(tx, seen.machine, seen.version), seen.state, parked=seen.parked),
        )
        for item, seen in waited
        if seen is not None
    )


# ── making ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def standings(deciding: Deciding, tx: Tx, found: Around) -> dict[str, Standing]:
    """How the locked tasks stand for those who will wait for them."""
    return {task: _standing(deciding, tx, stored.task) for task, stored in found.items()}


def _standing(deciding: Deciding, tx: Tx, task: Task) -> Standing:
    definition = deciding.registry.definition(tx, task.machine, task.machine_version)
    return standing(definition, task.state, parked=task.parked is not None)


def made(deciding: Deciding, tx: Tx, machine: Bound, accept: Accept, stand: Mapping[str, Standing], found: Around) -> Done:
    """Record a new task with what it waits for. Where an upstream has ended badly already, what that means is told as
    when it ends."""
    wanted = accept.after.blocked_by
    open_ones = unsettled(stand, wanted)
    done = deciding.record(tx, machine, None, accept, blockers=len(open_ones))
    for item in wanted:
        graph.add(tx, done.task.id, item, settled=item not in open_ones)
    for item in open_ones:
        if _effect(stand, item) == "cancel" and graph.mark(tx, found[item.task].task):
            deciding.ended.add(item.task)
    return done


def unsettled(stand: Mapping[str, Standing], wanted: Iterable[Dependency]) -> list[Dependency]:
    """Those that keep a task waiting."""
    return [item for item in wanted if _effect(stand, item) != "settle"]


def _effect(stand: Mapping[str, Standing], item: Dependency) -> str | None:
    return EFFECTS.get((stand[item.task], item.on_failure))
