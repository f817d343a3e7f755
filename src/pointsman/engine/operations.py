"""The units of work of the ledger: an operation begun, what came of it, a checkpoint, and all that somebody needs to resume."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pointsman.engine.decision import Deciding, find
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import operation as kernel
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.lease import not_mine, renewed
from pointsman.kernel.operation import Happened, Intent, Operation, Pending, Planned, Said, Step
from pointsman.kernel.refuse import refuse
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
    """An operation as it stands for whoever asks; `known` when it was there already. `task` is what a step of it left, None when
    there was nothing to write."""

    operation: Operation
    standing: kernel.Standing
    known: bool = False
    testimony: Sequence[Testimony] = ()
    task: Task | None = None


def begin(deciding: Deciding, task_id: str, intent: Intent, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what is about to be done. A name that the task has answers what is there."""
    operations.ahead(tx, task_id, intent.name)
    found, machine = _locked(deciding, tx, task_id, look)
    known = operations.find(tx, task_id, intent.name)
    before = None if known is None else known.operation
    new_id = uuid7(tx.now, deciding.chance(74))
    step = _allowed(kernel.begin(machine, found.task, before, intent, claim, tx.now, new_id))
    _record(deciding, tx, machine, found, known, step)
    return _shown(step, known=before is not None and before.status != "not_done")


def remember(deciding: Deciding, task_id: str, intent: Intent, result: Json, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what was done already, in one entry. Its name settles whether an unknown COMMIT happened."""
    operations.ahead(tx, task_id, intent.name)
    found, machine = _locked(deciding, tx, task_id, look)
    known = operations.find(tx, task_id, intent.name)
    before = None if known is None else known.operation
    new_id = uuid7(tx.now, deciding.chance(74))
    step = _allowed(kernel.remember(machine, found.task, before, intent, result, claim, tx.now, new_id))
    _record(deciding, tx, machine, found, known, step)
    return _shown(step, known=step.accept is None)


def settle(deciding: Deciding, operation: str, said: Said, claim: Proposal, tx: Tx, look: bool) -> Shown:
    """Write down what came of an operation."""
    found, machine = _locked(deciding, tx, by_id(tx, operation).operation.task, look)
    kept = by_id(tx, operation)
    step = _allowed(kernel.settle(machine, found.task, kept.operation, said, claim, tx.now))
    _record(deciding, tx, machine, found, kept, step)
    return _shown(step, known=step.accept is None)


def testify(operation: str, by: str, epoch: int | None, said: Said, tx: Tx) -> bool:
    """Keep what somebody says of an operation that it once began; False of one that it did not."""
    kept = by_id(tx, operation)
    if kept.operation.begun_by != by:
        return False
    operations.testify(tx, operation, by, epoch, said)
    return True


def checkpoint(
    deciding: Deciding, task_id: str, data: Json, plan: tuple[Planned, ...], progress: Json, expect: int | None, claim: Proposal, tx: Tx
) -> Checkpoint:
    """Keep an owner's word on how far it is, and hold its task for longer; no entry, and the version stays."""
    found = find(tx, task_id)
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    definition, task = machine.definition, found.task
    if refusal := not_mine(definition, task, claim):
        raise Refused(refusal)
    if definition.state[task.state].final:
        raise Refused(refuse(definition, task, claim.by, "wrong_state", f"the task is over: it is {task.state}"))
    last = checkpoints.find(tx, found.key)
    number = 0 if last is None else last.number
    if expect not in (None, number):
        raise Refused(refuse(definition, task, claim.by, "stale_version", f"the last checkpoint is number {number}, not {expect}"))
    made = Checkpoint(number + 1, task.version, task.epoch, tx.now, claim.by.name, data, plan, progress)
    checkpoints.put(tx, found.key, task.id, made)
    if lease := renewed(definition.state[task.state], task, tx.now, None):
        tasks.renew(tx, found, lease.expires_at)
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
    finished = sorted((item for item in every if item.status in ("succeeded", "failed")), key=lambda item: item.settled_at or 0)
    doubtful: Doubtful = [(item, item.standing(found.task)) for item in every if item.status == "started"]
    plan = () if last is None else last.plan
    notes = {item.name: found.task.fields[item.name] for item in definition.fields if item.kind == "note"}
    return Resumed(found.task, finished, doubtful, kernel.pending(definition, found.task, every, plan), last, notes)


def happened(registry: Registry, task: Task, tx: Tx) -> Happened:
    """What a task has done already."""
    definition = registry.definition(tx, task.machine, task.machine_version)
    return kernel.happened(definition, [kept.operation for kept in operations.every(tx, task.id)])


def shown(task_id: str, after: str, limit: int, tx: Tx) -> list[Shown]:
    """A page of a task's operations, with what others said of them."""
    task = find(tx, task_id).task
    page = operations.of_task(tx, task_id, after, limit)
    every = (kept.operation for kept in page)
    return [Shown(item, item.standing(task), True, operations.testimonies(tx, item.id)) for item in every]


def by_id(tx: Tx, operation: str) -> Kept:
    kept = operations.by_id(tx, operation)
    if kept is None:
        raise Refused(Refusal("unknown_operation", "no operation has this id"))
    return kept


def _locked(deciding: Deciding, tx: Tx, task_id: str, look: bool) -> tuple[Stored, Bound]:
    """The task, locked, and its machine. An operation's name settles whether an unknown COMMIT happened; a key of the caller's
    is only kept from standing for something else."""
    found = find(tx, task_id)
    deciding.replayed(tx, look)
    return found, deciding.registry.bound(tx, found.task.machine, found.task.machine_version)


def _shown(step: Step, *, known: bool) -> Shown:
    return Shown(step.operation, step.standing, known, task=None if step.accept is None else step.accept.after)


def _allowed(step: Step | Refuse) -> Step:
    if isinstance(step, Refuse):
        raise Refused(step.refusal)
    return step


def _record(deciding: Deciding, tx: Tx, machine: Bound, found: Stored, before: Kept | None, step: Step) -> None:
    if step.accept is not None:
        deciding.record(tx, machine, found, step.accept)
        operations.put(tx, found.key, before, step.operation, step.accept.after.version)
