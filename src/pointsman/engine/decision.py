"""What all deciding units share: who calls, what was answered before, what checks have said, and the end of a decision.

A refusal is raised, which rolls the unit back, so it leaves nothing. An accepted step whose `otherwise` branch was
taken commits, and is told as a refusal afterwards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pointsman.engine import limits
from pointsman.engine.door import Call
from pointsman.engine.past import at_version
from pointsman.engine.record import Chance, Step, gather, step, write, write_all
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused
from pointsman.kernel import decide as kernel
from pointsman.kernel import parking
from pointsman.kernel.bound import Bound, Judgement
from pointsman.kernel.case import Case
from pointsman.kernel.decide import Accept, Decision, Need, NeedChecks
from pointsman.kernel.hold import Hold
from pointsman.kernel.lease import POINTSMAN, lapsed
from pointsman.kernel.retry import exhausted
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Lease, Task
from pointsman.store import holds, judgements, proposals, requests, tasks
from pointsman.store.database import Database, Tx
from pointsman.store.requests import Request
from pointsman.store.tasks import Stored
from pointsman.types import Instant, uuid7

CHANCE_BITS = 53
"""As many as a float between 0 and 1 holds."""


@dataclass(frozen=True, slots=True)
class Done:
    """A committed step (or, at a dry run, one that would be); `refusal` when it was the `otherwise` branch, `replayed`
    when it is an earlier answer to the same request."""

    task: Task
    refusal: Refusal | None = None
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """Checks that must run before a proposal can be decided, and the machine that will judge them."""

    machine: Bound
    checks: NeedChecks


@dataclass(frozen=True, slots=True)
class Pending:
    """A durable proposal. `asked` is None when it was made before, by this or another process."""

    proposal: str
    task: str
    asked: Asked | None = None


@dataclass(slots=True)
class Gathered:
    """The steps of a batch that are still to be written. `unheld` once it was seen that no hold is in use: whoever would
    place one waits for whoever is deciding."""

    steps: list[Step] = field(default_factory=list[Step])
    unheld: bool = False


@dataclass(frozen=True, slots=True)
class Deciding:
    """What every unit needs besides its transaction: who calls, the machines, and chance. `ended` are the tasks whose end
    it left to be told; a unit that runs again names the same ones, or one that nobody finds. `gathered` is there while
    steps are written together, each of another task."""

    call: Call
    registry: Registry
    chance: Chance
    ended: set[str] = field(default_factory=set[str])
    gathered: Gathered | None = None

    def repeated(self, tx: Tx, look: bool) -> Done | None:
        """The first answer to this very request, before anything else is judged: what was accepted stays accepted, also
        when the machine has moved on."""
        found = requests.find(tx, self.call.request) if look or self.call.given else None
        return self.replayed(tx, look) if found is not None and found.digest == self.call.request.digest else None

    def replayed(self, tx: Tx, look: bool) -> Done | None:
        """The first answer to this request, if there was one."""
        if not (look or self.call.given):
            return None
        found = requests.find(tx, self.call.request)
        if found is None:
            if kept := proposals.requested(tx, self.call.by.name, self.call.request.key):
                self.same_request(kept.request_digest, kept.task)
            return None
        self.same_request(found.digest, found.task)
        if found.known:
            return Done(known(tx, *found.known[0]), replayed=not look)
        return replace(answered(tx, self.registry, self.call.by, found.task, found.version), replayed=not look)

    def bind(self, tx: Tx, there: Sequence[Task]) -> None:
        """No step keeps the caller's key where all of the answer was there already."""
        if self.call.given:
            requests.bind(tx, self.call.request, [(task.id, task.version) for task in there], tx.now)

    def jitter(self) -> float:
        """A number from 0 to 1."""
        return self.chance(CHANCE_BITS) / 2**CHANCE_BITS

    def same_request(self, digest: str, task: str) -> None:
        if digest != self.call.request.digest:
            raise Refused(Refusal("idempotency_conflict", "this idempotency key was used with another request", task=task))

    def lapse(self, tx: Tx, machine: Bound, found: Stored, now: Instant) -> Stored:
        """Record that an owner's time ran out, and park the task when that was once too often; the task after it."""
        self.unasked(tx, machine, found, lapsed(machine, found.task, now))
        return self.spare(tx, machine, find(tx, found.task.id))

    def spare(self, tx: Tx, machine: Bound, found: Stored) -> Stored:
        """Park a task that was tried too often; the task after it."""
        if not exhausted(machine.definition, found.task):
            return found
        self.unasked(tx, machine, found, parking.parked(found.task, found.task.updated_at, parking.exhausted(found.task)))
        return find(tx, found.task.id)

    def unasked(self, tx: Tx, machine: Bound, found: Stored, accept: Accept) -> None:
        """Record a step that nobody asked for; it has a request of its own."""
        own = Request(POINTSMAN.name, uuid7(accept.after.updated_at, self.chance(74)), "")
        call = replace(self.call, by=POINTSMAN, session=None, request=own)
        if write(tx, step(call, machine, found, accept, self.chance)):
            self.ended.add(found.task.id)

    def record(self, tx: Tx, machine: Bound, before: Stored | None, accept: Accept, blockers: int = 0) -> Done:
        """Write a step: now, or with the others of a batch."""
        made = step(self.call, machine, before, accept, self.chance, blockers)
        if self.gathered is not None:
            gather(tx, self.gathered.steps, made)
        elif write(tx, made):
            self.ended.add(accept.after.id)
        return Done(accept.after, accept.refusal)

    def gathering(self) -> "Deciding":
        """The same for one run of a unit that writes its steps together, by `write_gathered`."""
        return replace(self, gathered=Gathered())

    def write_gathered(self, tx: Tx) -> None:
        assert self.gathered is not None, "whoever writes together has gathered"
        if self.gathered.steps:
            self.ended.update(write_all(tx, self.gathered.steps))

    def part(self, number: int) -> "Deciding":
        """A part of what was asked. In a batch each is decided under a request of its own: the whole one's, numbered."""
        if self.gathered is None:
            return self
        request = replace(self.call.request, key=f"{self.call.request.key}.{number}")
        return replace(self, call=replace(self.call, request=request))

    def holds(self, tx: Tx) -> tuple[Hold, ...]:
        """The holds that may bear on a decision. Of a batch, only the first asks when there are none."""
        if self.gathered is not None and self.gathered.unheld:
            return ()
        found = holds.in_use(tx)
        if self.gathered is not None:
            self.gathered.unheld = not found
        return found


