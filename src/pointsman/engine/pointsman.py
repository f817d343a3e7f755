"""The facade that programs and edges hold: `Pointsman` blocks, `pm.aio` awaits, the verbs are the same."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from pointsman import builtin
from pointsman.engine import propose as units
from pointsman.engine import queries
from pointsman.engine.chance import entropy, wall_clock
from pointsman.engine.checks import Checks
from pointsman.engine.door import Call, Door, principal, request
from pointsman.engine.judges import Judges, by_model
from pointsman.engine.propose import Asked, Deciding, Done
from pointsman.engine.queries import Entry
from pointsman.engine.record import Chance
from pointsman.engine.registry import Registry
from pointsman.engine.steps import Judge, Read, Steps, adrive, drive, durable, verb
from pointsman.engine.verify import Report, verify
from pointsman.errors import Refusal, Refused, StoreError, invalid
from pointsman.kernel.authoring import Machine
from pointsman.kernel.bound import Judgement
from pointsman.kernel.decide import Need, Proposal
from pointsman.kernel.definition import Definition
from pointsman.kernel.ingest import identifier
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.store import history, refusals, tasks
from pointsman.store.connect import connect
from pointsman.store.database import Database, Probe, Tx
from pointsman.store.refusals import Logged
from pointsman.store.tasks import Filter, Order
from pointsman.types import task_id, uuid7

Id = str | UUID
By = str | Principal
Entries = list[Entry]
Refusals = list[Logged]
Tasks = list[Task]
PAGE = 100
LARGEST_PAGE = 1_000
LARGEST_PRIORITY = 1_000
PYTHON = Door("python")


class Engine:
    """What all views of one database share."""

    def __init__(self, db: Database, registry: Registry, chance: Chance, clock: Callable[[], int]):
        self.db = db
        self.registry = registry
        self.chance = chance
        self.clock = clock
        self.checks = Checks()

    def close(self) -> None:
        self.checks.close()
        self.db.close()


class View:
    """An engine seen through a door. Holds every verb."""

    def __init__(self, engine: Engine, door: Door):
        self.engine = engine
        self.door = door

    @property
    def machines(self) -> Mapping[str, Definition]:
        """The newest served version of each machine."""
        return self.engine.registry.newest

    @verb
    def create(
        self, machine: str, fields: Mapping[str, Any], *, by: By, priority: int = 0, idempotency_key: str | None = None
    ) -> Steps[Task]:
        """Create a task on the newest version of a machine, from the fields that no event sets."""
        _typed(("machine", machine, str), ("fields", fields, dict), ("priority", priority, int))
        if not -LARGEST_PRIORITY <= priority <= LARGEST_PRIORITY:
            raise invalid(("priority", f"must be from {-LARGEST_PRIORITY} to {LARGEST_PRIORITY}"))
        asked = {"verb": "create", "machine": machine, "fields": fields, "priority": priority}
        deciding = self._deciding(by, None, idempotency_key, asked)
        return (yield from self._told(deciding, "create", durable(partial(units.create, deciding, machine, fields, priority))))

    @verb
    def claim(
        self,
        machine: str,
        *,
        by: By,
        id: Id | None = None,
        expect_version: int | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Task | None]:
        """Take the task with this id, or the first that waits; None when none does."""
        _typed(("machine", machine, str), ("expect_version", expect_version, int | None))
        wanted = None if id is None else _id(id)
        asked = {"verb": "claim", "machine": machine, "id": wanted, "expect_version": expect_version, "session": session}
        deciding = self._deciding(by, session, idempotency_key, asked)
        proposal = Proposal("", {}, deciding.call.by, self.door.strict, session, expect_version=expect_version)
        return (yield from self._told(deciding, "claim", durable(partial(units.claim, deciding, machine, wanted, proposal))))

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
    ) -> Steps[Task]:
        """Ask for an event. Answers the task after it; raises Refused otherwise. `digest` is the content that a
        decision was shown, `epoch` what the owner's claim returned. A dry run writes nothing and runs no check."""
        args = {} if args is None else args
        numbers = (("epoch", epoch, int | None), ("expect_version", expect_version, int | None))
        _typed(("event", event, str), ("args", args, dict), ("digest", digest, str | None), *numbers)
        wanted = _id(id)
        guards = {"epoch": epoch, "expect_version": expect_version, "digest": digest, "session": session}
        deciding = self._deciding(by, session, idempotency_key, {"verb": "propose", "id": wanted, "event": event, "args": args, **guards})
        proposal = Proposal(event, args, deciding.call.by, self.door.strict, session, epoch, expect_version, digest)
        if dry_run:
            done = yield Read(partial(units.dry_run, deciding, wanted, proposal))
            return _accepted(done)
        return (yield from self._told(deciding, event, self._proposed(deciding, wanted, proposal)))

    def _proposed(self, deciding: Deciding, wanted: str, proposal: Proposal) -> Steps[Done]:
        """Decide; when checks are needed, run them with no transaction open and decide again."""
        answer = yield from durable(partial(units.propose, deciding, wanted, proposal, None, {}))
        if isinstance(answer, Done):
            return answer
        needs = answer.checks.needs
        made = yield Judge([self._start(answer, need) for need in needs])
        judged = {need.digest: judgement for need, judgement in zip(needs, made, strict=True)}
        answer = yield from durable(partial(units.propose, deciding, wanted, proposal, answer.checks, judged))
        assert isinstance(answer, Done), "a proposal asks for checks once"
        return answer

    def _start(self, asked: Asked, need: Need) -> "Future[Judgement]":
        timeout = asked.machine.definition.check[need.check].timeout
        return self.engine.checks.start((asked.task, need.digest), partial(units.judged, self.engine.db, asked, need), timeout)

    @verb
    def get(self, id: Id, *, version: int | None = None, by: By | None = None) -> Steps[Task]:
        """A task as it is, or as it was at a version. With `by`, `allowed` holds the events open to that principal."""
        wanted = _id(id)
        if version is not None:
            return (yield Read(lambda tx: queries.at_version(tx, wanted, version)[1]))
        who = None if by is None else principal(by)
        return (yield Read(partial(self._got, wanted, who)))

    def _got(self, wanted: str, who: Principal | None, tx: Tx) -> Task:
        task = units.find(tx, wanted).task
        if who is None:
            return task
        machine = self.engine.registry.bound(tx, task.machine, task.machine_version)
        return replace(task, allowed=allowed(machine.definition, task, who))

    @verb
    def list(
        self,
        *,
        machine: str | None = None,
        state: str | Sequence[str] | None = None,
        owner: str | None = None,
        open: bool | None = None,
        inbox: str | None = None,
        order: Order = "created_at",
        limit: int | None = None,
        after: Task | None = None,
    ) -> Steps[Tasks]:
        """A page of tasks, at most 1,000, that follow `after` in this order. `inbox` is a name: its own open tasks
        and the unowned ones in the initial state. `open` leaves out final states."""
        count = PAGE if limit is None else min(limit, LARGEST_PAGE)
        if count < 1:
            raise invalid(("limit", "at least 1"))
        if order not in ("created_at", "updated_at", "priority"):
            raise invalid(("order", "created_at, updated_at or priority"))
        if machine is not None and machine not in self.machines:
            raise Refused(Refusal("unknown_machine", "no such machine is served here"))
        initial = self.machines[machine].initial if machine is not None else None
        states = [state] if isinstance(state, str) else state
        wanted = Filter(machine, states, owner, bool(open) or inbox is not None, inbox, initial)
        return (yield Read(lambda tx: tasks.page(tx, wanted, order, count, after)))

    @verb
    def history(self, id: Id | None = None, n: int | None = None) -> Steps[Entries]:
        """A task's history, oldest first, its last `n` entries if given; without id the whole board, newest first."""
        limit = PAGE if n is None and id is None else n
        if limit is not None and limit < 1:
            raise invalid(("n", "at least 1"))
        if id is None:
            return (yield Read(lambda tx: [queries.entry(item) for item in history.latest(tx, None, min(limit or PAGE, LARGEST_PAGE))]))
        wanted = _id(id)
        return (yield Read(partial(_history_of, wanted, limit)))

    @verb
    def refusals(self, n: int = PAGE) -> Steps[Refusals]:
        """The last refusals, newest first."""
        return (yield Read(lambda tx: refusals.latest(tx, n)))

    def drive(self, steps: Steps[Any]) -> Any:
        raise NotImplementedError

    def _deciding(self, by: By, session: str | None, key: str | None, body: Mapping[str, Any]) -> Deciding:
        who = principal(by)
        if session is not None and (found := identifier(session, "session")):
            raise invalid(*found)
        engine = self.engine
        fresh = uuid7(engine.clock(), engine.chance(74))
        call = Call(who, self.door, session, request(who, key, fresh, body), given=key is not None)
        return Deciding(call, engine.registry, engine.chance)

    def _told(self, deciding: Deciding, event: str, steps: Steps[Any]) -> Steps[Any]:
        """Run the steps of a decision; a refusal proper goes to the log, beside the decision."""
        try:
            done = yield from steps
        except Refused as refused:
            if not isinstance(refused, StoreError):
                self._log(refused.refusal, event, deciding.call)
            raise
        return None if done is None else _accepted(done)

    def _log(self, refusal: Refusal, event: str, call: Call) -> None:
        self.engine.db.submit(lambda tx: refusals.log(tx, refusal, event, call.by.name, call.door.name))


