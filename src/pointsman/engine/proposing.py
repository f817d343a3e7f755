"""The verbs that ask for a task, and for an event of one; and how any decision is told, for the other verbs too."""

from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from math import inf
from typing import Any

from pointsman.engine import ends, past, pending, terms
from pointsman.engine import propose as units
from pointsman.engine.decision import Deciding, Done, Pending
from pointsman.engine.steps import Await, Read, Steps, Write, durable, verb
from pointsman.engine.view import By, Id, View, patience, task_named, typed
from pointsman.engine.waiting import until
from pointsman.errors import Refusal, Refused, StoreError, invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.task import Dependency, Task
from pointsman.store import proposals
from pointsman.store.hints import of_task
from pointsman.types import Instant

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
        if parent is None and epoch is not None:
            found.append(("epoch", "is for the owner of a parent"))
        if found := [*faults, *found]:
            raise invalid(*found)
        asked = {"verb": "create", "machine": machine, "fields": fields, "priority": priority}
        said = {**asdict(wanted), "priority": None, "tags": list(wanted.tags), "needs": list(wanted.needs), "epoch": epoch}
        said["blocked_by"] = [asdict(item) for item in wanted.blocked_by]
        deciding = self.deciding(by, session, idempotency_key, asked | given_of(said))
        owner = Proposal("create", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield from self._told(deciding, "create", durable(partial(units.create, deciding, machine, fields, wanted, owner))))

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
        numbers = (("epoch", epoch, int | None), ("expect_version", expect_version, int | None))
        typed(("event", event, str), ("args", args, dict), ("digest", digest, str | None), *numbers)
        if wait_s is not None:
            patience(wait_s)
        wanted = task_named(id)
        guards = {"epoch": epoch, "expect_version": expect_version, "digest": digest, "session": session}
        deciding = self.deciding(by, session, idempotency_key, {"verb": "propose", "id": wanted, "event": event, "args": args, **guards})
        proposal = Proposal(event, args, deciding.call.by, self.door.strict, session, epoch, expect_version, digest)
        if dry_run:
            return _accepted((yield Read(partial(units.dry_run, deciding, wanted, proposal))))
        return (yield from self._told(deciding, event, self._proposed(deciding, wanted, proposal, wait_s)))

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


def given_of(members: Mapping[str, Any]) -> dict[str, Any]:
    """Those members of a request that were given: whoever leaves a new one out asks what was asked before there was one."""
    return {name: value for name, value in members.items() if value not in (None, [])}


def _awaited(outcome: Any, wait_s: float | None) -> Steps[Done | None]:
    return (yield Await(outcome, wait_s))


def _accepted(done: Done) -> Task:
    if done.refusal is not None:
        raise Refused(done.refusal, replayed=done.replayed)
    return replace(done.task, replayed=True) if done.replayed else done.task
