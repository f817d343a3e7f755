"""The units of work behind `create`, `claim` and `propose`: read, decide, record, in one transaction.

A refusal is raised, which rolls the unit back, so it leaves nothing. An accepted step whose `otherwise` branch was
taken commits, and is told as a refusal afterwards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pointsman.engine.door import Call
from pointsman.engine.queries import at_version, what_changed
from pointsman.engine.record import Chance, record
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel.bound import Bound, Judgement
from pointsman.kernel.decide import Accept, Case, Need, NeedChecks, Proposal, Refuse
from pointsman.kernel.task import Task
from pointsman.store import judgements, requests, tasks
from pointsman.store.database import Database, Tx
from pointsman.store.tasks import Stored
from pointsman.types import uuid7


@dataclass(frozen=True, slots=True)
class Done:
    """A committed step (or, at a dry run, one that would be); `refusal` when it was the `otherwise` branch."""

    task: Task
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """Checks that must run before the proposal can be decided, on the machine that will judge it."""

    machine: Bound
    task: str
    checks: NeedChecks


@dataclass(frozen=True, slots=True)
class Deciding:
    """What every unit needs besides its transaction: who calls, the machines, and chance."""

    call: Call
    registry: Registry
    chance: Chance

    def replayed(self, tx: Tx, look: bool) -> Done | None:
        """The first answer to this request, if there was one."""
        if not (look or self.call.given):
            return None
        found = requests.find(tx, self.call.request)
        if found is None:
            return None
        if found.digest != self.call.request.digest:
            raise Refused(Refusal("idempotency_conflict", "this idempotency key was used with another request", task=found.task))
        entry, task = at_version(tx, found.task, found.version)
        if entry.link.kind != "otherwise":
            return Done(task)
        machine = self.registry.bound(tx, task.machine, task.machine_version)
        event = machine.definition.event[entry.link.event]
        return Done(task, kernel.recorded_refusal(machine, event, task, self.call.by))

    def record(self, tx: Tx, machine: Bound, before: Stored | None, accept: Accept) -> Done:
        record(tx, self.call, machine, before, accept, self.chance)
        return Done(accept.after, accept.refusal)


def create(deciding: Deciding, machine: str, fields: Mapping[str, Any], priority: int, tx: Tx, look: bool) -> Done:
    bound = deciding.registry.taking_new(tx, machine)
    task_id = uuid7(tx.now, deciding.chance(74))
    decision = kernel.create(bound, task_id, fields, deciding.call.by, tx.now, priority)
    if isinstance(decision, Refuse):
        raise Refused(decision.refusal)
    return deciding.replayed(tx, look) or deciding.record(tx, bound, None, decision)


def propose(
    deciding: Deciding, task_id: str, proposal: Proposal, asked: NeedChecks | None, judged: kernel.Judged, tx: Tx, look: bool
) -> Done | Asked:
    """Decide on one task. `asked` is the NeedChecks that `judged` answers: its epoch must still be the task's."""
    found = find(tx, task_id)
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    case = kernel.read(machine, found.task, proposal, tx.now)
    if isinstance(case, Refuse):
        raise Refused(case.refusal)
    if done := deciding.replayed(tx, look):
        return done
    if asked is not None and asked.epoch != found.task.epoch:
        raise Refused(case.no("stale_content", "the task was taken over while its check ran"))
    return _decided(deciding, machine, found, case, asked, judged, tx)


def _decided(
    deciding: Deciding, machine: Bound, found: Stored, case: Case, asked: NeedChecks | None, judged: kernel.Judged, tx: Tx
) -> Done | Asked:
    decision = kernel.judge(case, judged)
    if isinstance(decision, NeedChecks) and asked is None:
        decision = kernel.judge(case, {**judged, **_kept(tx, found.task, decision.needs)})
    match decision:
        case Accept():
            return deciding.record(tx, machine, found, decision)
        case NeedChecks() if asked is None:
            return Asked(machine, found.task.id, decision)
        case NeedChecks():
            raise Refused(case.no("stale_content", "the content that the check judged changed meanwhile; propose again"))
        case Refuse(refusal):
            raise Refused(_explained(tx, machine, found.task, refusal))


