"""One task in a handler's hands: steps that are remembered, effects, checkpoints, events."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pointsman.engine.ledger import Ledger
from pointsman.engine.proposing import Proposing
from pointsman.engine.steps import Awaits, Blocks, Steps, adrive, drive, verb
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.chain import same
from pointsman.kernel.ingest import faults
from pointsman.kernel.operation import Operation, Planned
from pointsman.kernel.task import Task
from pointsman.store.checkpoints import Checkpoint
from pointsman.types import Instant, Json
from pointsman.worker.outcomes import Defer, Done
from pointsman.worker.owned import Call, answer
from pointsman.worker.undoing import Undoing


class Acting(Undoing):
    """What a handler can do with its task, in either colour."""

    @verb
    def propose(self, event: str, args: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Steps[Done]:
        """Propose an event as the owner, now. Refused is raised as everywhere."""
        owner = {**self._owner, "session": self.task.session, "idempotency_key": idempotency_key}
        return Done((yield from self._owned(event, Proposing.propose.steps(self.pm, self.task.id, event, args, **owner))))

    @verb
    def step(self, name: str, function: Callable[..., Any], *args: Json) -> Steps[Any]:
        """What a function answers, which must be JSON. It is run once it seems: when the task is begun anew, what it answered then is
        answered again. It may have run more often, so it must do no harm twice.

        The arguments are what is asked for, and must be JSON too; another name is another step. What is not JSON, a client or a
        session, is bound to the function."""
        if found := faults(list(args), "args"):
            raise invalid(*found)
        kept = (yield from self._remembered()).get(name)
        if kept is not None and kept.status in ("succeeded", "failed"):
            _same_request(kept, list(args), self.task)
            return answer(kept)
        self._probe("step.before")
        result = yield Call(function, *args)
        self._probe("step.after")
        given = {**self._owner, "request": list(args)}
        shown = yield from self._owned(name, Ledger.remember.steps(self.pm, self.task.id, name, result, **given))
        self._probe("step.remembered")
        return answer(shown.operation)

    @verb
    def checkpoint(
        self, data: Json, *, plan: Sequence[Mapping[str, Any] | Planned] = (), progress: Json = None, expect: int | None = None
    ) -> Steps[Checkpoint]:
        """Keep how far it is, in place of the last word on that; `plan` names operations that are still to be begun."""
        given = {**self._owner, "plan": plan, "progress": progress, "expect": expect}
        self._checkpoint = yield from self._owned("checkpoint", Ledger.checkpoint.steps(self.pm, self.task.id, data, **given))
        return self._checkpoint

    @verb
    def progress(self, progress: Json) -> Steps[Checkpoint]:
        """Show how far it is, and keep the last checkpoint's data and plan."""
        yield from self._remembered()
        last = self._checkpoint
        given = {**self._owner, "plan": () if last is None else last.plan, "progress": progress}
        steps = Ledger.checkpoint.steps(self.pm, self.task.id, None if last is None else last.data, **given)
        self._checkpoint = yield from self._owned("progress", steps)
        return self._checkpoint

    def defer(self, reason: str, *, seconds: float | None = None, until: Instant | str | None = None) -> Defer:
        """What a handler returns that can do nothing now: `return work.defer("the provider is down", seconds=60)`."""
        return Defer(reason, seconds, until)


class Work(Acting, Blocks):
    """One task in the hands of a handler that is a plain function."""

    def drive(self, steps: Steps[Any]) -> Any:
        return drive(steps, self.pm.engine.db)


class AsyncWork(Acting, Awaits):
    """The same for a handler that is `async def`: its verbs are awaited, and what they call may be async."""

    async def _drive(self, steps: Steps[Any]) -> Any:
        return await adrive(steps, self.pm.engine.db)

    def drive(self, steps: Steps[Any]) -> Any:
        return self._drive(steps)


def _same_request(kept: Operation, request: Json, task: Task) -> None:
    """A name stands for one request, also where the answer is known without asking the store."""
    if kept.kind != "repeatable" or kept.effect is not None or not same(kept.request, request):
        detail = f"operation {kept.name} was begun with another request"
        raise Refused(Refusal("idempotency_conflict", detail, task=task.id, state=task.state, version=task.version))
