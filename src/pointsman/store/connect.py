"""Open the store that a URL names, with Pointsman's own schema and statements."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from pointsman.errors import StoreError
from pointsman.store import migrate, news, statements
from pointsman.store.database import Database, Probe
from pointsman.store.sqlite import open_sqlite
from pointsman.types import Instant

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
    server_clock: bool = True,
    create: bool = True,
    probe: Probe | None = None,
) -> Database:
    """`sqlite:///relative.db`, `sqlite:////absolute.db` or `postgresql://user:password@host:port/name`.

    A database that has a clock of its own goes by that one, unless `server_clock` is False. Only `create` makes what is
    not there: a SQLite file, or the tables in a PostgreSQL database."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        loaded = statements.load(SQL, "sqlite")
        steps = migrate.migrations(SQL / "schema")
        return open_sqlite(url, statements=loaded, schema=steps, clock=clock, create=create, probe=probe, since=news.since)
    if scheme in ("postgresql", "postgres"):
        return _postgres(url, None if server_clock else clock, create, probe)
    raise StoreError("store_unavailable", "a database is named sqlite:///PATH or postgresql://USER@HOST/NAME")


def _postgres(url: str, clock: Callable[[], Instant] | None, create: bool, probe: Probe | None) -> Database:
    """Its driver is an extra, and loaded only here."""
    try:
        from pointsman.store.postgres import open_postgres
    except ImportError as error:
        raise StoreError("store_unavailable", "PostgreSQL needs its driver: pip install 'pointsman[postgres]'") from error
    return open_postgres(
        url,
        statements=statements.load(SQL, "postgres"),
        asked=statements.load(SERVER_SQL, "postgres"),
        schema=migrate.migrations(SERVER_SQL / "schema"),
        clock=clock,
        create=create,
        probe=probe,
    )