def dry_run(deciding: Deciding, task_id: str, proposal: Proposal, tx: Tx) -> Done:
    """What would be decided, on a snapshot; runs no check and writes nothing."""
    found = find(tx, task_id)
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    case = kernel.read(machine, found.task, proposal, tx.now)
    decision = case if isinstance(case, Refuse) else kernel.judge(case, {})
    match decision:
        case Accept(after, refusal=refusal):
            return Done(after, refusal and replace(refusal, state=found.task.state, version=found.task.version, recorded=False))
        case Refuse(refusal):
            raise Refused(_explained(tx, machine, found.task, refusal))
        case NeedChecks(needs):
            names = ", ".join(need.check for need in needs)
            refusal = kernel.refuse(
                machine.definition, found.task, proposal.by, "evidence_pending", f"a dry run runs no check; to be judged: {names}"
            )
            raise Refused(refusal)


def claim(deciding: Deciding, machine: str, task_id: str | None, proposal: Proposal, tx: Tx, look: bool) -> Done | None:
    """Take one task by id, or the next; None when nothing waits."""
    if task_id is None and (done := deciding.replayed(tx, look)):
        return done
    found = _waiting(deciding.registry, tx, machine) if task_id is None else find(tx, task_id)
    if found is None:
        return None
    bound = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    if found.task.machine != machine:
        raise Refused(Refusal("unknown_task", f"no task of machine {machine} has this id", task=found.task.id))
    proposal = replace(proposal, event=_acquiring(bound, found.task))
    case = kernel.read(bound, found.task, proposal, tx.now)
    if isinstance(case, Refuse):
        raise Refused(case.refusal)
    if done := deciding.replayed(tx, look):
        return done
    decision = kernel.judge(case, {})
    match decision:
        case Accept():
            return deciding.record(tx, bound, found, decision)
        case Refuse(refusal):
            raise Refused(refusal)
        case NeedChecks():
            raise Refused(case.no("evidence_pending", "this claim needs a check; propose the event by name"))


def find(tx: Tx, task_id: str) -> Stored:
    found = tasks.find(tx, task_id)
    if found is None:
        raise Refused(Refusal("unknown_task", "no task has this id", task=task_id))
    return found


def judged(db: Database, asked: Asked, need: Need, expired: Callable[[], bool]) -> Judgement:
    """Judge once: look for a kept judgement, else run the check and keep what it says. An error is never kept, nor
    what came too late."""
    task, check = asked.task, asked.machine.definition.check[need.check]
    if kept := db.read(lambda tx: judgements.find(tx, task, need.check, need.digest)):
        return kept
    said = asked.machine.judge(check, need.inputs)
    if said.status == "error" or expired():
        return said
    return db.run(lambda tx: judgements.keep(tx, task, need.check, need.digest, said))


def _kept(tx: Tx, task: Task, needs: tuple[Need, ...]) -> dict[str, Judgement]:
    found = {need.digest: judgements.find(tx, task.id, need.check, need.digest) for need in needs}
    return {digest: judgement for digest, judgement in found.items() if judgement is not None}


def _waiting(registry: Registry, tx: Tx, machine: str) -> Stored | None:
    """The first in line over the initial states of all versions."""
    heads = [tasks.next_claimable(tx, machine, state) for state in sorted(registry.initial_states(tx, machine))]
    return min((head for head in heads if head is not None), key=lambda head: (tasks.place(head.task), head.key), default=None)


def _acquiring(bound: Bound, task: Task) -> str:
    """The acquiring event that is open in the task's state, else the first, which will say why not."""
    events = [event for event in bound.definition.events if event.acquires]
    if not events:
        raise Refused(Refusal("unknown_event", f"machine {task.machine} has no event that claims", task=task.id))
    return next((event.name for event in events if event.target(task.state) is not None), events[0].name)


def _explained(tx: Tx, machine: Bound, task: Task, refusal: Refusal) -> Refusal:
    """A refusal for stale content says what changed since it was shown."""
    shown = refusal.extra.get("shown")
    return refusal if shown is None else replace(refusal, failed=what_changed(tx, machine.definition, task, shown))
