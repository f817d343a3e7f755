"""What becomes of a task that is still held when its worker is done with it."""

from pointsman.engine.pointsman import Pointsman
from pointsman.engine.view import By
from pointsman.errors import Refused
from pointsman.kernel.ingest import clean
from pointsman.kernel.task import Task


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


def _held(pm: Pointsman, id: str, epoch: int, by: By) -> Task | None:
    """The task, if it is this owner's under a lease, be that over or not."""
    try:
        task = pm.get(id)
    except Refused:
        return None
    name = by if isinstance(by, str) else by.name
    return task if (task.owner, task.epoch) == (name, epoch) and task.lease is not None else None


def _released(pm: Pointsman, task: Task, by: By, reason: str, *, counts: bool, error: bool = False) -> Task | None:
    try:
        return pm.release(task.id, by=by, epoch=task.epoch, reason=clean(reason), counts=counts, error=error)
    except Refused:
        return None
