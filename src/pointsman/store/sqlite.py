"""A database in one SQLite file: opened or refused, written by one writer, read beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

import apsw

from pointsman.errors import StoreError
from pointsman.store import migrate, sqlite_backup, sqlite_commit
from pointsman.store.clock import Mark, RisingClock
from pointsman.store.database import Probe, Tx
from pointsman.store.hints import Hints, Noted
from pointsman.store.sqlite_commit import Committer, seat, unwatched
from pointsman.store.sqlite_file import Connection, File, busy, claim, fault, locate, unavailable
from pointsman.store.sqlite_readers import Readers
from pointsman.store.sqlite_tx import ProbedTransaction, Transaction
from pointsman.store.sqlite_watch import Since, Watch
from pointsman.store.sqlite_writer import Writer
from pointsman.store.statements import Statement
from pointsman.types import Instant

T = TypeVar("T")

READING_THREADS = 4
PATIENCE_S = 5.0

CRASH_POINTS: tuple[str, ...] = (*migrate.POINTS, *sqlite_commit.POINTS)
"""Every point a probe is called at, apart from those before and after each statement."""


def crash_points(statements: Iterable[str]) -> tuple[str, ...]:
    """Every point a probe is called at in a database that has these statements."""
    return (*CRASH_POINTS, *(f"{side}:{name}" for name in statements for side in ("before", "after")))


def open_sqlite(
    url: str | Path,
    *,
    statements: Mapping[str, Statement],
    schema: Sequence[migrate.Migration],
    clock: RisingClock,
    create: bool,
    probe: Probe | None = None,
    since: Since,
    mark: Callable[[Tx], Mark | None],
    patience_s: float = PATIENCE_S,
) -> "Sqlite":
    """The database at `url`, brought to the newest `schema`; a new one if there is none and `create` says so.

    `mark` finds the last time that the file is known to have seen. Anything that is not a database of ours is a StoreError that
    names its absolute path, and stays as it was.
    """
    file = File(locate(url), patience_s)
    claim(file, create)
    _prepare(file, schema, probe or unwatched)
    return Sqlite(file, len(schema), clock, _starter(statements, file.path, partial(_now, clock, mark), probe), probe, since)


class Sqlite:
    """The `Database` of one file. `close()` finishes what is queued; what comes later is a StoreError."""

    def __init__(
        self, file: File, schema: int, clock: RisingClock, start: Callable[[Connection], Transaction], probe: Probe | None, since: Since
    ):
        self._file = file
        self._clock = clock
        self._committer = Committer(file, lambda: file.connect(schema), start, probe or unwatched)
        self._writer = Writer(self._committer.transact, self._closed)
        self._readers = Readers(file, lambda: file.connect(schema, query_only=1), start)
        self._threads = ThreadPoolExecutor(READING_THREADS, "pointsman-reader")
        self._watch = Watch(lambda: file.connect(schema, query_only=1), lambda last: self._readers.read(lambda tx: since(tx, last)))

    @property
    def url(self) -> str:
        return f"sqlite:///{self._file.path}"

    @property
    def hints(self) -> Hints:
        return self._watch.hints

    @property
    def clock(self) -> RisingClock:
        return self._clock

    def submit(self, unit: Callable[[Tx], T]) -> "Future[T]":
        noted = Noted(unit)
        future = self._writer.submit(noted)
        future.add_done_callback(lambda _: self.hints.tell(noted.news))
        return future

    def run(self, unit: Callable[[Tx], T]) -> T:
        noted = Noted(unit)
        answer = self._writer.run(noted)
        self.hints.tell(noted.news)
        return answer

    def submit_read(self, unit: Callable[[Tx], T]) -> "Future[T]":
        try:
            return self._threads.submit(self._readers.read, unit)
        except RuntimeError:
            refused: Future[T] = Future()
            refused.set_exception(self._closed())
            return refused

    def read(self, unit: Callable[[Tx], T]) -> T:
        return self._readers.read(unit)

    def aside(self) -> "Sqlite":
        """All units of a process share one writer, and none of them keeps it waiting."""
        return self

    def check(self) -> list[str]:
        """What SQLite finds wrong with the file, in its words; nothing when it is sound. Reads all of it."""
        connection = self._file.open()
        try:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check").fetchall()]
            orphans = connection.execute("PRAGMA foreign_key_check").fetchall()
        except apsw.Error as error:
            return [str(fault(error, self._file.path) or error)]
        finally:
            connection.close()
        return [text for text in found if text != "ok"] + [f"{row[0]}: row {row[1]} names no row of {row[2]}" for row in orphans]

    def backup(self, target: str, *, replace: bool) -> None:
        sqlite_backup.copy(self._file, target, replace=replace)

    def close(self) -> None:
        self._watch.close()
        self._writer.close()
        self._threads.shutdown()
        self._readers.close()
        self._committer.close()
        self.hints.tell(None)

    def _closed(self) -> StoreError:
        return unavailable(self._file.path, "it is closed")


def _prepare(file: File, schema: Sequence[migrate.Migration], probe: Probe) -> None:
    """Create or migrate in turn: several processes may start at once."""
    turn = seat(file)
    try:
        if not turn.take(file.patience_s):
            raise busy(file.path)
        migrate.migrate(file, schema, probe)
    finally:
        turn.close()


def _starter(
    statements: Mapping[str, Statement], path: str, now: Callable[[Tx], Instant], probe: Probe | None
) -> Callable[[Connection], Transaction]:
    """Begins a unit on a connection whose transaction has begun, and tells it the time."""

    def start(connection: Connection) -> Transaction:
        tx = Transaction(connection, statements, path) if probe is None else ProbedTransaction(probe, connection, statements, path)
        tx.now = now(tx)
        return tx

    return start


def _now(clock: RisingClock, mark: Callable[[Tx], Mark | None], tx: Tx) -> Instant:
    return clock(partial(mark, tx))
