"""The units of work behind `create` and `propose`: read, decide, record, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pointsman.engine import circles, holding, pending, related
from pointsman.engine.asking import as_free, case_of, freed, refused
from pointsman.engine.decision import Asked, Deciding, Done, Pending, find, weighed
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel.case import Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.task import Dependency, Task
from pointsman.kernel.terms import Terms
from pointsman.store import holds
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
    if done := deciding.replayed(tx, look):
        return done
    if done := related.known(deciding, tx, decision.after, fields, found):
        deciding.bind(tx, [done.task])
        return done
    stand = related.standings(deciding, tx, found)
    if terms.parent is not None:
        _under(deciding, tx, found[terms.parent], owner, decision.after, related.unsettled(stand, terms.blocked_by))
    return related.made(deciding, tx, bound, decision, stand, found)


def _under(deciding: Deciding, tx: Tx, parent: Stored, owner: Proposal, made: Task, waits: Sequence[Dependency]) -> None:
    """Its parent takes one more child, and does not come to wait for itself by it."""
    related.admitted(deciding, tx, parent, owner, related.children_of(deciding.registry, tx, parent.task.id), 1)
    if parent.task.joining is not None:
        circles.refuse(tx, parent.task, {item.task: f"blocked_by[{made.blocked_by.index(item)}].task" for item in waits}, begins=False)


def propose(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx, look: bool) -> Done | Pending:
    """Decide on one task. When checks must run first, the proposal is made durable instead."""
    holds.ahead(tx)
    found = find(tx, task_id)
    case = case_of(deciding.registry, tx, found, proposal)
    if earlier := deciding.replayed(tx, look) or pending.requested(tx, deciding, look):
        return earlier
    free = holding.borne(tx, as_free(deciding.registry, tx, found, case), found.task, deciding.holds(tx))
    match weighed(tx, free, {}):
        case Accept() as accept:
            holding.paced(tx, free)
            return deciding.record(tx, case.machine, freed(deciding, tx, found, case), accept)
        case Refuse(refusal):
            return told(tx, found, refused(deciding, tx, found, case, refusal))
        case NeedChecks() as checks:
            return pending.begin(tx, deciding, case, Asked(case.machine, checks))


def told(tx: Tx, found: Stored, refusal: Refusal) -> Done:
    """A refusal proper undoes the unit; one on record is told once that is committed."""
    if refusal.recorded:
        return Done(find(tx, found.task.id).task, refusal)
    raise Refused(refusal)


def dry_run(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx) -> Done:
    """What would be decided, on a snapshot; runs no check and writes nothing."""
    found = find(tx, task_id)
    case = as_free(deciding.registry, tx, found, case_of(deciding.registry, tx, found, proposal))
    match weighed(tx, holding.borne(tx, case, found.task, deciding.holds(tx)), {}, deciding=False):
        case Accept(after, refusal=refusal):
            return Done(after, refusal and replace(refusal, state=found.task.state, version=found.task.version, recorded=False))
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks(needs):
            names = ", ".join(need.check for need in needs)
            raise Refused(case.no("evidence_pending", f"a dry run runs no check; to be judged: {names}"))
