"""Effects: written down before they are sent, sent while the lease outlasts them, and settled when nobody knows.

What an effect whose outcome nobody knows may do next is its kind's rule:

    repeatable, keyed   it is sent again, under the same id
    lookup              the remote is asked first. Found: that is its outcome. Not found counts only once the sender has given up and
                        a time to settle has passed; until then, and while the remote does not say, the task is put off
    ask                 the task waits for a person
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pointsman.engine.ledger import LONGEST_S, Ledger
from pointsman.engine.operations import Shown
from pointsman.engine.owning import Owning
from pointsman.engine.steps import Steps, verb
from pointsman.engine.view import typed
from pointsman.errors import Refused, invalid
from pointsman.kernel.definition import Kind
from pointsman.kernel.ingest import clean
from pointsman.kernel.operation import AGAIN, Operation, Outcome
from pointsman.types import SECOND, Json
from pointsman.worker.outcomes import Defer, EffectFailed, Fail, Finding, Found, Halt, NotFound, NotSent, Unknown, Waits
from pointsman.worker.owned import Call, Misused, Owned, answer

Send = Callable[[Operation], Any]
Find = Callable[[Operation], Any]

TIMEOUT_S = 60.0
SPARE_S = 5.0
"""By how much longer than its timeout a lease is asked for, so that it still outlasts it when the answer has come."""
LONGEST_SEND_S = LONGEST_S - 60.0
"""So that a lease can outlast it."""
UNKNOWN_REST_S = 60.0


def slack_s(timeout_s: float) -> float:
    """How long after its intent a send may begin; its deadline is put off by as much."""
    return 1.0 + timeout_s / 10


class Effects(Owned):
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
        typed(("name", name, str), ("timeout_s", timeout_s, float | int))
        if not 1 <= timeout_s <= LONGEST_SEND_S:
            raise invalid(("timeout_s", f"must be from 1 to {LONGEST_SEND_S:g} seconds"))
        if not callable(send):
            raise invalid(("send", "must be a function"))
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
                return answer(looked)
            if shown.operation.kind not in AGAIN:
                begun_at, shown = yield from self._begun(name, intent | spans)
        if shown.standing in ("succeeded", "failed"):
            return answer(shown.operation)
        return (yield from self._sent(shown, send, timeout_s, begun_at))

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
        except (NotSent, Misused):
            yield from self._not_sent(shown)
            raise
        except EffectFailed as no:
            yield from self._settled(operation, "failed", no.result)
            raise
        finally:
            self.kept.lease_s = usual_s
        return answer((yield from self._settled(operation, "succeeded", result)))

    def _not_sent(self, shown: Shown) -> Steps[None]:
        """That this attempt sent nothing says nothing of an earlier one."""
        if not shown.known:
            yield from self._settled(shown.operation, "not_done", None)

    def _settled(self, operation: Operation, status: Outcome, result: Json) -> Steps[Operation]:
        """What came of it. Whoever has lost the task meanwhile says so all the same: it is kept as testimony. What cannot be kept as
        a result leaves nothing in doubt either: the outcome is written down without it, and then the handler is told."""
        self._probe("outcome.before")
        said = partial(Ledger.finish.steps, self.pm, operation.id, status, **self._owner)
        try:
            shown = yield from self._asked(operation.name, said(result))
        except Refused as no:
            if no.code == "invalid":
                yield from self._asked(operation.name, said(None, note=clean(f"its result could not be kept: {no.refusal.detail}")))
            raise
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
