"""What other processes commit to one SQLite file, seen by looking: SQLite tells nobody.

A look asks for a number that SQLite changes with every commit of another connection, which costs some microseconds. It is
taken only while somebody in this process waits.
"""

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import TypeAlias

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Topic, Tx
from pointsman.store.hints import Hints
from pointsman.store.sqlite_file import Connection

Since: TypeAlias = Callable[[Tx, int | None], tuple[int, set[Topic] | None]]
"""From the last entry that was seen to the last there is, and what changed between them; None for everything."""

LOOK_S = 0.01


class Watch:
    """One thread for all who wait in a process, begun with the first of them."""

    def __init__(self, connect: Callable[[], Connection], since: Callable[[int | None], tuple[int, set[Topic] | None]]):
        self._connect, self._since = connect, since
        self.hints = Hints(self.wake)
        self._connection: Connection | None = None
        self._number: int | None = None
        self._last: int | None = None
        self._lock = Lock()
        self._awake, self._closed = Event(), Event()
        self._thread: Thread | None = None

    def wake(self) -> None:
        """Somebody waits."""
        self._awake.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed.is_set():
                    self._thread = Thread(target=self._serve, name="pointsman-watch", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._closed.set()
        self._awake.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Tell of what was committed since the last look; the first look tells everybody. A file that cannot be read now
        is looked at again: whoever waits looks by itself meanwhile."""
        try:
            self._connection = self._connection or self._connect()
            number = self._connection.pragma("data_version")
            if number != self._number:
                self._last, topics = self._since(self._last)
                self._number = number
                self.hints.tell(topics)
        except (apsw.Error, StoreError):
            self._forget()

    def _serve(self) -> None:
        while not self._closed.is_set():
            self._awake.wait()
            self._awake.clear()
            while self.hints.anybody() and not self._closed.wait(LOOK_S):
                self.look()
        self._forget()

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = self._number = None
