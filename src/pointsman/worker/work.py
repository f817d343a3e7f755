"""One task in a handler's hands: steps that are remembered, effects that are written down before they are sent, checkpoints, events.

What an effect whose outcome nobody knows may do next is its kind's rule:

    repeatable, keyed   it is sent again, under the same id
    lookup              the remote is asked first. Found: that is its outcome. Not found counts only once the sender has given up and
                        a time to settle has passed; until then, and while the remote does not say, the task is put off
    ask                 the task waits for a person
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable, iscoroutine
from typing import Any, TypeVar, cast

from pointsman.engine.ledger import LONGEST_S, Ledger
from pointsman.engine.operations import Resumed, Shown
from pointsman.engine.owning import Owning
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.proposing import Proposing
from pointsman.engine.steps import Awaits, Blocks, Steps, adrive, drive, verb
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.chain import same
from pointsman.kernel.definition import Kind
from pointsman.kernel.ingest import faults
from pointsman.kernel.operation import AGAIN, Operation, Outcome, Planned
from pointsman.kernel.task import Task
from pointsman.store.checkpoints import Checkpoint
from pointsman.store.database import Database, Probe
from pointsman.types import SECOND, Instant, Json
from pointsman.worker.keeper import Keeper
from pointsman.worker.outcomes import Defer, Done, EffectFailed, Fail, Finding, Found, Halt, Lost, NotFound, NotSent, Unknown, Waits

log = logging.getLogger("pointsman")

T = TypeVar("T")
Send = Callable[[Operation], Any]
Find = Callable[[Operation], Any]

TIMEOUT_S = 60.0
SPARE_S = 5.0
"""By how much longer than its timeout a lease is asked for, so that it still outlasts it when the answer has come."""
UNKNOWN_REST_S = 60.0
POINTS = (
    *("step.before", "step.after", "step.remembered", "intent.before", "intent.after", "send.before", "send.after"),
    *("find.before", "find.after", "outcome.before", "outcome.after"),
)
"""Every point that a worker's probe is called at."""


def slack_s(timeout_s: float) -> float:
    """How long after its intent a send may begin; its deadline is put off by as much."""
    return 1.0 + timeout_s / 10


class Call:
    """Something of the handler's own is run: by a blocking handler a plain function, by an awaiting one either kind."""

    def __init__(self, function: Callable[..., Any], *args: Any):
        self.function, self.args = function, args

    def run(self, db: Database) -> Any:
        answer = self.function(*self.args)
        if iscoroutine(answer):
            answer.close()
            raise TypeError("an async function is called by an async handler: write `async def` and `await work...`")
        return answer

    async def arun(self, db: Database) -> Any:
        answer = self.function(*self.args)
        return await answer if isawaitable(answer) else answer


