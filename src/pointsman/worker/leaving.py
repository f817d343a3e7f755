"""What becomes of a task that is still held when its worker is done with it."""

from pointsman.engine.pointsman import Pointsman
from pointsman.engine.view import By
from pointsman.errors import Refused
from pointsman.kernel.ingest import clean
from pointsman.kernel.task import Task


def give_back(pm: Pointsman, task: Task, by: By, reason: str, *, counts: bool, error: bool = False) -> Task | None:
    """Release a task as it was claimed. None when it is not held any more, waits without a lease, or somebody else has
    it; what the store does not take is left to its lease."""
    try:
        return pm.release(task.id, by=by, epoch=task.epoch, session=task.session, reason=clean(reason), counts=counts, error=error)
    except Refused:
        return None


def leave(pm: Pointsman, task: Task, by: By, reason: str, *, well: bool) -> Task | None:
    """Give back what a worker leaves. An attempt that failed is counted as an error; one that ended well is counted only if
    it moved the task, so that work which moves without ever ending is bounded."""
    return give_back(pm, task, by, reason, counts=not well or _moved(pm, task), error=not well)


def _moved(pm: Pointsman, task: Task) -> bool:
    try:
        return pm.get(task.id).version > task.version
    except Refused:
        return False
