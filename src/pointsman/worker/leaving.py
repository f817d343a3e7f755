"""What becomes of a task that is still held when its worker is done with it."""

from typing import Any

from pointsman.engine.pointsman import Pointsman
from pointsman.engine.view import By
from pointsman.errors import Refused
from pointsman.kernel.ingest import clean
from pointsman.kernel.task import Task
from pointsman.worker.outcomes import Cancel, Defer, Done, End, Fail, Lost, Waits

ASKED_REST_S = 86_400.0
"""How long a task that waits for a person stays out of work, unless somebody answers: that ends it."""


def give_back(pm: Pointsman, id: str, epoch: int, by: By, reason: str, *, counts: bool) -> Task | None:
    """Release a task that is still held under this epoch; None when there is nothing to release. What the store does not
    take is left to its lease."""
    held = _held(pm, id, epoch, by)
    return None if held is None else _released(pm, held, by, reason, counts=counts)


def leave(pm: Pointsman, task: Task, by: By, reason: str, *, well: bool) -> Task | None:
    """Give back what a worker leaves of a task that it claimed. An attempt that failed is counted as an error; one that
    ended well is counted only if it moved the task, so that work which moves without ever ending is bounded."""
    held = _held(pm, task.id, task.epoch, by)
    if held is None:
        return None
    return _released(pm, held, by, reason, counts=not well or held.version > task.version, error=not well)


def conclude(pm: Pointsman, task: Task, by: By, end: End) -> Task | None:
    """Do with a task that was claimed what came of it; None when there was nothing to do."""
    match end:
        case Lost():
            return None
        case Fail(reason):
            return leave(pm, task, by, reason, well=False)
        case Defer(reason, rest_s, until):
            return _put_off(pm, task, by, reason, rest_s=rest_s, run_at=until)
        case Waits():
            return _put_off(pm, task, by, end.reason, rest_s=ASKED_REST_S)
        case Cancel(reason):
            return _cancelled(pm, task, by, reason)
        case Done() | None:
            return leave(pm, task, by, "the handler returned", well=True)


def _put_off(pm: Pointsman, task: Task, by: By, reason: str, **rest: Any) -> Task | None:
    """Uncounted. A time that cannot be read is an error of the handler."""
    held = _held(pm, task.id, task.epoch, by)
    if held is None:
        return None
    try:
        return pm.release(task.id, by=by, epoch=held.epoch, reason=_words(reason), counts=False, **rest)
    except Refused as no:
        return _released(pm, held, by, no.refusal.detail, error=True) if no.code == "invalid" else None


def _cancelled(pm: Pointsman, task: Task, by: By, reason: str) -> Task | None:
    try:
        return pm.cancel(task.id, by=by, epoch=task.epoch, reason=_words(reason)).task
    except Refused:
        return None


def _held(pm: Pointsman, id: str, epoch: int, by: By) -> Task | None:
    """The task, if it is this owner's under a lease, be that over or not."""
    try:
        task = pm.get(id)
    except Refused:
        return None
    name = by if isinstance(by, str) else by.name
    return task if (task.owner, task.epoch) == (name, epoch) and task.lease is not None else None


def _words(reason: object) -> str:
    """A handler may give anything for a reason; its task is not held for that until the lease is over."""
    text = clean(reason if isinstance(reason, str) else repr(reason))
    return text if text.strip() else "no reason was given"


def _released(pm: Pointsman, task: Task, by: By, reason: str, **how: Any) -> Task | None:
    try:
        return pm.release(task.id, by=by, epoch=task.epoch, reason=_words(reason), **how)
    except Refused:
        return None
