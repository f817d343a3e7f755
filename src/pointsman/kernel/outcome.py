"""What came of an operation, and who may say so."""

from dataclasses import replace

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import same
from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import Claim, not_mine
from pointsman.kernel.operation import Operation, Said, Step, entry
from pointsman.kernel.parking import OPERATOR
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Refuse
from pointsman.kernel.task import Task
from pointsman.types import SECOND, Instant, iso


def settle(machine: Bound, task: Task, operation: Operation, said: Said, claim: Claim, now: Instant) -> Step | Refuse:
    """What came of an operation: by the task's owner, or, of one to `ask` for that is in doubt, or whose task is over, by an operator
    who is a person."""
    definition, by = machine.definition, claim.by
    answers = _answers(definition, task, operation, claim)
    if (refusal := not_mine(definition, task, claim)) and not answers:
        return Refuse(refusal)
    if operation.status != "started":
        return _again(machine, task, operation, said, by)
    if not answers and (refusal := _doubtful(definition, task, operation, said, claim, now)):
        return Refuse(refusal)
    at = max(now, task.updated_at + 1)
    after = replace(operation, status=said.status, settled_by=by.name, settled_at=at, result=said.result, note=said.note)
    left = tuple(item for item in task.begun if item.id != operation.id)
    return Step(after, after.status, entry(machine, task, "settle", at, Step(after, after.status), left, renews=not answers))


def _answers(definition: Definition, task: Task, operation: Operation, claim: Claim) -> bool:
    """Whether a person says what nobody else can: of what is to be asked for, and of anything once the task is over. An old epoch is
    refused whoever sends it."""
    by, over = claim.by, definition.state[task.state].final
    if not (operation.kind == "ask" or over) or operation.standing(task, over=over) != "in_doubt":
        return False
    return by.kind == "person" and by.has(OPERATOR) and claim.epoch in (None, task.epoch)


def _again(machine: Bound, task: Task, operation: Operation, said: Said, by: Principal) -> Step | Refuse:
    """The same outcome said twice is one."""
    if operation.status == said.status and same(operation.result, said.result):
        return Step(operation, operation.status)
    detail = f"operation {operation.name} {operation.status.replace('_', ' ')} already"
    return Refuse(refuse(machine.definition, task, by, "wrong_state", detail, operation=operation.id))


def _doubtful(definition: Definition, task: Task, operation: Operation, said: Said, claim: Claim, now: Instant) -> Refusal | None:
    """What even the owner cannot say of an operation that another one began."""
    if operation.epoch == task.epoch:
        return None
    if operation.kind == "ask":
        detail = f"operation {operation.name} is in doubt: a person with role {OPERATOR} says what happened"
        return refuse(definition, task, claim.by, "operation_in_doubt", detail, operation=operation.id)
    if operation.kind == "lookup" and said.status != "succeeded" and now < operation.settles_at:
        detail = f"operation {operation.name} may still arrive until {iso(operation.settles_at)}: look again after that"
        wait = -(-(operation.settles_at - now) // SECOND)
        return refuse(definition, task, claim.by, "operation_in_doubt", detail, operation=operation.id, retry_after_s=wait)
    return None
