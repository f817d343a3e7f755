"""The units of work of the ledger: an operation begun, what came of it, a checkpoint, and all that somebody needs to resume."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pointsman.engine.decision import Deciding, find
from pointsman.engine.past import at_version
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import beginning, outcome
from pointsman.kernel import operation as kernel
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.lease import renewed
from pointsman.kernel.operation import Happened, Intent, Operation, Pending, Planned, Said, Step
from pointsman.kernel.refuse import contributed, refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Refuse
from pointsman.kernel.task import Task
from pointsman.store import checkpoints, operations, tasks
from pointsman.store.checkpoints import Checkpoint
from pointsman.store.database import Tx
from pointsman.store.operations import Kept, Testimony
from pointsman.store.tasks import Stored
from pointsman.types import Instant, Json, uuid7

Doubtful = Sequence[tuple[Operation, kernel.Standing]]


@dataclass(frozen=True, slots=True)
class Shown:
    """An operation as it stands for whoever asks; `known` when it was there already, `replayed` when this is an earlier answer
    to the same request. `task` is what a step of it left, None when there was nothing to write."""

    operation: Operation
    standing: kernel.Standing
    known: bool = False
    testimony: Sequence[Testimony] = ()
    replayed: bool = False
    task: Task | None = None


def begin(deciding: Deciding, task_id: str, intent: Intent, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what is about to be done. A name that the task has answers what is there."""
    operations.ahead(tx, task_id, intent.name)
    found, machine = _locked(deciding, tx, task_id)
    if first := _answered(deciding, tx, look):
        return first
    undone = None if intent.compensates is None else operations.by_id(tx, intent.compensates)
    known = operations.find(tx, task_id, intent.name)
    before = None if known is None else known.operation
    unlike = known is not None or (intent.effect is None and intent.compensates is None)
    others = [] if unlike else operations.alike(tx, found.key, intent.effect, intent.compensates)
    new_id = uuid7(tx.now, deciding.chance(74))
    step = _allowed(
        beginning.begin(machine, found.task, before, others, None if undone is None else undone.operation, intent, claim, tx.now, new_id)
    )
    _record(deciding, tx, machine, found, known, step)
    return _shown(step, known=before is not None and before.status != "not_done")


