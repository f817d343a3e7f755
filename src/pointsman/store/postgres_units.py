"""Units of work on PostgreSQL, each in a transaction of its own.

The law of a unit:
- Nothing is answered before COMMIT.
- A unit that met another one (a deadlock, a key inserted meanwhile) runs again from the start, so many times.
- So does one whose session turned out to be broken before anything was asked: the server was restarted since.
- A session lost at COMMIT, or a COMMIT that did not wait for its standby, is unknown. What is committed next by this
  process waits for the standby again, and with it for everything before.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import psycopg
from psycopg import Cursor
from psycopg.pq import TransactionStatus

from pointsman.errors import StoreError
from pointsman.store.database import Probe, Row, Tx
from pointsman.store.postgres_errors import AGAIN, fault, lost, unavailable
from pointsman.store.postgres_pool import Pool
from pointsman.store.postgres_server import Server, Session
from pointsman.store.postgres_statements import Spelled
from pointsman.store.postgres_tx import ProbedTransaction, Transaction
from pointsman.types import Instant

T = TypeVar("T")

RUNS = 8
POINTS = ("transaction.begun", "unit.begun", "unit.done", "commit.before", "commit.after")
_UNFINISHED = (TransactionStatus.INTRANS, TransactionStatus.ACTIVE)


class Again(Exception):
    """Nothing was done, and another run may do better. `reason` is what is told when none does."""

    def __init__(self, reason: Exception):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Kind:
    """How a unit begins, how it asks for the time, what it may say, and whether it commits."""

    begin: bytes
    clock: str
    statements: Mapping[str, Spelled]
    commits: bool


def writing(statements: Mapping[str, Spelled]) -> Kind:
    return Kind(b"BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", "clock_of_writer", statements, commits=True)


def reading(statements: Mapping[str, Spelled]) -> Kind:
    return Kind(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY", "clock", statements, commits=False)


class Units:
    """Runs units on sessions of a pool. `clock` takes the place of the server's."""

    def __init__(self, server: Server, pool: Pool, clock: Callable[[], Instant] | None, probe: Probe | None):
        self._server, self._pool = server, pool
        self._clock, self._watched = clock, probe
        self._probe: Probe = probe or unwatched
        self._doubt: object | None = None
        self._lock = Lock()

    def run(self, kind: Kind, unit: Callable[[Tx], T]) -> T:
        """What the unit answers, once it is committed."""
        for _ in range(RUNS - 1):
            try:
                return self._attempt(kind, unit)
            except Again:
                continue
        try:
            return self._attempt(kind, unit)
        except Again as again:
            raise again.reason from again.reason.__cause__

    def _attempt(self, kind: Kind, unit: Callable[[Tx], T]) -> T:
        with self._pool.lend() as session:
            cursor = session.cursor()
            self._begin(session, cursor, kind)
            try:
                answer = self._run(cursor, kind, unit)
            except psycopg.Error as error:
                raise self._told(error) from error
            if kind.commits:
                self._commit(session, cursor)
            return answer

    def _begin(self, session: Session, cursor: Cursor[Row], kind: Kind) -> None:
        """A server that is there begins at once. Of one that does not, every session that stands idle is suspect."""
        session.deadline_s = self._server.patience.connection_s
        try:
            cursor.execute(kind.begin)
        except psycopg.Error as error:
            self._pool.forget()
            raise Again(fault(error, self._server.url) or error) from error
        session.deadline_s = self._server.patience.answer_s
        self._probe("transaction.begun")

    def _run(self, cursor: Cursor[Row], kind: Kind, unit: Callable[[Tx], T]) -> T:
        tx = self._transaction(cursor, kind.statements, partial(self._time, cursor.connection, kind.clock))
        self._probe("unit.begun")
        try:
            answer = unit(tx)
        finally:
            tx.end()
        self._probe("unit.done")
        return answer

    def _transaction(self, cursor: Cursor[Row], statements: Mapping[str, Spelled], clock: Callable[[], Instant]) -> Transaction:
        if self._watched is None:
            return Transaction(cursor, statements, clock)
        return ProbedTransaction(self._watched, cursor, statements, clock)

    def _time(self, session: Any, clock: str) -> Instant:
        """The server's time, unless another clock takes its place; a writer's is held until it is committed."""
        now = self._server.ask(session, clock)[0][0]
        return now if self._clock is None else self._clock()

    def _told(self, error: psycopg.Error) -> Exception:
        """What a unit that failed before COMMIT comes to; it has changed nothing."""
        named = fault(error, self._server.url) or error
        if lost(error):
            self._pool.forget()
        return Again(named) if error.sqlstate in AGAIN else named

    def _commit(self, session: Session, cursor: Cursor[Row]) -> None:
        if session.info.transaction_status != TransactionStatus.INTRANS:
            raise unavailable(self._server.url, "an error had ended the transaction, and the unit went on")
        self._probe("commit.before")
        doubt, session.warned = self._doubt, False
        try:
            if doubt is not None:
                self._server.ask(session, "mark_log")
            cursor.execute("COMMIT")
        except psycopg.Error as error:
            raise self._uncommitted(session, error) from error
        if session.warned:
            raise self._unknown("its COMMIT did not wait for the standby")
        if cursor.statusmessage != "COMMIT":
            raise unavailable(self._server.url, "PostgreSQL rolled the transaction back")
        self._reassured(doubt)
        self._probe("commit.after")

    def _uncommitted(self, session: Session, error: psycopg.Error) -> Exception:
        """COMMIT failed. A server that said so and goes on has rolled back; of one that is gone, nobody knows."""
        if error.sqlstate is not None and not session.closed and session.info.transaction_status not in _UNFINISHED:
            return self._told(error)
        self._pool.forget()
        named = fault(error, self._server.url)
        return self._unknown("the connection was lost at COMMIT" if named is None else named.detail.partition(": ")[2])

    def _reassured(self, doubt: object | None) -> None:
        """What was in doubt when this COMMIT began is no more."""
        with self._lock:
            if self._doubt is doubt:
                self._doubt = None

    def _unknown(self, why: str) -> StoreError:
        with self._lock:
            self._doubt = object()
        return unavailable(self._server.url, why, "unknown")


def unwatched(point: str) -> None:
    """The probe of production."""
