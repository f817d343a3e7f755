"""Timers: deadlines and schedules. Each due moment is fired in a unit of its own, on the store's clock, under a lock, from what is
read there: any number of servers fire it once between them, and one that dies in the middle has not fired it."""

import logging
from collections.abc import Callable
from functools import partial

from pointsman.engine import ends
from pointsman.engine.decision import Deciding
from pointsman.engine.door import Call, Door
from pointsman.engine.limits import counted
from pointsman.engine.record import step, write
from pointsman.engine.view import Engine
from pointsman.errors import Refused, StoreError
from pointsman.kernel import deadline, schedule
from pointsman.kernel import decide as kernel
from pointsman.kernel.bound import Bound
from pointsman.kernel.definition import Definition, Schedule
from pointsman.kernel.hold import Hold
from pointsman.kernel.lease import POINTSMAN
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.terms import Terms
from pointsman.store import holds, schedules, tasks
from pointsman.store.database import Tx
from pointsman.store.requests import Request
from pointsman.store.schedules import Kept
from pointsman.store.tasks import Due, Stored
from pointsman.types import Instant, uuid7

log = logging.getLogger("pointsman")
DOOR = Door("duty")
BATCH = 100


def _deciding(engine: Engine, by: Principal, now: Instant) -> Deciding:
    own = Request(by.name, uuid7(now, engine.chance(74)), "")
    return Deciding(Call(by, DOOR, None, own, given=False), engine.registry, engine.chance)


def _done(what: str, unit: Callable[[], bool]) -> bool:
    """What cannot be done for one task or schedule keeps nobody from the others."""
    try:
        return unit()
    except StoreError:
        raise
    except Refused as refused:
        log.warning("%s: %s", what, refused)
        return False


class Deadlines:
    """Goes through the tasks whose deadline has passed, a batch at a time, from the longest due to the last and then anew: one
    that is stopped, or whose machine is not served here, is passed over until its time, at the price of a look."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._last: Due | None = None
        self._unserved: set[tuple[str, int]] = set()

    def run_once(self) -> bool:
        """Fire a batch; True when there may be more."""
        found, free = self._engine.db.read(self._looked)
        for due in free:
            _done(f"the deadline of {due.id}", partial(self._fire, due.id))
        self._last = found[-1] if len(found) == BATCH else None
        return self._last is not None

    def _fire(self, task: str) -> bool:
        """Whoever waits for a task that ends by it is told at once."""
        fired = self._engine.db.run(partial(_fired, self._engine, task))
        if fired and ends.is_marked(self._engine, task):
            ends.tell(self._engine, task, ends.MOST_TOLD)
        return fired

    def _looked(self, tx: Tx) -> tuple[list[Due], list[Due]]:
        """A batch of what is due, and those of it that nothing stops as far as a look can tell."""
        found, in_use = tasks.due(tx, self._last, BATCH), holds.in_use(tx)
        return found, [due for due in found if self._is_free(tx, in_use, due)]

    def _is_free(self, tx: Tx, in_use: tuple[Hold, ...], due: Due) -> bool:
        version = due.machine, due.machine_version
        try:
            machine = self._engine.registry.bound(tx, *version)
        except Refused as refused:
            if version not in self._unserved:
                self._unserved.add(version)
                log.warning("deadlines of %s version %s are not fired here: %s", *version, refused)
            return False
        self._unserved.discard(version)
        if deadline.stopped(machine.definition, due, in_use, tx.now):
            return False
        return not deadline.limits(machine.definition, due.state) or _due(self._engine, tx, due.id, deciding=False) is not None


def _fired(engine: Engine, task_id: str, tx: Tx) -> bool:
    """Fire a deadline, if it still is due and nothing stops it."""
    due = _due(engine, tx, task_id, deciding=True)
    if due is None:
        return False
    _deciding(engine, POINTSMAN, tx.now).unasked(tx, *due)
    return True


def _due(engine: Engine, tx: Tx, task_id: str, *, deciding: bool) -> tuple[Bound, Stored, Accept] | None:
    """What a deadline comes to; None when it is not due any more, or something stops it: its task is parked, a hold, a limit."""
    found = tasks.find(tx, task_id)
    if found is None or found.task.deadline is None or tx.now < found.task.deadline:
        return None
    task = found.task
    machine = engine.registry.bound(tx, task.machine, task.machine_version)
    if deadline.stopped(machine.definition, task, holds.in_use(tx), tx.now):
        return None
    case = deadline.asked(machine, task, tx.now)
    accept = deadline.noticed(machine, task, tx.now) if case is None else deadline.fired(counted(tx, case, deciding=deciding), task)
    return None if accept is None else (machine, found, accept)


class Schedules:
    """Keeps a row for each schedule of the machines served here, and makes the tasks that are due."""

    def __init__(self, engine: Engine):
        self._engine = engine

    def run_once(self) -> bool:
        for machine in self._engine.registry.newest:
            _done(f"the schedules of {machine}", partial(self._run, machine))
        return False

    def _run(self, machine: str) -> bool:
        engine = self._engine
        for name in engine.db.read(partial(_open, engine, machine)):
            _done(f"the schedule {name} of {machine}", partial(engine.db.run, partial(_moved, engine, machine, name)))
        return False


def _open(engine: Engine, machine: str, tx: Tx) -> list[str]:
    """The schedules of a machine for which there is something to do."""
    definition = engine.registry.taking_new(tx, machine).definition
    kept = {row.name: row for row in schedules.of_machine(tx, machine)}
    names = dict.fromkeys((*definition.schedule, *kept))
    return [name for name in names if not _waits(definition, name, kept.get(name), tx.now)]


def _waits(definition: Definition, name: str, row: Kept | None, now: Instant) -> bool:
    declared = definition.schedule.get(name)
    return declared is not None and row is not None and row.spec == schedule.spec(declared) and now < row.next_at


def _moved(engine: Engine, machine: str, name: str, tx: Tx) -> bool:
    """Bring a schedule's row to where it should be: begun, changed, fired, or ended. A moment that came before the schedule was
    spelled otherwise is fired as it is spelled now."""
    bound = engine.registry.taking_new(tx, machine)
    row = schedules.find(tx, machine, name)
    if _waits(bound.definition, name, row, tx.now):
        return False
    declared = bound.definition.schedule.get(name)
    if declared is None:
        return row is not None and schedules.end(tx, row)
    begun = Kept(machine, name, schedule.spec(declared), schedule.following(declared, tx.now))
    if row is None:
        return schedules.add(tx, begun)
    if row.next_at <= tx.now:
        _make(engine, bound, declared, row.next_at, tx)
    if not schedules.move(tx, row, begun):
        raise StoreError("store_busy", "the schedule moved inside the transaction; nothing was written, try again")
    return True


def _make(engine: Engine, machine: Bound, declared: Schedule, due: Instant, tx: Tx) -> None:
    """The task of a moment, unless there is one, or it comes too late."""
    key = schedule.dedupe_key(declared.name, due)
    if schedule.missed(declared, due, tx.now) or schedules.made(tx, machine.definition.name, key):
        return
    by = Principal(declared.by, kind="service", roles=frozenset(), auth="internal")
    decision = kernel.create(machine, uuid7(tx.now, engine.chance(74)), declared.fields, by, tx.now, Terms(dedupe_key=key))
    if isinstance(decision, Refuse):
        raise Refused(decision.refusal)
    write(tx, step(_deciding(engine, by, tx.now).call, machine, None, decision, engine.chance))
