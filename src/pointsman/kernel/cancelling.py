"""Cancelling: a task moves to where its machine sends what is cancelled, and no further step of it is taken."""

from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import Claim, not_mine
from pointsman.kernel.parking import not_operator
from pointsman.kernel.refuse import refuse
from pointsman.kernel.retry import counted
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Task, changes
from pointsman.types import Instant, Json


def cancel(definition: Definition, task: Task, claim: Claim, now: Instant, reason: str, expect_version: int | None) -> Accept | Refuse:
    """The owner's or an operator's word that a task is not to be done."""
    other = not_operator(definition, task, claim.by, "cancel")
    if other is not None and other.code == "invalid":
        return Refuse(other)
    if expect_version not in (None, task.version):
        return Refuse(refuse(definition, task, claim.by, "stale_version", f"the task is at version {task.version}, not {expect_version}"))
    if definition.state[task.state].final:
        return Refuse(refuse(definition, task, claim.by, "wrong_state", f"the task is over: it is {task.state}"))
    if refusal := not_mine(definition, task, claim, only_owner=other is not None):
        return Refuse(refusal)
    return cancelled(definition, task, now, reason)


def cancelled(definition: Definition, task: Task, now: Instant, reason: str, cause: str | None = None) -> Accept:
    """The entry that cancels; `cause` is the task whose end did it."""
    target, at = definition.cancels_to, max(now, task.updated_at + 1)
    assert target is not None, "a machine without one is a definition fault"
    after = task.but(
        state=target,
        since=at,
        deadline=None,
        version=task.version + 1,
        updated_at=at,
        lease=None,
        parked=None,
        joining=None,
        attempts=counted(definition, task, task.owner, target),
    )
    said: dict[str, Json] = {"reason": reason, **({} if cause is None else {"cause": cause})}
    return Accept(after, "cancel", "cancel", task.state, {"changes": changes(task, after), **said})
