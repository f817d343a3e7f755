"""What an accepted step makes of a task: new content and all that follows from it, ownership, decisions."""

from collections.abc import Mapping
from dataclasses import replace

from pointsman.kernel.bound import Bound, Judgement, inputs_digest
from pointsman.kernel.case import Case
from pointsman.kernel.chain import digest, same
from pointsman.kernel.definition import Check, Definition
from pointsman.kernel.lease import entered, granted
from pointsman.kernel.refuse import owns
from pointsman.kernel.retry import counted
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.task import Decided, Evidence, Lease, Task
from pointsman.types import Fields, Instant, Json


def proposed(case: Case) -> Task:
    """The task as it would be with the event's values, content rejudged when it changed."""
    task, values = case.task, case.values
    touched = [name for name, value in values.items() if not same(task.fields[name], value)]
    if not touched:
        return task
    fields = {**task.fields, **values}
    if all(case.machine.definition.field[name].kind != "content" for name in touched):
        return task.but(fields=fields)
    contributors = _with(task, case.proposal.by)
    revised = task.but(revision=task.revision + 1, decisions=(), contributors=contributors)
    return content(case.machine, revised, fields, case.now)


def content(machine: Bound, task: Task, fields: Fields, now: Instant) -> Task:
    """Bring everything that follows from content in line with it: computed fields, digest, evidence."""
    definition = machine.definition
    whole = {**fields, **machine.compute(fields)} if definition.computed else fields
    evidence = {check.name: _rejudged(machine, check, whole, task.evidence.get(check.name), now) for check in definition.checks}
    kept = {name: item for name, item in evidence.items() if item is not None}
    return task.but(fields=whole, digest=content_digest(definition, whole), evidence=kept)


def _rejudged(machine: Bound, check: Check, fields: Fields, before: Evidence | None, now: Instant) -> Evidence | None:
    """An eager check is judged anew; any other keeps its evidence, stale when its inputs moved."""
    if not check.eager and before is None:
        return None
    inputs = machine.inputs(check, fields)
    key = "" if inputs is None else inputs_digest(check, inputs)
    if before is not None and before.inputs_digest == key and before.status != "stale":
        return before
    if not check.eager:
        return replace(before, status="stale") if before is not None else None
    return None if inputs is None else evidence_of(machine.judge(check, inputs), key, now)


def content_digest(definition: Definition, fields: Mapping[str, Json]) -> str:
    """The digest that approvals bind to: every content field by name."""
    return digest("content", {name: fields[name] for name in definition.content})


def evidence_of(judgement: Judgement, key: str, now: Instant) -> Evidence:
    return Evidence(judgement.status, judgement.reason, key, "pointsman", now, judgement.detail)


def acquired(case: Case, task: Task) -> Task:
    if not case.event.acquires:
        return task
    by = case.proposal.by
    return task.but(
        owner=by.name,
        owner_root=by.root_key,
        session=case.proposal.session,
        epoch=task.epoch + 1,
        contributors=_with(task, by),
    )


def decided(case: Case, task: Task) -> Task:
    if not case.event.decides:
        return task
    by, definition = case.proposal.by, case.machine.definition
    notes = (case.values[setting.field] for setting in case.event.sets if definition.field[setting.field].kind == "note")
    note = next((str(text) for text in notes if text is not None), None)
    made = Decided(
        event=case.event.name,
        by=by.name,
        root=by.root_key,
        at=case.now,
        revision=case.task.revision,
        digest=case.task.digest,
        shown=case.proposal.shown,
        machine_version=task.machine_version,
        note=note,
    )
    return task.but(decisions=(*task.decisions, made))


def _with(task: Task, by: Principal) -> tuple[str, ...]:
    if by.name == ANONYMOUS or by.root_key in task.contributors:
        return task.contributors
    return (*task.contributors, by.root_key)


def moved(case: Case, proposed: Task, state: str) -> Task:
    definition, task = case.machine.definition, case.task
    owner = case.proposal.by.name if case.event.acquires else task.owner
    return proposed.but(
        **entered(definition, task, state, case.now),
        version=task.version + 1,
        updated_at=case.now,
        attempts=counted(definition, task, owner, state),
        lease=_lease(case, state),
        joining=task.joining if _apart(case, state) else None,
    )


def _apart(case: Case, state: str) -> bool:
    """A call of somebody else that leaves the task where it is: its owner keeps the time it has, and waits if it waits."""
    task, proposal = case.task, case.proposal
    return state == task.state and not owns(task, proposal.by, proposal.session) and not case.event.acquires


def _lease(case: Case, state: str) -> Lease | None:
    """Every accepted call of the owner renews, and whoever has the task back from a decision gets a fresh lease; a
    call of somebody else in the same state leaves it."""
    task, proposal = case.task, case.proposal
    if _apart(case, state):
        return task.lease
    owner = proposal.by.name if case.event.acquires else task.owner
    return granted(case.machine.definition.state[state], owner, case.now, proposal.lease)
