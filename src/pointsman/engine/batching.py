"""The verbs for many tasks at once: each call is one unit of work, written by a few statements that take arrays."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from pointsman.engine import batch, finish, terms
from pointsman.engine import claim as claims
from pointsman.engine.claiming import Claiming, held_for, looked_for, waited_for
from pointsman.engine.decision import Deciding, Done
from pointsman.engine.finish import Finished, Part
from pointsman.engine.proposing import Names
from pointsman.engine.steps import Steps, durable, verb
from pointsman.engine.view import By, Id, patience, task_named, typed
from pointsman.engine.waiting import QUEUE_POLL_S, until
from pointsman.errors import Refusal, invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.chain import digest
from pointsman.kernel.graph import MOST_AT_ONCE
from pointsman.kernel.ingest import LISTED, Faults, faults
from pointsman.kernel.task import Rule, Task
from pointsman.store.hints import of_queue
from pointsman.types import Instant

Tasks = list[Task]
Answers = list[Task | Refusal]
MEMBERS = 3


class Batching(Claiming):
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

        Each is an object with `fields`, and `machine`, `priority`, `tags`, `needs`, `run_at`, `dedupe_key`, `blocked_by` as
        `create` takes them; `machine` beside the tasks is for those that name none. A task with a `ref` may be waited for by
        others of the batch as `#ref`. With a `parent` they are its children, and with `join` (all, any, or how many have to
        be done) it then waits for its open children without a lease."""
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
    def create_many(
        self,
        machine: str,
        tasks: Sequence[Mapping[str, Any]],
        *,
        by: By,
        priority: int = 0,
        tags: Names | None = None,
        needs: Names | None = None,
        run_at: Instant | str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Tasks]:
        """Create up to 1,000 tasks of a machine, all or none; they are answered in the order in which they were asked for.

        Each of `tasks` is the fields of one; the rest is for all of them, as `create` takes it."""
        typed(("machine", machine, str))
        given = {"priority": priority, "tags": tags, "needs": needs, "run_at": run_at}
        items = terms.alike(tasks, machine, given)
        asked = {"tasks": digest("batch", [item.fields for item in items]), "machine": machine, **terms.said(items[0].terms)}
        deciding = self.deciding(by, None, idempotency_key, {"verb": "create_many", **asked})
        owner = Proposal("create", {}, deciding.call.by, self.door.strict)
        wanted = batch.Asked(items, [item.ref for item in items], None, None)
        return (yield from self._told(deciding, "create", durable(partial(batch.create, deciding, wanted, owner))))

    @verb
    def claim_many(
        self,
        machine: str,
        n: int,
        *,
        by: By,
        states: Sequence[str] | None = None,
        tags: Names | None = None,
        capabilities: Names | None = None,
        session: str | None = None,
        lease_s: float | None = None,
        wait_s: float = 0,
    ) -> Steps[Tasks]:
        """Take the first tasks that wait, up to `n` of at most 1,000; none when nothing does, even after `wait_s` seconds.

        They are those that so many claims would give, one after the other. Fewer may come though more wait: what somebody
        else is deciding on is passed over, and waited for only when there is nothing else."""
        typed(("machine", machine, str), ("n", n, int), ("states", states, list | tuple | None))
        patience(wait_s)
        if not 1 <= n <= MOST_AT_ONCE:
            raise invalid(("n", f"must be from 1 to {MOST_AT_ONCE}"))
        wanted, _ = waited_for(machine, states, {"tags": tags, "capabilities": capabilities})
        deciding = self.deciding(by, session, None, {})
        proposal = Proposal("", {}, deciding.call.by, self.door.strict, session, lease=held_for(lease_s))

        def look() -> Steps[Tasks | None]:
            unit = partial(claims.claim_many, deciding, wanted, n, proposal)
            taken = yield from self._told(deciding, "claim", looked_for(wanted, unit))
            return taken and [done.task for done in taken]

        return (yield from until(self.engine, of_queue(machine), look, wait_s, line=wanted, poll_s=QUEUE_POLL_S)) or []

    @verb
    def finish_many(
        self, event: str, tasks: Sequence[tuple[Id, int | None, Mapping[str, Any]]], *, by: By, session: str | None = None
    ) -> Steps[Answers]:
        """Ask for one event of up to 1,000 tasks, each `(id, epoch, args)`. For each of them the task after it, or the
        refusal: one that is refused leaves the others as they are.

        No check is run: what needs one is refused `evidence_pending`, and can be proposed by itself."""
        typed(("event", event, str))
        parts = _parts(tasks)
        deciding = self.deciding(by, session, None, {})
        about = Proposal(event, {}, deciding.call.by, self.door.strict, session)
        answers = yield from self._told(deciding, event, durable(partial(finish.many, deciding, about, parts)))
        return [self._answer(deciding, event, answer) for answer in answers]

    def _answer(self, deciding: Deciding, event: str, answer: Finished) -> Task | Refusal:
        """A refusal proper goes to the log, as when it is the only one."""
        if isinstance(answer, Done):
            return answer.refusal or answer.task
        if not answer.recorded:
            self.engine.refusals.add(answer, event, deciding.call)
        return answer


def _parts(tasks: Any) -> list[Part]:
    read = [_part(item, f"tasks[{index}]") for index, item in enumerate(terms.listed(tasks))]
    parts, found = [part for part, _ in read], [fault for _, of_part in read for fault in of_part]
    if found or (found := _twice(parts)):
        raise invalid(*found[:LISTED])
    return parts


def _part(item: Any, path: str) -> tuple[Part, Faults]:
    if not isinstance(item, list | tuple) or len(listed := cast(Sequence[Any], item)) != MEMBERS:
        return Part("", None, {}), [(path, "must be an id, an epoch and arguments")]
    id, epoch, args = listed
    task, found = terms.named(id, f"{path}[0]")
    if epoch is not None:
        found += faults(epoch, f"{path}[1]") if type(epoch) is int else [(f"{path}[1]", "has the wrong type")]
    if not isinstance(args, dict):
        found.append((f"{path}[2]", "has the wrong type"))
    return Part(task, epoch, cast(Mapping[str, Any], args)), found


def _twice(parts: Sequence[Part]) -> Faults:
    """Of one task there is one event at a time."""
    first = {part.task: index for index, part in reversed([*enumerate(parts)])}
    return [(f"tasks[{index}][0]", "is named twice") for index, part in enumerate(parts) if first[part.task] != index]
