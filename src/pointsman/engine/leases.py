"""The units of work of an owner about its lease, and of whoever takes a task out of work or puts it back."""

from pointsman.engine.decision import Deciding, Done, find
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel import cancelling, parking
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.lease import Back, not_mine, released, renewed
from pointsman.kernel.refuse import refuse
from pointsman.kernel.retry import exhausted
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Task
from pointsman.store import graph, tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored
from pointsman.types import Duration


def renew(deciding: Deciding, task_id: str, claim: Proposal, asked: Duration | None, tx: Tx) -> Task:
    """Move the end of the lease. No entry is written and the version stays."""
    found, machine = _mine(deciding, task_id, claim, tx)
    task, state = found.task, machine.definition.state[found.task.state]
    if task.joining is not None:
        raise Refused(
            refuse(machine.definition, task, claim.by, "wrong_state", "a task that waits for its children is held without a lease")
        )
    lease = renewed(state, task, tx.now, asked)
    if lease is None:
        raise Refused(_no_lease(machine, task, claim))
    if not tasks.renew(tx, found, lease.expires_at):
        raise StoreError("store_busy", "the task moved inside the transaction; nothing was written, try again")
    return task.but(lease=lease)


def release(deciding: Deciding, task_id: str, claim: Proposal, reason: str | None, back: Back, tx: Tx, look: bool) -> Done:
    """Give the task back: it moves as a lapse does, and everything it holds is kept. One that was tried too often is parked
    with it. Whoever did so under the same key at the same moment is waited for."""
    find(tx, task_id)
    if done := deciding.replayed(tx, look):
        return done
    found, machine = _mine(deciding, task_id, claim, tx)
    if machine.definition.state[found.task.state].lease is None:
        raise Refused(_no_lease(machine, found.task, claim))
    done = deciding.record(tx, machine, found, released(machine, found.task, tx.now, reason, back, deciding.jitter()))
    if exhausted(machine.definition, done.task):
        deciding.spare(tx, machine, find(tx, task_id))
    return done


def cancel(
    deciding: Deciding, task_id: str, claim: Proposal, reason: str, expect_version: int | None, cascade: bool, tx: Tx, look: bool
) -> Done:
    """No further step of the task is taken; with `cascade` its open children are cancelled when this is told."""
    found = find(tx, task_id)
    if done := deciding.replayed(tx, look):
        return done
    definition = deciding.registry.definition(tx, found.task.machine, found.task.machine_version)
    match cancelling.cancel(definition, found.task, claim, tx.now, reason, expect_version):
        case Accept() as accept:
            done = deciding.record(tx, Bound(definition, {}), found, accept)
        case Refuse(refusal):
            raise Refused(refusal)
    if cascade:
        graph.mark(tx, done.task, cascade=True)
        deciding.ended.add(done.task.id)
    return done


def unpark(deciding: Deciding, task_id: str, expect_version: int | None, reason: str, tx: Tx, look: bool) -> Done:
    """An operator puts a parked task back into work."""
    found = find(tx, task_id)
    if done := deciding.replayed(tx, look):
        return done
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    match parking.unparked(machine, found.task, deciding.call.by, tx.now, reason, expect_version):
        case Accept() as accept:
            return deciding.record(tx, machine, found, accept)
        case Refuse(refusal):
            raise Refused(refusal)


def _no_lease(machine: Bound, task: Task, claim: Proposal) -> Refusal:
    over = machine.definition.state[task.state].final
    detail = f"the task is over: it is {task.state}" if over else f"a task that is {task.state} is held without a lease"
    return refuse(machine.definition, task, claim.by, "wrong_state", detail)


def _mine(deciding: Deciding, task_id: str, claim: Proposal, tx: Tx) -> tuple[Stored, Bound]:
    found = find(tx, task_id)
    machine = deciding.registry.bound(tx, found.task.machine, found.task.machine_version)
    if refusal := not_mine(machine.definition, found.task, claim):
        raise Refused(refusal)
    return found, machine
