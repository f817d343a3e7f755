"""The refusal log's writer: refusals gather for a moment and are written together, never one commit each.

A caller in a loop makes many. What is not written yet when a process is killed is lost: the log is volatile.
"""

import threading
from collections import deque

from pointsman.engine.door import Call
from pointsman.errors import Refusal
from pointsman.store import refusals
from pointsman.store.database import Database, Tx
from pointsman.store.refusals import Logged

Gathered = tuple[Refusal, str, Call]
GATHER_S = 1.0
MOST = 1_000


class RefusalLog:
    def __init__(self, db: Database):
        self._db = db
        self._gathered: deque[Gathered] = deque(maxlen=MOST)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def add(self, refusal: Refusal, event: str, call: Call) -> None:
        with self._lock:
            self._gathered.append((refusal, event, call))
            if self._timer is None:
                self._timer = threading.Timer(GATHER_S, self._write)
                self._timer.daemon = True
                self._timer.start()

    def latest(self, tx: Tx, limit: int) -> list[Logged]:
        """The last refusals, newest first, those gathered here included."""
        _log(tx, self._taken())
        return refusals.latest(tx, limit)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._write()

    def _write(self) -> None:
        if gathered := self._taken():
            self._db.submit(lambda tx: _log(tx, gathered))

    def _taken(self) -> list[Gathered]:
        with self._lock:
            self._timer = None
            gathered, self._gathered = list(self._gathered), deque(maxlen=MOST)
        return gathered


def _log(tx: Tx, gathered: list[Gathered]) -> None:
    for refusal, event, call in gathered:
        refusals.log(tx, refusal, event, call.by.name, call.door.name)
