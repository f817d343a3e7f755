"""The one function that builds a refusal about a task, and what is open to whom."""

from collections.abc import Mapping, Sequence
from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel.definition import Definition, Event
from pointsman.kernel.rules import ANONYMOUS, Principal, admits, says
from pointsman.kernel.task import Task


def refuse(
    definition: Definition,
    task: Task,
    by: Principal,
    code: str,
    detail: str,
    *,
    failed: Sequence[Mapping[str, Any]] = (),
    recorded: bool = False,
    **extra: Any,
) -> Refusal:
    """A refusal carries where the task stands, what this caller may do now, and who may do the rest."""
    mine = allowed(definition, task, by)
    return Refusal(
        code,
        detail,
        task=task.id,
        state=task.state,
        version=task.version,
        failed=failed,
        allowed=mine,
        unblock=[f"{event.name}: {says(event.by)}" for event in _open(definition, task) if event.name not in mine],
        recorded=recorded,
        extra=extra,
    )


def owns(task: Task, by: Principal, session: str | None) -> bool:
    """Sessions are compared only when both sides name one."""
    if task.owner != by.name:
        return False
    return task.session is None or session is None or task.session == session


def contributed(task: Task, by: Principal) -> bool:
    return by.root_key in task.contributors


def rights(event: Event, task: Task, by: Principal, *, is_owner: bool) -> bool:
    return admits(event.by, by, is_owner=is_owner, is_contributor=contributed(task, by))


def allowed(definition: Definition, task: Task, by: Principal, session: str | None = None) -> tuple[str, ...]:
    """Events open to this caller now: state, ownership and rights hold. Guards and evidence are judged when proposed."""
    is_owner, named = owns(task, by, session), by.name != ANONYMOUS
    mine = (event for event in _open(definition, task) if named or not event.personal)
    return tuple(event.name for event in mine if rights(event, task, by, is_owner=is_owner))


def _open(definition: Definition, task: Task) -> list[Event]:
    if task.parked is not None:
        return []
    return [event for event in definition.events if event.target(task.state) is not None and not (event.acquires and task.held)]
