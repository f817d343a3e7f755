"""Open the store that a URL names, with Pointsman's own schema and statements."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pointsman.errors import StoreError
from pointsman.store import clock as marks
from pointsman.store import copying, migrate, news, statements
from pointsman.store.clock import RisingClock
from pointsman.store.database import Database, Probe
from pointsman.store.sqlite import open_sqlite
from pointsman.store.statements import Statement
from pointsman.types import Duration, Instant

SQL = files("pointsman.store") / "sql"
SERVER_SQL = SQL / "postgres"


@cache
def statement_names() -> tuple[str, ...]:
    """Every named statement of the store; tests pause before and after each."""
    return statements.names(SQL)


def connect(
    url: str,
    *,
    clock: Callable[[], Instant],
    uptime: Callable[[], Duration] | None = None,
    server_clock: bool = True,
    create: bool = True,
    unfinished: bool = False,
    probe: Probe | None = None,
    connections: int | None = None,
) -> Database:
    """`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user:password@host:port/name`.

    A database that has a clock of its own goes by that one, unless `server_clock` is False. By `uptime` a jump of
    `clock` is told from time that passes; without it every reading forward is believed. Only `create` makes what is
    not there: a SQLite file, or the tables in a PostgreSQL database. Only `unfinished` opens what a copy has not ended in.
    `connections` is how many of a server's are in use at most."""
    db = _open(url, RisingClock(clock, uptime), server_clock, create, probe, connections)
    try:
        if not unfinished:
            copying.refuse_unfinished(db)
    except StoreError:
        db.close()
        raise
    return db


@dataclass(frozen=True, slots=True)
class Migrated:
    """A database at the newest schema: its number, and the steps that were taken now."""

    url: str
    schema: int
    steps: Sequence[str]


def migrate_to_newest(url: str, *, clock: Callable[[], Instant], create: bool) -> Migrated:
    """Bring a database to the newest schema, as every opening does, and tell what that took."""
    taken: list[str] = []
    db = connect(url, clock=clock, create=create, probe=taken.append)
    db.close()
    schema = migrate.migrations((SQL if db.url.startswith("sqlite") else SERVER_SQL) / "schema")
    count = taken.count("migration.after")
    return Migrated(db.url, len(schema), [step.name for step in schema[len(schema) - count :]])


def _open(url: str, clock: RisingClock, server_clock: bool, create: bool, probe: Probe | None, connections: int | None) -> Database:
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        loaded, schema = _statements("sqlite"), migrate.migrations(SQL / "schema")
        return open_sqlite(
            url, statements=loaded, schema=schema, clock=clock, create=create, probe=probe, since=news.since, mark=marks.find
        )
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, None if server_clock else clock, create, probe, connections)
    raise StoreError("store_unavailable", "a database is named sqlite:///PATH or postgresql://USER@HOST/NAME")


def _statements(dialect: str) -> Mapping[str, Statement]:
    return {**statements.load(SQL, dialect), **copying.drawn(dialect)}


def _postgres(url: str, clock: RisingClock | None, create: bool, probe: Probe | None, connections: int | None) -> Database:
    """Its driver is an extra, and loaded only here."""
    try:
        from pointsman.store.postgres import POOL_SIZE, open_postgres
    except ImportError as error:
        raise StoreError("store_unavailable", "PostgreSQL needs its driver: pip install 'pointsman[postgres]'") from error
    return open_postgres(
        url,
        statements=_statements("postgres"),
        asked=statements.load(SERVER_SQL, "postgres"),
        schema=migrate.migrations(SERVER_SQL / "schema"),
        clock=clock,
        create=create,
        probe=probe,
        size=POOL_SIZE if connections is None else connections,
    )
