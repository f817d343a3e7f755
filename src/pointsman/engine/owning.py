"""The verbs of whoever owns a task, and of operators about one: hold it for longer, give it back, take it out of work for
good, put it back."""

from functools import partial

from pointsman.engine import leases, operations
from pointsman.engine.claiming import held_for
from pointsman.engine.ordering import moment
from pointsman.engine.proposing import Proposing, given_of
from pointsman.engine.queries import Cancelled
from pointsman.engine.steps import Read, Steps, Write, durable, verb
from pointsman.engine.view import By, Id, task_named, typed
from pointsman.errors import invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.ingest import Faults
from pointsman.kernel.lease import Back
from pointsman.kernel.retry import Cause
from pointsman.kernel.task import Task
from pointsman.types import Instant, seconds

LONGEST_REST_S = 30 * 86_400.0


class Owning(Proposing):
    @verb
    def renew(self, id: Id, *, by: By, epoch: int | None = None, session: str | None = None, lease_s: float | None = None) -> Steps[Task]:
        """Hold a task for longer, without an entry; the task with its new lease."""
        typed(("epoch", epoch, int | None))
        wanted = task_named(id)
        deciding = self.deciding(by, session, None, {})
        claim = Proposal("renew", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield Write(partial(leases.renew, deciding, wanted, claim, held_for(lease_s))))

    @verb
    def release(
        self,
        id: Id,
        *,
        by: By,
        epoch: int | None = None,
        reason: str | None = None,
        counts: bool = True,
        error: bool = False,
        run_at: Instant | str | None = None,
        rest_s: float | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Task]:
        """Give a task back; it moves as a lapse does and keeps all its fields.

        It counts as an attempt, and too many of those park the task. With `error` it also rests for a while; without
        `counts` it is only deferred, as when somebody else's service is down. Nobody claims it before `run_at` (µs, or
        RFC 3339), or for `rest_s` seconds."""
        typed(("epoch", epoch, int | None), ("reason", reason, str | None), ("counts", counts, bool), ("error", error, bool))
        until, found = _until(run_at, rest_s)
        if error and not counts:
            found.append(("counts", "an error counts as an attempt"))
        if found:
            raise invalid(*found)
        wanted = task_named(id)
        asked = {"verb": "release", "id": wanted, "epoch": epoch, "reason": reason, "session": session}
        said = {name: value for name, value, usual in (("counts", counts, True), ("error", error, False)) if value is not usual}
        said |= given_of({"run_at": until, "rest_s": rest_s})
        deciding = self.deciding(by, session, idempotency_key, asked | said)
        claim = Proposal("release", {}, deciding.call.by, self.door.strict, session, epoch)
        rest = None if rest_s is None else seconds(rest_s)
        unit = partial(leases.release, deciding, wanted, claim, reason, Back(_cause(counts=counts, error=error), rest, until))
        return (yield from self._told(deciding, "release", durable(unit)))

    @verb
    def cancel(
        self,
        id: Id,
        *,
        by: By,
        reason: str,
        cascade: bool = False,
        expect_version: int | None = None,
        epoch: int | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Cancelled]:
        """Take no further step of a task, and say what has happened already; for its owner, or role operator.

        It moves to the state that its machine has for what is cancelled; with `cascade` its open children are cancelled
        too. Tasks that wait for it go by the fate they were given."""
        typed(("cascade", cascade, bool), ("expect_version", expect_version, int | None), ("epoch", epoch, int | None))
        _because(reason)
        wanted = task_named(id)
        asked = {"verb": "cancel", "id": wanted, "reason": reason, "cascade": cascade, "expect_version": expect_version}
        deciding = self.deciding(by, session, idempotency_key, asked | {"epoch": epoch, "session": session})
        claim = Proposal("cancel", {}, deciding.call.by, self.door.strict, session, epoch)
        unit = partial(leases.cancel, deciding, wanted, claim, reason, expect_version, cascade)
        task = yield from self._told(deciding, "cancel", durable(unit))
        return Cancelled(task, (yield Read(partial(operations.happened, self.engine.registry, task))))

    @verb
    def unpark(self, id: Id, *, by: By, reason: str, expect_version: int | None = None, idempotency_key: str | None = None) -> Steps[Task]:
        """Put a parked task back into work, its attempts begun anew; needs role operator."""
        typed(("expect_version", expect_version, int | None))
        _because(reason)
        wanted = task_named(id)
        asked = {"verb": "unpark", "id": wanted, "reason": reason, "expect_version": expect_version}
        deciding = self.deciding(by, None, idempotency_key, asked)
        unit = partial(leases.unpark, deciding, wanted, expect_version, reason)
        return (yield from self._told(deciding, "unpark", durable(unit)))


def _because(reason: object) -> None:
    typed(("reason", reason, str))
    if not str(reason).strip():
        raise invalid(("reason", "must not be blank"))


def _until(run_at: Instant | str | None, rest_s: float | None) -> tuple[Instant | None, Faults]:
    """The moment before which nobody is to claim a task, and what is wrong with how it was said."""
    typed(("rest_s", rest_s, int | float | None))
    until, found = moment(run_at, "run_at")
    if rest_s is not None and not 0 <= rest_s <= LONGEST_REST_S:
        found = [*found, ("rest_s", f"must be from 0 to {LONGEST_REST_S:g} seconds")]
    if run_at is not None and rest_s is not None:
        found = [*found, ("rest_s", "says the same as run_at: give one")]
    return until, found


def _cause(*, counts: bool, error: bool) -> Cause:
    return "error" if error else "lost" if counts else "deferred"
