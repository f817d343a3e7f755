"""The verbs that ask for a change: create, claim, propose, and what an owner or an operator does about a task."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from math import inf
from typing import Any

from pointsman.engine import batch, ends, leases, past, pending, terms
from pointsman.engine import propose as units
from pointsman.engine.decision import Deciding, Done, Pending
from pointsman.engine.line import Wanted
from pointsman.engine.queries import Cancelled
from pointsman.engine.steps import Await, Read, Steps, Write, durable, verb
from pointsman.engine.view import By, Id, View, task_named, typed
from pointsman.engine.waiting import QUEUE_POLL_S, until
from pointsman.errors import Refusal, Refused, StoreError, invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.chain import digest
from pointsman.kernel.lease import LONGEST, SHORTEST
from pointsman.kernel.retry import Cause
from pointsman.kernel.task import Dependency, Rule, Task
from pointsman.kernel.terms import Terms
from pointsman.store import proposals
from pointsman.store.hints import of_queue, of_task
from pointsman.types import SECOND, Duration, seconds

Dependencies = Sequence[Mapping[str, Any] | Dependency]
Tasks = list[Task]


class Proposing(View):
    @verb
    def create(
        self,
        machine: str,
        fields: Mapping[str, Any],
        *,
        by: By,
        priority: int = 0,
        dedupe_key: str | None = None,
        blocked_by: Dependencies = (),
        parent: Id | None = None,
        epoch: int | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Task]:
        """Create a task on the newest version of a machine, from the fields that no event sets.

        A `dedupe_key` that the machine knows answers the task that is there, if it was asked for in the same words.
        `blocked_by` are tasks to wait for, each `{"task": id, "on_failure": "block" | "cancel" | "continue"}`: nobody
        claims this one before they are done. A `parent`'s owner says its `epoch`."""
        typed(("machine", machine, str), ("fields", fields, dict), ("epoch", epoch, int | None))
        named, found = (None, []) if parent is None else terms.named(parent, "parent")
        waits, faults = terms.dependencies(blocked_by)
        if found := [*terms.priority(priority), *terms.dedupe_key(dedupe_key), *found, *faults]:
            raise invalid(*found)
        said = {"dedupe_key": dedupe_key, "parent": named, "blocked_by": [asdict(item) for item in waits], "epoch": epoch}
        asked = {"verb": "create", "machine": machine, "fields": fields, "priority": priority}
        deciding = self.deciding(by, session, idempotency_key, asked | {name: value for name, value in said.items() if value})
        owner = Proposal("create", {}, deciding.call.by, self.door.strict, session, epoch)
        wanted = Terms(priority, dedupe_key=dedupe_key, parent=named, blocked_by=waits)
        return (yield from self._told(deciding, "create", durable(partial(units.create, deciding, machine, fields, wanted, owner))))

    @verb
    def create_batch(
        self,
        tasks: Sequence[Mapping[str, Any]],
        *,
        by: By,
        machine: str | None = None,
        parent: Id | None = None,
        epoch: int | None = None,
        join: Rule | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Tasks]:
        """Create up to 1,000 tasks, all or none; they are answered in the order in which they were asked for.

        Each is an object with `fields`, and `machine`, `priority`, `dedupe_key`, `blocked_by` as `create` takes them;
        `machine` beside the tasks is for those that name none. A task with a `ref` may be waited for by others of the
        batch as `#ref`. With a `parent` they are its children, and with `join` (all, any, or how many have to be done) it
        then waits for its open children without a lease."""
        typed(("machine", machine, str | None), ("epoch", epoch, int | None))
        named = None if parent is None else task_named(parent, "parent")
        items = terms.batch(tasks, named, machine)
        if join is not None and named is None:
            raise invalid(("join", "is for the children of a parent"))
        rule = terms.rule(join, len(tasks))
        asked = {"tasks": digest("batch", [*tasks]), "machine": machine, "parent": named, "epoch": epoch, "join": rule}
        deciding = self.deciding(by, session, idempotency_key, {"verb": "create_batch", **asked})
        owner = Proposal("create", {}, deciding.call.by, self.door.strict, session, epoch)
        wanted = batch.Asked(items, terms.refs(tasks), named, rule)
        return (yield from self._told(deciding, "create", durable(partial(batch.create, deciding, wanted, owner))))

    @verb
    def claim(
        self,
        machine: str,
        *,
        by: By,
        id: Id | None = None,
        states: Sequence[str] | None = None,
        expect_version: int | None = None,
        session: str | None = None,
        lease_s: float | None = None,
        wait_s: float = 0,
        idempotency_key: str | None = None,
    ) -> Steps[Task | None]:
        """Take the task with this id, or the first that waits; None when none does, even after `wait_s` seconds.

        What waits are unowned tasks in the initial state and tasks whose owner's lease ran out, or both in `states`.
        `lease_s` is how long to hold it without a call, the state's own time if not said."""
        numbers = (("expect_version", expect_version, int | None), ("wait_s", wait_s, float | int))
        typed(("machine", machine, str), ("states", states, list | tuple | None), *numbers)
        wanted = Wanted(machine, None if id is None else task_named(id), None if states is None else tuple(states))
        named = {"id": wanted.task, "states": list(states or ()), "expect_version": expect_version, "session": session}
        deciding = self.deciding(by, session, idempotency_key, {"verb": "claim", "machine": machine, "lease_s": lease_s, **named})
        proposal = Proposal("", {}, deciding.call.by, self.door.strict, session, expect_version=expect_version, lease=_lease(lease_s))

        def look() -> Steps[Task | None]:
            return (yield from self._told(deciding, "claim", durable(partial(units.claim, deciding, wanted, proposal))))

        return (yield from until(self.engine, of_queue(machine), look, wait_s, line=wanted, poll_s=QUEUE_POLL_S))

    @verb
    def propose(
        self,
        id: Id,
        event: str,
        args: Mapping[str, Any] | None = None,
        *,
        by: By,
        epoch: int | None = None,
        expect_version: int | None = None,
        digest: str | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        wait_s: float | None = None,
    ) -> Steps[Task]:
        """Ask for an event. Answers the task after it; raises Refused otherwise.

        `digest` is the content that a decision was shown, `epoch` what the owner's claim returned. A dry run writes
        nothing and runs no check. When checks take longer than `wait_s` seconds the proposal goes on without its
        caller: Refused `evidence_pending`, with its id as `extra["proposal"]`."""
        args = {} if args is None else args
        numbers = (("epoch", epoch, int | None), ("expect_version", expect_version, int | None), ("wait_s", wait_s, float | int | None))
        typed(("event", event, str), ("args", args, dict), ("digest", digest, str | None), *numbers)
        wanted = task_named(id)
        guards = {"epoch": epoch, "expect_version": expect_version, "digest": digest, "session": session}
        deciding = self.deciding(by, session, idempotency_key, {"verb": "propose", "id": wanted, "event": event, "args": args, **guards})
        proposal = Proposal(event, args, deciding.call.by, self.door.strict, session, epoch, expect_version, digest)
        if dry_run:
            return _accepted((yield Read(partial(units.dry_run, deciding, wanted, proposal))))
        return (yield from self._told(deciding, event, self._proposed(deciding, wanted, proposal, wait_s)))

    @verb
    def renew(self, id: Id, *, by: By, epoch: int | None = None, session: str | None = None, lease_s: float | None = None) -> Steps[Task]:
        """Hold a task for longer, without an entry; the task with its new lease."""
        typed(("epoch", epoch, int | None))
        wanted = task_named(id)
        deciding = self.deciding(by, session, None, {})
        claim = Proposal("renew", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield Write(partial(leases.renew, deciding, wanted, claim, _lease(lease_s))))

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
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Task]:
        """Give a task back; it moves as a lapse does and keeps all its fields.

        It counts as an attempt, and too many of those park the task. With `error` it also rests for a while; without
        `counts` it is only deferred, as when somebody else's service is down."""
        typed(("epoch", epoch, int | None), ("reason", reason, str | None), ("counts", counts, bool), ("error", error, bool))
        if error and not counts:
            raise invalid(("counts", "an error counts as an attempt"))
        wanted = task_named(id)
        asked = {"verb": "release", "id": wanted, "epoch": epoch, "reason": reason, "session": session}
        said = {name: value for name, value, usual in (("counts", counts, True), ("error", error, False)) if value is not usual}
        deciding = self.deciding(by, session, idempotency_key, asked | said)
        claim = Proposal("release", {}, deciding.call.by, self.door.strict, session, epoch)
        unit = partial(leases.release, deciding, wanted, claim, reason, _cause(counts=counts, error=error))
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
        too. Tasks that wait for it go by the fate they were given. Operations are not there yet, so nothing is listed
        beside the task."""
        typed(("cascade", cascade, bool), ("expect_version", expect_version, int | None), ("epoch", epoch, int | None))
        _given(reason)
        wanted = task_named(id)
        asked = {"verb": "cancel", "id": wanted, "reason": reason, "cascade": cascade, "expect_version": expect_version}
        deciding = self.deciding(by, session, idempotency_key, asked | {"epoch": epoch, "session": session})
        claim = Proposal("cancel", {}, deciding.call.by, self.door.strict, session, epoch)
        unit = partial(leases.cancel, deciding, wanted, claim, reason, expect_version, cascade)
        return Cancelled((yield from self._told(deciding, "cancel", durable(unit))))

    @verb
    def unpark(self, id: Id, *, by: By, reason: str, expect_version: int | None = None, idempotency_key: str | None = None) -> Steps[Task]:
        """Put a parked task back into work, its attempts begun anew; needs role operator."""
        typed(("expect_version", expect_version, int | None))
        _given(reason)
        wanted = task_named(id)
        asked = {"verb": "unpark", "id": wanted, "reason": reason, "expect_version": expect_version}
        deciding = self.deciding(by, None, idempotency_key, asked)
        unit = partial(leases.unpark, deciding, wanted, expect_version, reason)
        return (yield from self._told(deciding, "unpark", durable(unit)))

    def _proposed(self, deciding: Deciding, wanted: str, proposal: Proposal, wait_s: float | None) -> Steps[Done]:
        """Decide; when checks must run first, wait for the outcome of the durable proposal."""
        answer = yield from durable(partial(units.propose, deciding, wanted, proposal))
        if isinstance(answer, Done):
            return answer
        made_before = answer.asked is None
        outcome = self.engine.settling.outcome(answer)
        done = yield from (self._elsewhere(answer, wait_s) if outcome is None else _awaited(outcome, wait_s))
        if done is not None:
            deciding.ended.update(self._over(done.task))
        if done is None:
            detail = "a required check is still running; the proposal goes on, ask for it by its id"
            extra = {"proposal": answer.proposal}
            raise Refused(Refusal("evidence_pending", detail, task=answer.task, extra=extra), replayed=made_before)
        return replace(done, replayed=made_before)

    def _over(self, task: Task) -> list[str]:
        """A task whose last step was decided elsewhere, if it is over."""
        definition = self.engine.registry.known(task.machine, task.machine_version)
        return [task.id] if definition is not None and definition.state[task.state].final else []

    def _elsewhere(self, proposal: Pending, wait_s: float | None) -> Steps[Done | None]:
        """The outcome of a proposal that another process works on; when that process is gone, this one takes over."""

        def look() -> Steps[Done | Future[Done] | None]:
            if done := (yield Read(partial(pending.settled, self.engine.registry, proposal.proposal))):
                return done
            if (yield Read(lambda tx: proposals.is_abandoned(tx, proposal.proposal))):
                found = yield Read(lambda tx: pending.examine(tx, self.engine.registry, proposal.proposal))
                if found is not None and (yield Write(lambda tx: proposals.take(tx, proposal.proposal))):
                    return self.engine.settling.outcome(found)
            return None

        found = yield from until(self.engine, of_task(proposal.task), look, inf if wait_s is None else wait_s)
        return (yield Await(found, wait_s)) if isinstance(found, Future) else found

    def _tell(self, deciding: Deciding) -> Steps[None]:
        """Tell the ends that a committed decision left to be told. Should the store fail meanwhile, a duty goes on: what
        was decided stays decided."""
        try:
            while deciding.ended:
                task = min(deciding.ended)
                if not (yield Write(partial(ends.follow, deciding, task))):
                    deciding.ended.discard(task)
        except StoreError:
            return

    def _told(self, deciding: Deciding, event: str, steps: Steps[Any]) -> Steps[Any]:
        """Run the steps of a decision. A refusal proper goes to the log, beside the decision; one for stale content is
        told with what changed, looked up when the decision is over."""
        try:
            done = yield from steps
            yield from self._tell(deciding)
            return _accepted(done) if isinstance(done, Done) else done
        except StoreError:
            raise
        except Refused as refused:
            if not refused.recorded:
                self.engine.refusals.add(refused.refusal, event, deciding.call)
            if "shown" not in refused.refusal.extra:
                raise
            stale = refused.refusal
        changed = yield Read(partial(past.what_changed, self.engine.registry, stale))
        raise Refused(replace(stale, failed=changed))


def _given(reason: object) -> None:
    typed(("reason", reason, str))
    if not str(reason).strip():
        raise invalid(("reason", "must not be blank"))


def _cause(*, counts: bool, error: bool) -> Cause:
    return "error" if error else "lost" if counts else "deferred"


def _lease(lease_s: float | None) -> Duration | None:
    """A wanted lease in µs, between one second and a day."""
    if lease_s is None:
        return None
    typed(("lease_s", lease_s, float | int))
    if not SHORTEST / SECOND <= lease_s <= LONGEST / SECOND:
        raise invalid(("lease_s", "must be from 1 to 86400 seconds"))
    return seconds(lease_s)


def _awaited(outcome: Any, wait_s: float | None) -> Steps[Done | None]:
    return (yield Await(outcome, wait_s))


def _accepted(done: Done) -> Task:
    if done.refusal is not None:
        raise Refused(done.refusal, replayed=done.replayed)
    return replace(done.task, replayed=True) if done.replayed else done.task
