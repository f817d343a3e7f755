"""The verbs that ask for a change: create, claim, propose, and what an owner or an operator does about a task."""

from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from math import inf
from typing import Any

from pointsman.engine import claim as claims
from pointsman.engine import ends, leases, ordering, past, pending, terms
from pointsman.engine import propose as units
from pointsman.engine.claim import At, Look
from pointsman.engine.decision import Deciding, Done, Pending
from pointsman.engine.line import Wanted
from pointsman.engine.queries import Cancelled
from pointsman.engine.steps import Await, Read, Steps, Write, durable, verb
from pointsman.engine.view import By, Id, View, task_named, typed
from pointsman.engine.waiting import QUEUE_POLL_S, until
from pointsman.errors import Refusal, Refused, StoreError, invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.lease import LONGEST, SHORTEST
from pointsman.kernel.retry import Cause
from pointsman.kernel.task import Dependency, Task
from pointsman.store import proposals
from pointsman.store.database import Tx
from pointsman.store.hints import of_queue, of_task
from pointsman.types import SECOND, Duration, Instant, seconds

Dependencies = Sequence[Mapping[str, Any] | Dependency]
Names = Sequence[str] | Set[str]


class Proposing(View):
    @verb
    def create(
        self,
        machine: str,
        fields: Mapping[str, Any],
        *,
        by: By,
        priority: int = 0,
        tags: Names | None = None,
        needs: Names | None = None,
        run_at: Instant | str | None = None,
        dedupe_key: str | None = None,
        blocked_by: Dependencies = (),
        parent: Id | None = None,
        epoch: int | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Task]:
        """Create a task on the newest version of a machine, from the fields that no event sets.

        A higher `priority` goes ahead: one step is worth a minute of waiting. `tags` are what it is called, `needs` what a
        claimer must be able to do to be given it, `run_at` (µs, or RFC 3339) when it may begin. A `dedupe_key` that the
        machine knows answers the task that is there, if it was asked for in the same words. `blocked_by` are tasks to wait
        for, each `{"task": id, "on_failure": "block" | "cancel" | "continue"}`: nobody claims this one before they are done.
        A `parent`'s owner says its `epoch`."""
        typed(("machine", machine, str), ("fields", fields, dict), ("epoch", epoch, int | None))
        given = {"priority": priority, "tags": tags, "needs": needs, "run_at": run_at, "dedupe_key": dedupe_key, "blocked_by": blocked_by}
        named, found = (None, []) if parent is None else terms.named(parent, "parent")
        wanted, faults = terms.read(given, named)
        if found := [*faults, *found]:
            raise invalid(*found)
        asked = {"verb": "create", "machine": machine, "fields": fields, "priority": priority}
        said = {**asdict(wanted), "priority": None, "tags": list(wanted.tags), "needs": list(wanted.needs), "epoch": epoch}
        said["blocked_by"] = [asdict(item) for item in wanted.blocked_by]
        deciding = self.deciding(by, session, idempotency_key, asked | _given(said))
        owner = Proposal("create", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield from self._told(deciding, "create", durable(partial(units.create, deciding, machine, fields, wanted, owner))))

    @verb
    def claim(
        self,
        machine: str,
        *,
        by: By,
        id: Id | None = None,
        states: Sequence[str] | None = None,
        tags: Names | None = None,
        capabilities: Names | None = None,
        expect_version: int | None = None,
        session: str | None = None,
        lease_s: float | None = None,
        wait_s: float = 0,
        idempotency_key: str | None = None,
    ) -> Steps[Task | None]:
        """Take the task with this id, or the first that waits; None when none does, even after `wait_s` seconds.

        What waits are unowned tasks in the initial state and tasks whose owner's lease ran out, or both in `states`; those
        that have all of `tags`, and need nothing but `capabilities`. The first is the one that may run longest, a step of
        priority worth a minute. One that a guard, a limit or a hold keeps back is passed over.
        `lease_s` is how long to hold it without a call, the state's own time if not said."""
        numbers = (("expect_version", expect_version, int | None), ("wait_s", wait_s, float | int))
        typed(("machine", machine, str), ("states", states, list | tuple | None), *numbers)
        wanted, chosen = waited_for(machine, states, {"tags": tags, "capabilities": capabilities})
        wanted = wanted if id is None else replace(wanted, task=task_named(id))
        named = {"id": wanted.task, "states": list(states or ()), "expect_version": expect_version, "session": session}
        asked = {
            "verb": "claim",
            "machine": machine,
            "lease_s": lease_s,
            **named,
            **_given(chosen),
        }
        deciding = self.deciding(by, session, idempotency_key, asked)
        proposal = Proposal("", {}, deciding.call.by, self.door.strict, session, expect_version=expect_version, lease=held_for(lease_s))

        def look() -> Steps[Task | None]:
            return (yield from self._told(deciding, "claim", _claimed(deciding, wanted, proposal)))

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
        _because(reason)
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
        _because(reason)
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
        """Tell the ends that a committed decision left to be told. Should they be many, or the store fail meanwhile, a duty
        goes on: what was decided stays decided."""
        try:
            yield from ends.telling(deciding)
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


def waited_for(machine: str, states: Sequence[str] | None, named: Mapping[str, Names | None]) -> tuple[Wanted, dict[str, list[str]]]:
    """Which tasks a claim is for, and its names of each kind as they are asked for."""
    chosen, found = ordering.several(named)
    if found:
        raise invalid(*found)
    several = {name: frozenset(names) for name, names in chosen.items()}
    return Wanted(machine, None, None if states is None else tuple(states), **several), {
        name: list(names) for name, names in chosen.items()
    }


def _because(reason: object) -> None:
    typed(("reason", reason, str))
    if not str(reason).strip():
        raise invalid(("reason", "must not be blank"))


def _claimed(deciding: Deciding, wanted: Wanted, proposal: Proposal) -> Steps[Done | None]:
    """One task by its id, or the next in line."""
    if wanted.task is not None:
        return (yield from durable(partial(claims.claim, deciding, wanted, proposal)))
    return (yield from looked_for(wanted, partial(claims.claim_next, deciding, wanted, proposal)))


def looked_for(wanted: Wanted, unit: Callable[[At, Tx, bool], Any]) -> Steps[Any]:
    """Look until a look has an answer."""
    answer: Any = Look.FIRST
    while isinstance(answer, At):
        if answer is Look.WOKEN and (yield Write(partial(claims.wake, wanted.machine))):
            answer = Look.AGAIN
        answer = yield from durable(partial(unit, answer))
    return answer


def _given(members: Mapping[str, Any]) -> dict[str, Any]:
    """Those members of a request that were given: whoever leaves a new one out asks what was asked before there was one."""
    return {name: value for name, value in members.items() if value not in (None, [])}


def _cause(*, counts: bool, error: bool) -> Cause:
    return "error" if error else "lost" if counts else "deferred"


def held_for(lease_s: float | None) -> Duration | None:
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
