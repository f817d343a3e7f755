"""Parking: a task is taken out of work for a shown reason, whatever its state, until an operator puts it back."""

from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.definition import Definition
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Attempts, Parked, Task, changes
from pointsman.types import Instant, Json

OPERATOR = "operator"


def operator(by: Principal, verb: str) -> Refusal | None:
    """Why somebody may not do what operators do. Whoever says no name is none, though it lacks no role."""
    if by.name == ANONYMOUS:
        fault = {"path": "by", "message": f"whoever would {verb} has a name"}
        return Refusal("invalid", f"{fault['path']}: {fault['message']}", failed=[fault])
    return None if by.has(OPERATOR) else Refusal("role_missing", f"to {verb} needs role {OPERATOR}")


def not_operator(definition: Definition, task: Task, by: Principal, verb: str) -> Refusal | None:
    """The same, about a task."""
    found = operator(by, verb)
    return found and refuse(definition, task, by, found.code, found.detail, failed=found.failed)


def parked(task: Task, now: Instant, reason: str) -> Accept:
    """The entry that takes a task out of work."""
    at = max(now, task.updated_at + 1)
    return _step(task, "park", at, reason, parked=Parked(reason, at))


def unparked(machine: Bound, task: Task, by: Principal, now: Instant, reason: str, expect_version: int | None) -> Accept | Refuse:
    """An operator puts a task back into work. Its attempts begin anew."""
    if refusal := not_operator(machine.definition, task, by, "unpark"):
        return Refuse(refusal)
    if expect_version not in (None, task.version):
        return Refuse(refuse(machine.definition, task, by, "stale_version", f"the task is at version {task.version}, not {expect_version}"))
    if task.parked is None:
        return Refuse(refuse(machine.definition, task, by, "wrong_state", "the task is not parked"))
    return _step(task, "unpark", max(now, task.updated_at + 1), reason, parked=None, attempts=Attempts(), run_at=None)


def exhausted(task: Task) -> str:
    """The reason of a task that was tried too often."""
    attempts = task.attempts
    return f"tried {attempts.counted} times without a result: {attempts.lost} lost, {attempts.error} in error"


def refusal(machine: Bound, task: Task, by: Principal) -> Refusal:
    assert task.parked is not None, "who asks has seen that it is parked"
    detail = f"out of work: {task.parked.reason}; an operator unparks it"
    return refuse(machine.definition, task, by, "parked", detail)


def _step(task: Task, kind: str, at: Instant, reason: str, **members: Any) -> Accept:
    after = task.but(version=task.version + 1, updated_at=at, **members)
    payload: dict[str, Json] = {"changes": changes(task, after), "reason": reason}
    return Accept(after, kind, kind, task.state, payload)
