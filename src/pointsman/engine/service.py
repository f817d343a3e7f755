"""The only loop of a long-lived process: a thread that calls `run_once` until it is told to stop.

`run_once` does the work and is what tests call.
"""

import logging
import threading
from collections.abc import Callable

from pointsman.errors import Refused

log = logging.getLogger("pointsman")


class Service:
    """Calls `run_once` every `period_s` seconds until it is stopped; at once again while it says there is more."""

    def __init__(self, name: str, run_once: Callable[[], bool], period_s: float):
        self.name, self.run_once, self.period_s = name, run_once, period_s
        self._stop, self._nudged = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._loop, name=f"pointsman-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def nudge(self) -> None:
        """Begin the next round at once."""
        self._nudged.set()

    def stop(self, wait_s: float | None = None) -> bool:
        """Begin no further round, and wait for the one that runs; whether it ended in time."""
        self._stop.set()
        self._nudged.set()
        if self._thread.ident is not None:  # else it was never started
            self._thread.join(wait_s)
        return not self._thread.is_alive()

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
                self._nudged.wait(self.period_s)
                self._nudged.clear()
