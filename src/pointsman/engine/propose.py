"""The units of work behind `create`, `claim` and `propose`: read, decide, record, in one transaction."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pointsman.engine import pending
from pointsman.engine.decision import Asked, Deciding, Done, Pending, find, weighed
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.task import Task
from pointsman.store import tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored
from pointsman.types import uuid7


def create(deciding: Deciding, machine: str, fields: Mapping[str, Any], priority: int, tx: Tx, look: bool) -> Done:
    if done := deciding.repeated(tx, look):
        return done
    bound = deciding.registry.taking_new(tx, machine)
    task_id = uuid7(tx.now, deciding.chance(74))
    decision = kernel.create(bound, task_id, fields, deciding.call.by, tx.now, priority)
    if isinstance(decision, Refuse):
        raise Refused(decision.refusal)
    return deciding.replayed(tx, look) or deciding.record(tx, bound, None, decision)


def propose(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx, look: bool) -> Done | Pending:
    """Decide on one task. When checks must run first, the proposal is made durable instead."""
    found = find(tx, task_id)
    case = _case(deciding, tx, found, proposal)
    if earlier := deciding.replayed(tx, look) or pending.requested(tx, deciding, look):
        return earlier
    match weighed(tx, case, {}):
        case Accept() as accept:
            return deciding.record(tx, case.machine, found, accept)
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks() as checks:
            return pending.begin(tx, deciding, case, Asked(case.machine, checks))


def dry_run(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx) -> Done:
    """What would be decided, on a snapshot; runs no check and writes nothing."""
    found = find(tx, task_id)
    case = _case(deciding, tx, found, proposal)
    match weighed(tx, case, {}):
        case Accept(after, refusal=refusal):
            return Done(after, refusal and replace(refusal, state=found.task.state, version=found.task.version, recorded=False))
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks(needs):
            names = ", ".join(need.check for need in needs)
            raise Refused(case.no("evidence_pending", f"a dry run runs no check; to be judged: {names}"))


def claim(deciding: Deciding, machine: str, task_id: str | None, proposal: Proposal, tx: Tx, look: bool) -> Done | None:
    """Take one task by id, or the next; None when nothing waits."""
    if done := deciding.repeated(tx, look) or (deciding.replayed(tx, look) if task_id is None else None):
        return done
    found = _waiting(deciding.registry, tx, machine) if task_id is None else find(tx, task_id)
    if found is None:
        return None
    if found.task.machine != machine:
        raise Refused(Refusal("unknown_task", f"no task of machine {machine} has this id", task=found.task.id))
    case = _case(deciding, tx, found, proposal)
    if done := deciding.replayed(tx, look):
        return done
    match weighed(tx, case, {}):
        case Accept() as accept:
            return deciding.record(tx, case.machine, found, accept)
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks():
            raise Refused(case.no("evidence_pending", "this claim needs a check; propose the event by name"))


def _case(deciding: Deciding, tx: Tx, found: Stored, proposal: Proposal) -> Case:
    """The question, well formed. A proposal without an event's name means the acquiring one."""
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    named = proposal if proposal.event else replace(proposal, event=_acquiring(machine, found.task))
    case = kernel.read(machine, found.task, named, tx.now)
    if isinstance(case, Refuse):
        raise Refused(case.refusal)
    return case


def _waiting(registry: Registry, tx: Tx, machine: str) -> Stored | None:
    """The first in line over the versions that can be served here."""
    heads = [tasks.next_claimable(tx, machine, version, state) for version, state in registry.waiting(tx, machine)]
    return min((head for head in heads if head is not None), key=lambda head: (tasks.place(head.task), head.key), default=None)


def _acquiring(bound: Bound, task: Task) -> str:
    """The acquiring event that is open in the task's state, else the first, which will say why not."""
    events = [event for event in bound.definition.events if event.acquires]
    if not events:
        raise Refused(Refusal("unknown_event", f"machine {task.machine} has no event that claims", task=task.id))
    return next((event.name for event in events if event.target(task.state) is not None), events[0].name)