class Acting:
    """What a handler can do with its task, in either colour. `lost` says why, once the lease is lost: every call after that ends the
    handler. `last` is the name of what it did last."""

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
            return _answer(kept)
        self._probe("step.before")
        result = yield Call(function, *args)
        self._probe("step.after")
        given = {**self._owner, "request": list(args)}
        shown = yield from self._owned(name, Ledger.remember.steps(self.pm, self.task.id, name, result, **given))
        self._probe("step.remembered")
        return _answer(shown.operation)

    @verb
    def effect(
        self,
        name: str,
        send: Send,
        *,
        find: Find | None = None,
        kind: Kind | None = None,
        request: Json = None,
        timeout_s: float = TIMEOUT_S,
        settle_s: float | None = None,
        compensates: str | None = None,
    ) -> Steps[Any]:
        """What `send(op)` answers, which must be JSON; what it answered before, if it did. `op.id` is the same for every attempt and
        owner, `op.request` what is to be sent, and `send` gives up within `timeout_s` seconds.

        Of an effect that the machine declares, kind and request are the machine's. Another operation has a `kind` and a `request`
        of its own. `find(op)` asks the remote whether it knows of it: Found(result), NotFound or Unknown. Whatever else than NotSent
        and EffectFailed `send` raises leaves in doubt what happened."""
        definition = self._keeper.definition(self.task)
        declared = definition.effect.get(name)
        if (declared.kind if declared else kind) == "lookup" and find is None:
            raise invalid(("find", f"{name} is looked up when it is in doubt: give find=, which asks the remote"))
        intent = {"kind": kind, "request": request, "effect": name if declared or kind is None else None, "compensates": compensates}
        spans = {"timeout_s": min(timeout_s + slack_s(timeout_s), LONGEST_S), "settle_s": settle_s}
        begun_at, shown = yield from self._begun(name, intent | spans)
        if shown.known and shown.standing in ("started", "in_doubt"):
            looked = yield from self._resolved(shown.operation, find)
            if looked is not None:
                return _answer(looked)
            if shown.operation.kind not in AGAIN:
                begun_at, shown = yield from self._begun(name, intent | spans)
        if shown.standing in ("succeeded", "failed"):
            return _answer(shown.operation)
        return (yield from self._sent(shown, send, timeout_s, begun_at))

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

    @verb
    def resume(self) -> Steps[Resumed]:
        """All that is known of how far the task is: operations finished, in doubt and to be done, and the last checkpoint."""
        self._goes_on()
        found = yield from Ledger.resume.steps(self.pm, self.task.id, by=self.by, session=self.task.session)
        self._known, self._checkpoint = {item.name: item for item in found.finished}, found.checkpoint
        return found

    def defer(self, reason: str, *, seconds: float | None = None, until: Instant | str | None = None) -> Defer:
        """What a handler returns that can do nothing now: `return work.defer("the provider is down", seconds=60)`."""
        return Defer(reason, seconds, until)

    # ── fenced calls ─────────────────────────────────────────────────────────────────────────────────────────────────

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
            yield from Acting.resume.steps(self)
        self._goes_on()
        return cast("dict[str, Operation]", self._known)

    # ── effects ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begun(self, name: str, intent: Mapping[str, Any]) -> Steps[tuple[float, Shown]]:
        """The durable intent, and when it was asked for."""
        self._probe("intent.before")
        asked_at = self._keeper.clock()
        shown = yield from self._owned(name, Ledger.begin.steps(self.pm, self.task.id, name, **intent, **self._owner))
        self._probe("intent.after")
        return asked_at, shown

    def _resolved(self, operation: Operation, find: Find | None) -> Steps[Operation | None]:
        """What came of an operation that is in doubt; None when it is to be sent."""
        if operation.kind in AGAIN:
            return None
        if operation.kind == "ask" or find is None:
            raise Halt(Waits(operation))
        self._probe("find.before")
        finding: Finding = yield Call(find, operation)
        self._probe("find.after")
        if isinstance(finding, Found):
            return (yield from self._settled(operation, "succeeded", finding.result))
        if finding is Unknown or isinstance(finding, Unknown):
            raise Halt(Defer(f"the remote does not say whether operation {operation.name} happened", UNKNOWN_REST_S))
        if finding is not NotFound and not isinstance(finding, NotFound):
            raise TypeError(f"find answers Found(result), NotFound or Unknown, not {finding!r}")
        return (yield from self._not_found(operation))

    def _not_found(self, operation: Operation) -> Steps[None]:
        """It may be on its way yet. The store knows until when; of what this very owner began, it would believe too soon."""
        if operation.epoch == self.claimed.epoch:
            rest_s = (operation.settles_at - operation.begun_at) / SECOND
            raise Halt(Defer(f"operation {operation.name} may still arrive", rest_s))
        try:
            yield from self._settled(operation, "not_done", None)
        except Refused as no:
            if no.code != "operation_in_doubt":
                raise
            raise Halt(Defer(no.refusal.detail, no.refusal.extra["retry_after_s"])) from no

    def _sent(self, shown: Shown, send: Send, timeout_s: float, begun_at: float) -> Steps[Any]:
        operation, usual_s = shown.operation, self.kept.lease_s
        try:
            if not (yield from self._outlasts(timeout_s)) or (not shown.known and self._keeper.clock() - begun_at > slack_s(timeout_s)):
                yield from self._not_sent(shown)
                raise Halt(Fail(f"operation {operation.name} was not sent: the lease does not outlast its {timeout_s:g} seconds"))
            self._probe("send.before")
            result = yield Call(send, operation)
            self._probe("send.after")
        except NotSent:
            yield from self._not_sent(shown)
            raise
        except EffectFailed as no:
            yield from self._settled(operation, "failed", no.result)
            raise
        finally:
            self.kept.lease_s = usual_s
        return _answer((yield from self._settled(operation, "succeeded", result)))

    def _not_sent(self, shown: Shown) -> Steps[None]:
        """That this attempt sent nothing says nothing of an earlier one."""
        if not shown.known:
            yield from self._settled(shown.operation, "not_done", None)

    def _settled(self, operation: Operation, status: Outcome, result: Json) -> Steps[Operation]:
        """What came of it. Whoever has lost the task meanwhile says so all the same: it is kept as testimony."""
        self._probe("outcome.before")
        shown = yield from self._asked(operation.name, Ledger.finish.steps(self.pm, operation.id, status, result, **self._owner))
        self._probe("outcome.after")
        return shown.operation

    def _outlasts(self, timeout_s: float) -> Steps[bool]:
        """Whether the lease ends after a send that begins now would have given up. It is renewed if it does not, and for as long at
        every renewal until the send is over."""
        self._goes_on()
        if self._keeper.lasts(self.kept, timeout_s):
            return True
        lease_s = self.kept.lease_s = min(timeout_s + SPARE_S, LONGEST_S)
        renewed = Owning.renew.steps(self.pm, self.task.id, **self._owner, session=self.task.session, lease_s=lease_s)
        yield from self._owned(self.last or "", renewed, lease_s)
        return self._keeper.lasts(self.kept, timeout_s)


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


def _answer(operation: Operation) -> Any:
    if operation.status == "failed":
        raise EffectFailed(operation.result)
    return operation.result
