"""Wake-ups between the processes that share a PostgreSQL database, by LISTEN and NOTIFY.

They are sent after COMMIT and beside it: NOTIFY takes a lock of the whole database at its own COMMIT, and no decision
waits for that. One thread of each process has a session of its own for both. It gathers what is committed meanwhile into one
message, so that a busy process sends a hundred a second and not thousands.
"""

import logging
import selectors
from collections.abc import Collection
from contextlib import closing, suppress
from socket import socketpair
from threading import Event, Lock, Thread
from typing import Any

import psycopg

from pointsman.errors import StoreError
from pointsman.store.database import Topic
from pointsman.store.hints import Hints
from pointsman.store.postgres_server import Server, Session

log = logging.getLogger("pointsman")

GATHER_S = 0.01
AGAIN_S = 1.0
LONGEST = 7_900
"""Bytes of one message; PostgreSQL takes 7,999. What does not fit is said as: look, whatever you wait for."""


class Relay:
    """Tells other processes what this one committed, and those who wait here what others did."""

    def __init__(self, server: Server):
        self._server = server
        self.hints = Hints(self.start)
        self._lock = Lock()
        self._news: set[Topic] = set()
        self._closed = Event()
        self._thread: Thread | None = None
        self._ear, self._bell = socketpair()
        for end in (self._ear, self._bell):
            end.setblocking(False)

    def tell(self, news: Collection[Topic]) -> None:
        """Once it is committed; on any thread, and without waiting for anything."""
        if news:
            self.hints.tell(news)
            with self._lock:
                quiet = not self._news
                self._news.update(news)
            if quiet:
                self._ring()
                self.start()

    def start(self) -> None:
        """There is something to say, or somebody here waits."""
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._closed.is_set():
                    self._thread = Thread(target=self._serve, name="pointsman-relay", daemon=True)
                    self._thread.start()

    def close(self) -> None:
        """Say what is left to say."""
        with self._lock:
            self._closed.set()
        self._ring()
        if self._thread is not None:
            self._thread.join()
        self._ear.close()
        self._bell.close()

    def _ring(self) -> None:
        with suppress(OSError):  # it rings already, or nobody is there any more
            self._bell.send(b"!")

    def _serve(self) -> None:
        """While the session is lost nobody is told anything, and whoever waits looks by itself."""
        while True:
            try:
                with closing(self._server.connect()) as session:
                    self._listen(session)
                    self._exchange(session)
            except (StoreError, psycopg.Error) as error:
                log.info("wake-ups between processes: %s", error)
            if self._closed.wait(AGAIN_S):
                return

    def _listen(self, session: Session) -> None:
        """What came before is not known here: everybody is to look once."""
        session.deadline_s = self._server.patience.connection_s
        self._server.ask(session, "settle_relay")
        self._server.ask(session, "listen")
        session.pgconn.notify_handler = lambda note: self._hear(session, note)
        self.hints.tell(None)

    def _exchange(self, session: Session) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(session.fileno(), selectors.EVENT_READ)
            selector.register(self._ear, selectors.EVENT_READ)
            while True:
                closed = self._closed.is_set()
                self._say(session)
                if closed:
                    return
                selector.select()
                self._quieten()
                session.pgconn.consume_input()
                while note := session.pgconn.notifies():
                    self._hear(session, note)

    def _quieten(self) -> None:
        with suppress(BlockingIOError):  # it was the session that woke us
            self._ear.recv(4096)

    def _say(self, session: Session) -> None:
        """All that was committed since the last time, in one message; then leave time for more to gather."""
        with self._lock:
            news, self._news = self._news, set()
        if news:
            self._server.ask(session, "notify", message=_spelled(news))
            self._closed.wait(GATHER_S)

    def _hear(self, session: Session, note: Any) -> None:
        """Our own messages come back too: what they say was told here before."""
        if note.be_pid != session.pgconn.backend_pid:
            self.hints.tell(note.extra.decode().split("\n") if note.extra else None)


def _spelled(news: Collection[Topic]) -> str:
    message = "\n".join(news)
    return message if len(message) <= LONGEST else ""
