"""The calls of whoever owns a task: each is fenced by its epoch, tells its keeper that the lease begins anew, and ends the handler
once the lease is lost."""

import logging
from collections.abc import Callable
from inspect import isawaitable, iscoroutine
from typing import Any, TypeVar, cast

from pointsman.engine.ledger import Ledger
from pointsman.engine.operations import Resumed, Shown
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.steps import Steps, verb
from pointsman.errors import Refusal, Refused
from pointsman.kernel.operation import Operation
from pointsman.kernel.task import Task
from pointsman.store.checkpoints import Checkpoint
from pointsman.store.database import Database, Probe
from pointsman.worker.keeper import Keeper
from pointsman.worker.outcomes import EffectFailed, Halt, Lost

log = logging.getLogger("pointsman")

T = TypeVar("T")

POINTS = (
    *("step.before", "step.after", "step.remembered", "intent.before", "intent.after", "send.before", "send.after"),
    *("find.before", "find.after", "outcome.before", "outcome.after"),
)
"""Every point that a worker's probe is called at."""


class Misused(TypeError):
    """An async function where a plain handler can call none: nothing of it was run."""


class Call:
    """Something of the handler's own is run: by a blocking handler a plain function, by an awaiting one either kind."""

    def __init__(self, function: Callable[..., Any], *args: Any):
        self.function, self.args = function, args

    def run(self, db: Database) -> Any:
        answer = self.function(*self.args)
        if iscoroutine(answer):
            answer.close()
            raise Misused("an async function is called by an async handler: write `async def` and `await work...`")
        return answer

    async def arun(self, db: Database) -> Any:
        answer = self.function(*self.args)
        return await answer if isawaitable(answer) else answer


class Owned:
    """A task in its owner's hands. `lost` says why, once the lease is lost: every call after that ends the handler. `last` is the
    name of what was done last."""

    def __init__(self, keeper: Keeper, task: Task, by: str, asked_at: float, probe: Probe):
        self.task = task
        self.claimed, self.claimed_at = task, asked_at
        self.by = by
        self.lost: Refusal | None = None
        self.last: str | None = None
        self.kept = keeper.keep(task, by, asked_at, self.lose)
        self._keeper, self._probe = keeper, probe
        self._known: dict[str, Operation] | None = {} if task.epoch == 1 else None
        self._checkpoint: Checkpoint | None = None

    @property
    def pm(self) -> Pointsman:
        return self._keeper.pm

    @verb
    def resume(self) -> Steps[Resumed]:
        """All that is known of how far the task is: operations finished, in doubt and to be done, and the last checkpoint."""
        self._goes_on()
        found = yield from Ledger.resume.steps(self.pm, self.task.id, by=self.by, session=self.task.session)
        self._known, self._checkpoint = {item.name: item for item in found.finished}, found.checkpoint
        return found

    @property
    def _owner(self) -> dict[str, Any]:
        return {"by": self.by, "epoch": self.claimed.epoch}

    def _goes_on(self) -> None:
        if self.lost is not None:
            raise Halt(Lost(self.lost))

    def _owned(self, what: str, steps: Steps[T], lease_s: float | None = None) -> Steps[T]:
        """A call of the owner, unless its lease is lost."""
        self._goes_on()
        return (yield from self._asked(what, steps, lease_s))

    def _asked(self, what: str, steps: Steps[T], lease_s: float | None = None) -> Steps[T]:
        """When somebody else has the task, the handler ends; else its lease begins anew, and its keeper is told."""
        self.last, asked_at = what, self._keeper.clock()
        try:
            answer = yield from steps
        except Refused as no:
            if no.code not in ("lease_lost", "not_owner"):
                raise
            self.lose(no.refusal)
            raise Halt(Lost(no.refusal)) from no
        task = answer.task if isinstance(answer, Shown) else answer
        if isinstance(task, Task):
            self.task = task
            self._keeper.heard(self.kept, task, asked_at, lease_s)
        if isinstance(answer, Shown) and self._known is not None:
            self._known[answer.operation.name] = answer.operation
        return answer

    def lose(self, no: Refusal) -> None:
        """Nothing may be done about the task any more."""
        if self.lost is None:
            self.lost = no
            log.warning("task %s is lost: %s", self.task.id, no.detail)

    def _remembered(self) -> Steps[dict[str, Operation]]:
        """What the task has finished by name: read once, where somebody may have held it before."""
        if self._known is None:
            yield from Owned.resume.steps(self)
        self._goes_on()
        return cast("dict[str, Operation]", self._known)


def answer(operation: Operation) -> Any:
    if operation.status == "failed":
        raise EffectFailed(operation.result)
    return operation.result
