"""Many tasks at once, all or none: they may wait for one another, and their parent for them.

    plan (what each will be, or that it is there already) → the parent → record

The caller's idempotency key is that of the first entry, whose payload says what all were answered.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pointsman.engine import circles, related
from pointsman.engine.decision import Deciding, Done, answered, known
from pointsman.engine.past import at_version
from pointsman.engine.related import Around
from pointsman.engine.terms import REF, Item
from pointsman.errors import invalid
from pointsman.kernel import decide as kernel
from pointsman.kernel import graph as rules
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.ingest import LISTED, Faults
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Dependency, Rule, Task
from pointsman.kernel.terms import Terms
from pointsman.store import graph, requests
from pointsman.store.database import Tx
from pointsman.store.requests import Request
from pointsman.types import uuid7


@dataclass(frozen=True, slots=True)
class Asked:
    """`items` in the order in which they can be made, `refs` in the order in which they were asked for."""

    items: Sequence[Item]
    refs: Sequence[str]
    parent: str | None
    rule: Rule | None


@dataclass(slots=True)
class _Plan:
    """What each item comes to, by ref: a task, and the step that makes it unless it is there already. `waits` are the tasks
    that those to be made wait for, each with the path under which it was asked for."""

    tasks: dict[str, Task] = field(default_factory=dict[str, Task])
    steps: list[tuple[Bound, Accept]] = field(default_factory=list[tuple[Bound, Accept]])
    waits: list[tuple[Dependency, str]] = field(default_factory=list[tuple[Dependency, str]])
    faults: Faults = field(default_factory=Faults)


def create(deciding: Deciding, asked: Asked, owner: Proposal, tx: Tx, look: bool) -> list[Task]:
    if done := deciding.repeated(tx, look):
        return _again(deciding, tx, done)
    machines = {name: deciding.registry.taking_new(tx, name) for name in dict.fromkeys(item.machine for item in asked.items)}
    found = related.locked(tx, _involved(tx, asked))
    if absent := [fault for item in asked.items for fault in related.missing(_outside(item.terms), found, f"{item.path}.")]:
        raise related.unknown(absent[:LISTED])
    plan = _planned(deciding, tx, machines, asked.items, found)
    if done := deciding.replayed(tx, look):
        return _again(deciding, tx, done)
    answers = [plan.tasks[ref] for ref in asked.refs]
    if not _recorded(deciding, tx, plan, asked, owner, found, [[task.id, task.version] for task in answers]):
        deciding.bind(tx, answers)
    return answers


def _again(deciding: Deciding, tx: Tx, done: Done) -> list[Task]:
    """What the same request was answered first."""
    kept = requests.find(tx, deciding.call.request)
    if kept is not None and kept.known:
        return [known(tx, *item).but(replayed=done.replayed) for item in kept.known]
    entry = at_version(tx, done.task.id, done.task.version)[0]
    listed: Sequence[tuple[str, int]] = (entry.payload or {})["batch"]
    tasks = (answered(tx, deciding.registry, deciding.call.by, task, version).task for task, version in listed)
    return [task.but(replayed=done.replayed) for task in tasks]


def _involved(tx: Tx, asked: Asked) -> Iterator[str | None]:
    yield asked.parent
    for item in asked.items:
        yield from (dependency.task for dependency in _outside(item.terms).blocked_by)
        if item.terms.dedupe_key is not None:
            yield graph.deduped(tx, item.machine, item.terms.dedupe_key)


def _outside(terms: Terms) -> Terms:
    """With the dependencies alone that are no items of the batch."""
    return replace(terms, blocked_by=tuple(item for item in terms.blocked_by if not item.task.startswith(REF)))


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _planned(deciding: Deciding, tx: Tx, machines: dict[str, Bound], items: Sequence[Item], found: Around) -> _Plan:
    """Every item, in an order in which what it waits for comes before it. All that does not fit is refused at once."""
    plan, twins = _Plan(), dict[tuple[str, str], Task]()
    for item in items:
        blocked_by = _resolved(item, plan)
        terms, machine = replace(item.terms, blocked_by=tuple(one for one, _ in blocked_by.values())), machines[item.machine]
        decision = kernel.create(machine, uuid7(tx.now, deciding.chance(74)), item.fields, deciding.call.by, tx.now, terms)
        if isinstance(decision, Refuse):
            plan.faults += [(f"{item.path}.{fault['path']}", fault["message"]) for fault in _faults(decision)]
            plan.tasks[item.ref] = Task.of({"id": item.ref})
            continue
        plan.tasks[item.ref] = _twin(decision.after, twins, item) or _there(deciding, tx, decision.after, item, found) or decision.after
        if plan.tasks[item.ref] is decision.after:
            plan.steps.append((machine, decision))
            plan.waits += blocked_by.values()
    if plan.faults:
        raise invalid(*plan.faults[:LISTED])
    return plan


def _faults(decision: Refuse) -> Sequence[dict[str, str]]:
    return [{"path": str(item["path"]), "message": str(item["message"])} for item in decision.refusal.failed]


def _resolved(item: Item, plan: _Plan) -> dict[str, tuple[Dependency, str]]:
    """What an item waits for, by id, each with its path: refs and ids that come to one task are one dependency."""
    found = dict[str, tuple[Dependency, str]]()
    for index, one in enumerate(item.terms.blocked_by):
        asked, path = replace(one, task=_id(one.task, plan)), f"{item.path}.blocked_by[{index}]"
        first, _ = found.setdefault(asked.task, (asked, f"{path}.task"))
        if first.on_failure != asked.on_failure:
            plan.faults.append((f"{path}.on_failure", "is not what it is where the same task is named before"))
    return found


def _id(task: str, plan: _Plan) -> str:
    return plan.tasks[task].id if task.startswith(REF) else task


def _twin(task: Task, twins: dict[tuple[str, str], Task], item: Item) -> Task | None:
    """The item of the same dedupe_key that came before in this batch."""
    if task.dedupe_key is None:
        return None
    first = twins.setdefault((task.machine, task.dedupe_key), task)
    if first is not task and not rules.as_made(first, task):
        raise related.conflict(None, f"{item.path}.dedupe_key")
    return None if first is task else first


def _there(deciding: Deciding, tx: Tx, task: Task, item: Item, found: Around) -> Task | None:
    done = related.known(deciding, tx, task, item.fields, found, f"{item.path}.dedupe_key")
    return None if done is None else done.task


# ── the record ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _recorded(deciding: Deciding, tx: Tx, plan: _Plan, asked: Asked, owner: Proposal, found: Around, listed: list[list[str | int]]) -> bool:
    """Write what is to be made, and that the parent waits; whether that was anything."""
    keys, stand, gathering = _requests(deciding, tx), related.standings(deciding, tx, found), deciding.gathering()
    parent = None if asked.parent is None else found[asked.parent]
    before = None
    if parent is not None:
        before = related.children_of(deciding.registry, tx, parent.task.id)
        related.admitted(deciding, tx, parent, owner, before, len(plan.steps))
        if asked.rule is not None or parent.task.joining is not None:
            waits = {one.task: path for one, path in plan.waits if one.task in found and related.unsettled(stand, [one])}
            circles.refuse(tx, parent.task, waits, begins=asked.rule is not None and before.open > 0)
    for machine, step in plan.steps:
        related.made(_under(gathering, next(keys)), tx, machine, _listing(step, listed), stand, found)
        stand[step.after.id] = "open"
        listed = []
    gathering.write_gathered(tx)
    if parent is None or before is None or asked.rule is None:
        return bool(plan.steps)
    step = rules.waiting(parent.task, asked.rule, before, tx.now)
    begins = rules.is_over(rules.joining(asked.rule, before), related.children_of(deciding.registry, tx, parent.task.id)) is None
    if begins:
        definition = deciding.registry.definition(tx, parent.task.machine, parent.task.machine_version)
        _under(deciding, next(keys)).record(tx, Bound(definition, {}), parent, _listing(step, listed))
    return bool(plan.steps) or begins


def _requests(deciding: Deciding, tx: Tx) -> Iterator[Request]:
    """The caller's, then one of its own for each further entry."""
    yield deciding.call.request
    while True:
        yield Request(deciding.call.by.name, uuid7(tx.now, deciding.chance(74)), "")


def _under(deciding: Deciding, request: Request) -> Deciding:
    return replace(deciding, call=replace(deciding.call, request=request))


def _listing(step: Accept, listed: list[list[str | int]]) -> Accept:
    """The first entry says what the whole batch was answered."""
    return replace(step, payload={**step.payload, "batch": [*listed]}) if listed else step
