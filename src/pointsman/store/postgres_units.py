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
from threading import Lock
from typing import TypeVar

import psycopg

from pointsman.errors import StoreError
from pointsman.store.database import Probe, Row, Tx
from pointsman.store.postgres_errors import AGAIN, fault, lost, unavailable
from pointsman.store.postgres_pool import Pool
from pointsman.store.postgres_server import Server
from pointsman.store.postgres_statements import Spelled
from pointsman.store.postgres_tx import ProbedTransaction, Transaction
from pointsman.store.postgres_values import Bound, bind
from pointsman.store.postgres_wire import Wire
from pointsman.types import Instant

T = TypeVar("T")

RUNS = 8
POINTS = ("transaction.begun", "unit.begun", "unit.done", "commit.before", "commit.after")


class Again(Exception):
    """Nothing was done, and another run may do better. `reason` is what is told when none does."""

    def __init__(self, reason: Exception):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Kind:
    """How a unit begins, how it asks for the time, what it may say, and whether it commits."""

    begin: Bound
    clock: Bound
    statements: Mapping[str, Spelled]
    commits: bool


def writing(statements: Mapping[str, Spelled], asked: Mapping[str, Spelled]) -> Kind:
    begin = _control(b"BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE")
    return Kind(begin, bind(asked["clock_of_writer"], {}), statements, commits=True)


def reading(statements: Mapping[str, Spelled], asked: Mapping[str, Spelled]) -> Kind:
    begin = _control(b"BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    return Kind(begin, bind(asked["clock"], {}), statements, commits=False)


def _control(sql: bytes) -> Bound:
    return bind(Spelled("", ":none", sql, ()), {})


COMMIT = _control(b"COMMIT")


class Units:
    """Runs units on sessions of a pool. `clock` takes the place of the server's."""

    def __init__(self, server: Server, pool: Pool, clock: Callable[[], Instant] | None, probe: Probe | None):
        self._url, self._pool = server.url, pool
        self._mark_log = bind(server.asked["mark_log"], {})
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
        with self._pool.lend() as wire:
            wire.send(kind.begin)
            self._probe("transaction.begun")
            try:
                answer = self._run(wire, kind, unit)
                if kind.commits and not wire.answered:
                    wire.answers()
            except psycopg.Error as error:
                raise self._told(wire, error) from error
            if kind.commits:
                self._commit(wire)
            return answer

    def _run(self, wire: Wire, kind: Kind, unit: Callable[[Tx], T]) -> T:
        tx = self._transaction(wire, kind)
        self._probe("unit.begun")
        try:
            answer = unit(tx)
        finally:
            tx.end()
        self._probe("unit.done")
        return answer

    def _transaction(self, wire: Wire, kind: Kind) -> Transaction:
        if self._watched is None:
            return Transaction(wire, kind.statements, kind.clock, self._time)
        return ProbedTransaction(self._watched, wire, kind.statements, kind.clock, self._time)

    def _time(self, rows: list[Row]) -> Instant:
        """The server's time as it was answered, unless another clock takes its place; a writer's is held until it is committed."""
        return rows[0][0] if self._clock is None else self._clock()

    def _told(self, wire: Wire, error: psycopg.Error) -> Exception:
        """What a unit that failed before COMMIT comes to; it has changed nothing. A session that never answered it was broken
        before, and others that stand idle may be."""
        named = fault(error, self._url) or error
        gone = lost(error) or wire.broken
        if gone:
            self._pool.forget()
        return Again(named) if error.sqlstate in AGAIN or (gone and not wire.answered) else named

    def _commit(self, wire: Wire) -> None:
        """Whatever was not answered yet goes with it, and is answered with it."""
        if wire.failed:
            raise unavailable(self._url, "an error had ended the transaction, and the unit went on")
        self._probe("commit.before")
        doubt, wire.session.warned = self._doubt, False
        if doubt is not None:
            wire.send(self._mark_log)
        wire.send(COMMIT)
        try:
            ended = wire.answers()[-1].command_status
        except psycopg.Error as error:
            raise self._uncommitted(wire, error) from error
        if wire.session.warned:
            raise self._unknown("its COMMIT did not wait for the standby")
        if ended != b"COMMIT":
            raise unavailable(self._url, "PostgreSQL rolled the transaction back")
        self._reassured(doubt)
        self._probe("commit.after")

    def _uncommitted(self, wire: Wire, error: psycopg.Error) -> Exception:
        """COMMIT failed, or a statement before it. A server that said so and goes on has rolled back; of one that is gone,
        nobody knows."""
        if error.sqlstate is not None and not wire.unfinished:
            return self._told(wire, error)
        self._pool.forget()
        named = fault(error, self._url)
        return self._unknown("the connection was lost at COMMIT" if named is None else named.detail.partition(": ")[2])

    def _reassured(self, doubt: object | None) -> None:
        """What was in doubt when this COMMIT began is no more."""
        with self._lock:
            if self._doubt is doubt:
                self._doubt = None

    def _unknown(self, why: str) -> StoreError:
        with self._lock:
            self._doubt = object()
        return unavailable(self._url, why, "unknown")


def unwatched(point: str) -> None:
    """The probe of production."""