def find(tx: Tx, task_id: str) -> Stored:
    found = tasks.find(tx, task_id)
    if found is None:
        raise Refused(Refusal("unknown_task", "no task has this id", task=task_id))
    return found


def _lease(tx: Tx, past: Task) -> Lease | None:
    """The lease as it is, for an answer of the past whose owner still holds the task: history does not keep leases."""
    found = tasks.find(tx, past.id)
    same = found is not None and (found.task.owner, found.task.epoch, found.task.state) == (past.owner, past.epoch, past.state)
    return found.task.lease if found is not None and same else None


def known(tx: Tx, task_id: str, version: int) -> Task:
    """A task that was there already, as it was answered then and is at every replay."""
    past = at_version(tx, task_id, version)[1]
    return past.but(lease=_lease(tx, past), deduped=True)


def answered(tx: Tx, registry: Registry, by: Principal, task_id: str, version: int) -> Done:
    """What the step at a version answered, then and at every replay."""
    entry, past = at_version(tx, task_id, version)
    task = past.but(lease=_lease(tx, past))
    if entry.link.kind != "otherwise":
        return Done(task)
    machine = registry.bound(tx, task.machine, task.machine_version)
    return Done(task, kernel.recorded_refusal(machine, machine.definition.event[entry.link.event], task, by))


def weighed(tx: Tx, case: Case, judged: kernel.Judged, *, deciding: bool = True) -> Decision:
    """A decision that knows what others use of its limits, and what checks say now and have said before of exactly this
    content. Whoever is not `deciding` only looks."""
    case = limits.counted(tx, case, deciding=deciding)
    decision = kernel.judge(case, judged)
    if not isinstance(decision, NeedChecks):
        return decision
    found = {need.digest: judgements.find(tx, case.task.id, need.check, need.digest) for need in decision.needs}
    kept = {digest: judgement for digest, judgement in found.items() if judgement is not None}
    return kernel.judge(case, {**judged, **kept}) if kept else decision


def judged(db: Database, task: str, machine: Bound, need: Need, expired: Callable[[], bool]) -> Judgement:
    """Judge once: look for a kept judgement, else run the check and keep what it says. An error is never kept, nor
    what came too late."""
    check = machine.definition.check[need.check]
    if kept := db.read(lambda tx: judgements.find(tx, task, need.check, need.digest)):
        return kept
    said = machine.judge(check, need.inputs)
    if said.status == "error" or expired():
        return said
    return db.run(lambda tx: judgements.keep(tx, task, need.check, need.digest, said))
