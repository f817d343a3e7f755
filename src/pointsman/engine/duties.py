"""What a running server does beside answering: number the feed, bring tasks whose time has come into the line, fire what is
due, take over what processes that died left, proposals and ends of tasks that nobody told, keep the store's time, and
send messages.

Each duty is a `Service`, so that it has one home and tests can call its rounds.
"""

from functools import partial

from pointsman.engine import backlogs, claim, ends
from pointsman.engine.relaying import Outlet, Relaying
from pointsman.engine.service import Service
from pointsman.engine.timers import Deadlines, Schedules
from pointsman.engine.view import Engine
from pointsman.store import clock, feed, limits, tasks
from pointsman.store.database import Tx
from pointsman.types import SECOND


class Duties:
    """The duties of one process, running."""

    def __init__(self, engine: Engine, outlet: Outlet | None = None):
        self._relay = None if outlet is None else Relaying(engine, outlet)
        self._services = (
            Service("clock", lambda: keep_time(engine), period_s=clock.TICK / SECOND),
            Service("sequencer", lambda: number(engine), period_s=0.1),
            Service("waking", lambda: wake(engine), period_s=1.0),
            Service("ends", lambda: ends.take_over(engine) > 0, period_s=0.5),
            Service("deadlines", Deadlines(engine).run_once, period_s=1.0),
            Service("schedules", Schedules(engine).run_once, period_s=1.0),
            Service("backlogs", lambda: backlogs.retire(engine), period_s=30.0),
            Service("settling", lambda: engine.settling.take_over() > 0, period_s=0.5),
        )
        for service in self._services:
            service.start()

    def stop(self) -> None:
        for service in self._services:
            service.stop()
        if self._relay is not None:
            self._relay.stop()


def keep_time(engine: Engine) -> bool:
    """A tick. There is never more to do at once."""
    clock.keep(engine.db)
    return False


def number(engine: Engine) -> bool:
    """Number a batch; True when there may be more."""
    return engine.db.read(feed.waits) and engine.db.run(feed.number) == feed.BATCH


def wake(engine: Engine) -> bool:
    """Bring a batch of tasks that time has made claimable into the line, and forget a batch of uses that no limit counts any
    more; True when there may be more."""
    woken = [engine.db.run(partial(claim.wake, machine)) for machine in engine.registry.newest if engine.db.read(partial(_due, machine))]
    forgotten = engine.db.read(limits.ended) and engine.db.run(limits.forget) == limits.BATCH
    return any(woken) or forgotten


def _due(machine: str, tx: Tx) -> bool:
    return tasks.can_wake(tx, machine)
