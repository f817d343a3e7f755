"""Large boards, made by the engine's own units of work, a thousand to a commit: every row is what a call would write."""

from functools import partial

from bench.python_api import BY
from pointsman import Pointsman, Task
from pointsman.engine import propose as units
from pointsman.engine.decision import Done
from pointsman.kernel.case import Proposal
from pointsman.kernel.terms import Terms
from pointsman.store.database import Tx

GROUP = 1_000
FIELDS = {"title": "Release notes", "brief": "Say what changed in version two"}


def queue(pm: Pointsman, count: int) -> None:
    """`count` more tasks wait."""
    for size in _groups(count):
        pm.engine.db.run(partial(_create, pm, size))


def move(pm: Pointsman, task: Task, count: int) -> None:
    """`count` more versions of a task that is being drafted."""
    for size in _groups(count):
        pm.engine.db.run(partial(_draft, pm, task, size))


def _groups(count: int) -> list[int]:
    return [min(GROUP, count - begun) for begun in range(0, count, GROUP)]


def _create(pm: Pointsman, size: int, tx: Tx) -> None:
    for _ in range(size):
        deciding = pm.deciding(BY, None, None, {})
        units.create(deciding, "tasks", FIELDS, Terms(), Proposal("create", {}, deciding.call.by), tx, False)


def _draft(pm: Pointsman, task: Task, size: int, tx: Tx) -> None:
    for _ in range(size):
        deciding = pm.deciding(BY, None, None, {})
        asked = Proposal("start_draft", {}, deciding.call.by, epoch=task.epoch)
        moved = units.propose(deciding, task.id, asked, tx, False)
        assert isinstance(moved, Done), "a draft can always be begun again"
