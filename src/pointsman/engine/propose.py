"""The units of work behind `create` and `propose`: read, decide, record, in one transaction."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pointsman.engine import holding, pending, related
from pointsman.engine.decision import Asked, Deciding, Done, Pending, find, weighed
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.lease import lapsed
from pointsman.kernel.task import Task
from pointsman.kernel.terms import Terms
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored
from pointsman.types import uuid7


def create(deciding: Deciding, machine: str, fields: Mapping[str, Any], terms: Terms, owner: Proposal, tx: Tx, look: bool) -> Done:
    """A new task, or the one that is there under its dedupe_key. `owner` is what its parent's owner says of itself."""
    if done := deciding.repeated(tx, look):
        return done
    bound = deciding.registry.taking_new(tx, machine)
    found = related.around(tx, machine, terms)
    if absent := related.missing(terms, found):
        raise related.unknown(absent)
    task_id = uuid7(tx.now, deciding.chance(74))
    decision = kernel.create(bound, task_id, fields, deciding.call.by, tx.now, terms)
    if isinstance(decision, Refuse):
        raise Refused(decision.refusal)
    if done := deciding.replayed(tx, look) or related.known(deciding, tx, decision.after, fields, found):
        return done
    if terms.parent is not None:
        related.admitted(deciding, tx, found[terms.parent], owner, related.children_of(deciding.registry, tx, terms.parent), 1)
    return related.made(deciding, tx, bound, decision, related.standings(deciding, tx, found), found)


def propose(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx, look: bool) -> Done | Pending:
    """Decide on one task. When checks must run first, the proposal is made durable instead."""
    found = find(tx, task_id)
    case = case_of(deciding, tx, found, proposal)
    if earlier := deciding.replayed(tx, look) or pending.requested(tx, deciding, look):
        return earlier
    free, case = freed(deciding, tx, found, case)
    case = holding.borne(tx, case, found.task, deciding.holds(tx))
    match weighed(tx, case, {}):
        case Accept() as accept:
            holding.paced(tx, case)
            return deciding.record(tx, case.machine, free, accept)
        case Refuse(refusal):
            return refused(refusal, found, free)
        case NeedChecks() as checks:
            return pending.begin(tx, deciding, case, Asked(case.machine, checks))


def dry_run(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx) -> Done:
    """What would be decided, on a snapshot; runs no check and writes nothing."""
    found = find(tx, task_id)
    case = case_of(deciding, tx, found, proposal)
    if case.event.acquires and found.task.lapsed:
        case = case_of(deciding, tx, replace(found, task=lapsed(case.machine, found.task, case.now).after), next_expected(case))
    match weighed(tx, holding.borne(tx, case, found.task, deciding.holds(tx)), {}, deciding=False):
        case Accept(after, refusal=refusal):
            return Done(after, refusal and replace(refusal, state=found.task.state, version=found.task.version, recorded=False))
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks(needs):
            names = ", ".join(need.check for need in needs)
            raise Refused(case.no("evidence_pending", f"a dry run runs no check; to be judged: {names}"))


def refused(refusal: Refusal, found: Stored, free: Stored) -> Done:
    """A refusal proper undoes the unit. That the task was parked just now, its last owner lost once too often, is kept."""
    if refusal.code == "parked" and free is not found:
        return Done(free.task, replace(refusal, recorded=True))
    raise Refused(refusal)


def freed(deciding: Deciding, tx: Tx, found: Stored, case: Case) -> tuple[Stored, Case]:
    """Before an acquiring event, record that the last owner's time ran out: lapse and claim stand or fall together."""
    if not (case.event.acquires and found.task.lapsed):
        return found, case
    free = deciding.lapse(tx, case.machine, found, case.now)
    return free, case_of(deciding, tx, free, next_expected(case))


def next_expected(case: Case) -> Proposal:
    """An expected version that held before the lapse holds after it."""
    proposal = case.proposal
    holds = proposal.expect_version == case.task.version
    return replace(proposal, expect_version=case.task.version + 1) if holds else proposal


def case_of(deciding: Deciding, tx: Tx, found: Stored, proposal: Proposal) -> Case:
    """The question, well formed. A proposal without an event's name means the acquiring one."""
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    named = proposal if proposal.event else replace(proposal, event=acquiring(machine, found.task))
    case = kernel.read(machine, found.task, named, tx.now)
    if isinstance(case, Refuse):
        raise Refused(case.refusal)
    blocked = case.event.acquires and found.blockers
    return replace(case, upstreams=related.upstreams(deciding.registry, tx, found.task.id)) if blocked else case


def acquiring(bound: Bound, task: Task) -> str:
    """The acquiring event that is open in the task's state, else the first, which will say why not."""
    events = [event for event in bound.definition.events if event.acquires]
    if not events:
        raise Refused(Refusal("unknown_event", f"machine {task.machine} has no event that claims", task=task.id))
    return next((event.name for event in events if event.target(task.state) is not None), events[0].name)
