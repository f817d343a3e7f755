"""Sessions that are kept for the next unit of work. So many are in use at once; who comes later waits, for a while.

A session is made on the thread that needs it, so that what is wrong with the server is told to that caller, at once.
"""

from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore

from pointsman.store.postgres_errors import busy, unavailable
from pointsman.store.postgres_server import Server
from pointsman.store.postgres_wire import Wire


class Pool:
    def __init__(self, server: Server, size: int):
        self._server = server
        self._room = BoundedSemaphore(size)
        self._idle: deque[Wire] = deque()
        self._open = True

    @contextmanager
    def lend(self) -> Generator[Wire]:
        """A session in no transaction; it comes back in none, or is closed."""
        if not self._room.acquire(timeout=self._server.patience.connection_s):
            raise busy(self._server.url, "all connections of this process are in use")
        try:
            wire = self._take()
            try:
                yield wire
            finally:
                self._give(wire)
        finally:
            self._room.release()

    def forget(self) -> None:
        """Close what stands idle: one session was found broken, and others may be."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Sessions in use close as they come back."""
        self._open = False
        self.forget()

    def _take(self) -> Wire:
        if not self._open:
            raise unavailable(self._server.url, "it is closed")
        with suppress(IndexError):
            return self._idle.pop()
        return Wire(self._server.connect())

    def _give(self, wire: Wire) -> None:
        if wire.clean() and self._open:
            self._idle.append(wire)
        else:
            wire.close()