class Pointsman(View):
    """Pointsman embedded in a program: thread-safe, blocking; a context manager that closes its database.

    Opening makes the database when it is not there (`create`) and publishes the machines it serves (`publish`)."""

    def __init__(
        self,
        url: str = "sqlite:///pointsman.db",
        machines: Sequence[type[Machine]] | None = None,
        *,
        create: bool = True,
        publish: bool = True,
        clock: Callable[[], int] = wall_clock,
        chance: Chance = entropy,
        probe: Probe | None = None,
        judges: Judges = by_model,
    ):
        registry = Registry([builtin.Tasks] if machines is None else machines, judges)
        db = connect(url, clock=clock, create=create, probe=probe)
        try:
            if publish:
                registry.publish(db)
        except BaseException:
            db.close()
            raise
        super().__init__(Engine(db, registry, chance, clock), PYTHON)

    @property
    def aio(self) -> "Aio":
        """The same verbs, awaitable."""
        return Aio(self.engine, self.door)

    def through(self, door: Door) -> "Pointsman":
        """The same engine, recorded as called through another door."""
        view = object.__new__(Pointsman)
        View.__init__(view, self.engine, door)
        return view

    def drive(self, steps: Steps[Any]) -> Any:
        return drive(steps, self.engine.db)

    def verify(self) -> Report:
        """Recompute every chain and fold, and compare the live rows."""
        return verify(self.engine.db)

    def doctor(self) -> list[str]:
        """Warnings in words: functions that changed under a version number, or that open tasks need and nobody has."""
        return self.engine.db.read(self.engine.registry.warnings)

    def check(self) -> list[str]:
        """Faults of the store itself; none is an empty list."""
        return self.engine.db.check()

    def close(self) -> None:
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class Aio(View):
    """The verbs, awaitable, on the caller's event loop; no thread is spent on a call."""

    async def _drive(self, steps: Steps[Any]) -> Any:
        return await adrive(steps, self.engine.db)

    def drive(self, steps: Steps[Any]) -> Any:
        return self._drive(steps)


def _accepted(done: Done) -> Task:
    if done.refusal is not None:
        raise Refused(done.refusal)
    return done.task


def _history_of(wanted: str, limit: int | None, tx: Tx) -> list[Entry]:
    units.find(tx, wanted)
    found = history.of_task(tx, wanted) if limit is None else history.latest(tx, wanted, limit)[::-1]
    return [queries.entry(item) for item in found]


def _id(id: Id) -> str:
    try:
        return task_id(id)
    except ValueError as error:
        raise invalid(("id", str(error))) from None


def _typed(*arguments: tuple[str, Any, Any]) -> None:
    """Arguments as (path, value, type), every fault at once. In Python True is an int; here it is not."""
    wrong = [path for path, value, kind in arguments if not isinstance(value, kind) or isinstance(value, bool)]
    if wrong:
        raise invalid(*((path, "has the wrong type") for path in wrong))
