"""A PostgreSQL database: opened or refused, and shared by any number of processes and hosts."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Lock, local
from typing import TypeVar

import psycopg

from pointsman.errors import StoreError, invalid
from pointsman.store import migrate, postgres_schema, postgres_units
from pointsman.store.database import Probe, Tx
from pointsman.store.hints import Hints, Noted
from pointsman.store.postgres_errors import unavailable
from pointsman.store.postgres_pool import Pool
from pointsman.store.postgres_relay import Relay
from pointsman.store.postgres_server import POOL_SIZE, Patience, Server, locate
from pointsman.store.postgres_statements import for_reading, for_writing
from pointsman.store.postgres_units import Kind, Units, reading, unwatched, writing
from pointsman.store.statements import Statement
from pointsman.types import Instant

T = TypeVar("T")

CHECK_S = 3600.0
PATIENCE = Patience()
CRASH_POINTS: tuple[str, ...] = (*migrate.POINTS, *postgres_units.POINTS)
"""Every point a probe is called at, apart from those before and after each statement."""


def crash_points(statements: Iterable[str]) -> tuple[str, ...]:
    """Every point a probe is called at in a database that has these statements."""
    return (*CRASH_POINTS, *(f"{side}:{name}" for name in statements for side in ("before", "after")))


def open_postgres(
    url: str,
    *,
    statements: Mapping[str, Statement],
    asked: Mapping[str, Statement],
    schema: Sequence[migrate.Migration],
    clock: Callable[[], Instant] | None,
    create: bool,
    probe: Probe | None = None,
    patience: Patience = PATIENCE,
    size: int = POOL_SIZE,
) -> "Postgres":
    """The database at `url`, brought to the newest `schema`; `create` lets it be made where nothing of ours is.

    A database that is not ours, and a server that does not keep what it acknowledges, is a StoreError."""
    server = locate(url, patience, for_writing(asked, asked))
    postgres_schema.migrate(server, schema, create, probe or unwatched)
    return Postgres(server, statements, asked, size, clock, probe)


class Postgres:
    """The `Database` of one PostgreSQL database. `close()` finishes what is queued; what comes later is a StoreError."""

    def __init__(
        self,
        server: Server,
        statements: Mapping[str, Statement],
        asked: Mapping[str, Statement],
        size: int,
        clock: Callable[[], Instant] | None,
        probe: Probe | None,
    ):
        self._server = server
        self._pool = Pool(server, size)
        self._units = Units(server, self._pool, clock, probe)
        self._writing = writing(for_writing(statements, asked), server.asked)
        self._reading = reading(for_reading(statements), server.asked)
        self._threads = ThreadPoolExecutor(size, "pointsman-postgres")
        self._inside = local()
        self._relay = Relay(server)
        self._another = partial(Postgres, server, statements, asked, 1, clock, probe)
        self._aside: Postgres | None = None
        self._lock = Lock()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def hints(self) -> Hints:
        return self._relay.hints

    @property
    def clock(self) -> None:
        """The server has one."""
        return None

    def submit(self, unit: Callable[[Tx], T]) -> "Future[T]":
        return self._queue(self.run, unit)

    def submit_read(self, unit: Callable[[Tx], T]) -> "Future[T]":
        return self._queue(self.read, unit)

    def run(self, unit: Callable[[Tx], T]) -> T:
        noted = Noted(unit)
        answer = self._here(self._writing, noted)
        self._relay.tell(noted.news)
        return answer

    def read(self, unit: Callable[[Tx], T]) -> T:
        return self._here(self._reading, unit)

    def aside(self) -> "Postgres":
        """With one connection of its own."""
        with self._lock:
            self._aside = self._aside or self._another()
            return self._aside

    def check(self) -> list[str]:
        """What PostgreSQL itself does not trust, and rows that cannot be read; nothing when it is sound. Reads every row."""
        patient = replace(self._server, patience=replace(self._server.patience, statement_s=CHECK_S))
        session = patient.connect()
        try:
            found = [what for (what,) in patient.ask(session, "unsound")]
            patient.ask(session, "read_every_row")
        except psycopg.Error as error:
            found = [error.diag.message_primary or str(error)]
        finally:
            session.close()
        return found

    def backup(self, target: str, *, replace: bool) -> None:
        how = "pg_dump --format=custom --schema=pointsman, or by a base backup of its server"
        raise invalid(("backup", f"a PostgreSQL database is copied by its own tools: {how}"))

    def close(self) -> None:
        if self._aside is not None:
            self._aside.close()
        self._threads.shutdown()
        self._relay.close()
        self._pool.close()
        self.hints.tell(None)

    def _queue(self, done: Callable[[Callable[[Tx], T]], T], unit: Callable[[Tx], T]) -> "Future[T]":
        try:
            return self._threads.submit(done, unit)
        except RuntimeError:
            refused: Future[T] = Future()
            refused.set_exception(self._closed())
            return refused

    def _here(self, kind: Kind, unit: Callable[[Tx], T]) -> T:
        """On this thread. Inside a unit nobody may wait for another: the two could wait for one another's rows."""
        if getattr(self._inside, "unit", False):
            raise RuntimeError("inside a unit nobody may wait for another unit: it would never run")
        self._inside.unit = True
        try:
            return self._units.run(kind, unit)
        finally:
            self._inside.unit = False

    def _closed(self) -> StoreError:
        return unavailable(self._server.url, "it is closed")