def remember(deciding: Deciding, task_id: str, intent: Intent, result: Json, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what was done already, in one entry. Its name settles whether an unknown COMMIT happened, whoever has the task
    since."""
    operations.ahead(tx, task_id, intent.name)
    found, machine = _locked(deciding, tx, task_id)
    known = operations.find(tx, task_id, intent.name)
    before = None if known is None else known.operation
    if look and before is not None and beginning.was_remembered(before, intent, result, claim):
        return Shown(before, "succeeded")
    new_id = uuid7(tx.now, deciding.chance(74))
    step = _allowed(beginning.remember(machine, found.task, before, intent, result, claim, tx.now, new_id))
    _record(deciding, tx, machine, found, known, step)
    return _shown(step, known=step.accept is None)


def settle(deciding: Deciding, operation: str, task_id: str | None, said: Said, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what came of an operation, which is that of a task, if one is named."""
    of = by_id(tx, operation).operation.task
    if task_id not in (None, of):
        raise _unknown()
    found, machine = _locked(deciding, tx, of)
    if first := _answered(deciding, tx, look):
        return first
    kept = by_id(tx, operation)
    step = _allowed(outcome.settle(machine, found.task, kept.operation, said, claim, tx.now))
    _record(deciding, tx, machine, found, kept, step)
    return _shown(step, known=step.accept is None)


def testify(operation: str, by: Principal, epoch: int | None, said: Said, tx: Tx) -> bool:
    """Keep what somebody says of an operation whose task it once owned or wrote; False of anybody else."""
    found = by_id(tx, operation).operation
    if not contributed(find(tx, found.task).task, by):
        return False
    operations.testify(tx, found, by.name, epoch, said)
    return True


def checkpoint(
    deciding: Deciding, task_id: str, data: Json, plan: tuple[Planned, ...], progress: Json, expect: int | None, claim: Proposal, tx: Tx
) -> Checkpoint:
    """Keep an owner's word on how far it is, and hold its task for longer; no entry, and the version stays."""
    found, machine = _locked(deciding, tx, task_id)
    definition, task = machine.definition, found.task
    if refusal := beginning.not_now(definition, task, claim):
        raise Refused(refusal)
    last = checkpoints.find(tx, found.key)
    number = 0 if last is None else last.number
    if expect not in (None, number):
        raise Refused(refuse(definition, task, claim.by, "stale_version", f"the last checkpoint is number {number}, not {expect}"))
    made = Checkpoint(number + 1, task.version, task.epoch, tx.now, claim.by.name, data, plan, progress)
    checkpoints.put(tx, found.key, task.id, made)
    _hold(tx, machine, found)
    return made


@dataclass(frozen=True, slots=True)
class Resumed:
    """The durable facts of a task, for whoever goes on with it. `in_doubt` has those of the running epoch too: only who began them
    knows better."""

    task: Task
    finished: Sequence[Operation]
    in_doubt: Doubtful
    pending: Sequence[Pending]
    checkpoint: Checkpoint | None
    notes: Mapping[str, Json]

    @property
    def deadlines(self) -> Mapping[str, Instant]:
        """Until when the lease runs, how long the task may stay where it is, and when what is in doubt is settled at the remote."""
        task = self.task
        ends = {"lease": None if task.lease is None else task.lease.expires_at, "state": task.deadline}
        ends |= {f"operation {item.name}": item.settles_at for item, _ in self.in_doubt}
        return {name: at for name, at in ends.items() if at is not None}


def resume(registry: Registry, task_id: str, tx: Tx) -> Resumed:
    found = find(tx, task_id)
    definition = registry.definition(tx, found.task.machine, found.task.machine_version)
    every = [kept.operation for kept in operations.every(tx, task_id)]
    last = checkpoints.find(tx, found.key)
    over = definition.state[found.task.state].final
    finished = sorted((item for item in every if item.status in ("succeeded", "failed")), key=lambda item: item.settled_at or 0)
    doubtful: Doubtful = [(item, item.standing(found.task, over=over)) for item in every if item.status == "started"]
    plan = () if last is None else last.plan
    notes = {item.name: found.task.fields[item.name] for item in definition.fields if item.kind == "note"}
    return Resumed(found.task, finished, doubtful, kernel.pending(definition, found.task, every, plan), last, notes)


def happened(registry: Registry, task: Task, tx: Tx) -> Happened:
    """What a task has done already."""
    definition = registry.definition(tx, task.machine, task.machine_version)
    return kernel.happened(definition, [kept.operation for kept in operations.every(tx, task.id)])


def shown(registry: Registry, task_id: str, after: str, limit: int, tx: Tx) -> list[Shown]:
    """A page of a task's operations, with what others said of them."""
    task = find(tx, task_id).task
    over = registry.definition(tx, task.machine, task.machine_version).state[task.state].final
    page = [kept.operation for kept in operations.of_task(tx, task_id, after, limit)]
    if not page:
        return []
    said = operations.testimonies(tx, task_id, page[0].id, page[-1].id)
    return [Shown(item, item.standing(task, over=over), True, said.get(item.id, ())) for item in page]


def by_id(tx: Tx, operation: str) -> Kept:
    kept = operations.by_id(tx, operation)
    if kept is None:
        raise _unknown()
    return kept


def _unknown() -> Refused:
    return Refused(Refusal("unknown_operation", "no operation has this id"))


def _locked(deciding: Deciding, tx: Tx, task_id: str) -> tuple[Stored, Bound]:
    """The task, locked, and its machine. None of its functions is asked: what happened is written down also where they are missing."""
    found = find(tx, task_id)
    return found, Bound(deciding.registry.definition(tx, found.task.machine, found.task.machine_version), {})


def _answered(deciding: Deciding, tx: Tx, look: bool) -> Shown | None:
    """The first answer to this request, if it wrote something: as the entry says, whatever became of the operation since."""
    done = deciding.replayed(tx, look)
    if done is None:
        return None
    said = at_version(tx, done.task.id, done.task.version)[0].payload
    if said is None:
        raise Refused(Refusal("pruned", "the payload of this answer was pruned", task=done.task.id))
    return Shown(Operation(**said["operation"]), said["standing"], known=said["standing"] == "in_doubt", replayed=done.replayed)


def _hold(tx: Tx, machine: Bound, found: Stored) -> None:
    """An owner's accepted call that is no entry renews all the same; who waits for children waits without a lease."""
    task = found.task
    lease = renewed(machine.definition.state[task.state], task, tx.now, None)
    if lease is not None and task.joining is None:
        tasks.renew(tx, found, lease.expires_at)


def _shown(step: Step, *, known: bool) -> Shown:
    return Shown(step.operation, step.standing, known, task=None if step.accept is None else step.accept.after)


def _allowed(step: Step | Refuse) -> Step:
    if isinstance(step, Refuse):
        raise Refused(step.refusal)
    return step


def _record(deciding: Deciding, tx: Tx, machine: Bound, found: Stored, before: Kept | None, step: Step) -> None:
    if step.accept is None:
        return _hold(tx, machine, found)
    deciding.record(tx, machine, found, step.accept)
    return operations.put(tx, found.key, before, step.operation, step.accept.after.version)
