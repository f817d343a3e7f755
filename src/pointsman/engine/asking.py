"""The question that a proposal puts to one task, and the taking over of a task whose owner's time ran out.

A lapse is written with the step that takes the task over, or, when it was once too often, with the parking; never for a
question alone. So the question is put to the task as it would be once the lapse is recorded.
"""

from dataclasses import replace

from pointsman.engine import related
from pointsman.engine.decision import Deciding
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel import parking
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Refuse
from pointsman.kernel.lease import acquiring, lapsed
from pointsman.kernel.retry import exhausted
from pointsman.kernel.task import Task
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored


def case_of(registry: Registry, tx: Tx, found: Stored, proposal: Proposal) -> Case:
    """The question, well formed. A proposal without an event's name means the acquiring one."""
    machine = registry.bound(tx, found.task.machine, found.task.machine_version)
    named = proposal if proposal.event else replace(proposal, event=_meant(machine, found.task))
    case = kernel.read(machine, found.task, named, tx.now)
    if isinstance(case, Refuse):
        raise Refused(case.refusal)
    blocked = case.event.acquires and found.blockers
    return replace(case, upstreams=related.upstreams(registry, tx, found.task.id)) if blocked else case


def as_free(registry: Registry, tx: Tx, found: Stored, case: Case) -> Case:
    """The question as it is once the last owner's time is recorded to have run out, for an event that acquires. When that
    was once too often the task would be parked. An expected version that holds now holds then."""
    if not _takes_over(found, case):
        return case
    after = lapsed(case.machine, found.task, case.now).after
    if exhausted(case.machine.definition, after):
        after = parking.parked(after, after.updated_at, parking.exhausted(after)).after
    proposal = case.proposal
    expects = after.version if proposal.expect_version == found.task.version else proposal.expect_version
    return case_of(registry, tx, replace(found, task=after), replace(proposal, expect_version=expects))


def freed(deciding: Deciding, tx: Tx, found: Stored, case: Case) -> Stored:
    """Write what `as_free` foresaw; the task after it."""
    return deciding.lapse(tx, case.machine, found, case.now) if _takes_over(found, case) else found


def refused(deciding: Deciding, tx: Tx, found: Stored, case: Case, refusal: Refusal) -> Refusal:
    """A refusal proper leaves nothing. That the last owner was lost once too often is kept, and the refusal says so."""
    if refusal.code != "parked" or found.task.parked is not None:
        return refusal
    freed(deciding, tx, found, case)
    return replace(refusal, recorded=True)


def _takes_over(found: Stored, case: Case) -> bool:
    return case.event.acquires and found.task.lapsed


def _meant(bound: Bound, task: Task) -> str:
    """The acquiring event that is open, else the first, which will say why not."""
    event = acquiring(bound.definition, task.state, owned=task.owner is not None) or next(
        (event for event in bound.definition.events if event.acquires), None
    )
    if event is None:
        raise Refused(Refusal("unknown_event", f"machine {task.machine} has no event that claims", task=task.id))
    return event.name
