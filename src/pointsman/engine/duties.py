"""What a running server does beside answering: number the feed, bring tasks whose time has come into the line, and take over
proposals whose process died.

Each duty is a loop with one home: `run_once` does the work and is what tests call; a thread repeats it.
"""

import logging
import threading
from collections.abc import Callable
from functools import partial

from pointsman.engine import claim
from pointsman.engine.view import Engine
from pointsman.errors import Refused
from pointsman.store import feed, limits, tasks
from pointsman.store.database import Tx

log = logging.getLogger("pointsman")


class Service:
    """Calls `run_once` every `period_s` seconds until it is stopped; at once again while it says there is more."""

    def __init__(self, name: str, run_once: Callable[[], bool], period_s: float):
        self.name, self.run_once, self.period_s = name, run_once, period_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"pointsman-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stop.is_set():
            try:
                more = self.run_once()
            except Refused as error:  # the store is busy or away: a duty outlives that
                log.warning("%s: %s", self.name, error)
                more = False
            except Exception:
                log.exception("%s failed", self.name)
                more = False
            if not more:
                self._stop.wait(self.period_s)


class Duties:
    """The duties of one process, running."""

    def __init__(self, engine: Engine):
        self._services = (
            Service("sequencer", lambda: number(engine), period_s=0.1),
            Service("waking", lambda: wake(engine), period_s=1),
            Service("settling", lambda: engine.settling.take_over() > 0, period_s=0.5),
        )
        for service in self._services:
            service.start()

    def stop(self) -> None:
        for service in self._services:
            service.stop()


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
    return tasks.due(tx, machine)
