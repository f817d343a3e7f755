"""Open the store that a URL names, with Pointsman's own schema and statements."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files

from pointsman.errors import StoreError
from pointsman.store import migrate, statements
from pointsman.store.database import Database, Probe
from pointsman.store.sqlite import open_sqlite
from pointsman.types import Instant

SQL = files("pointsman.store") / "sql"


@cache
def statement_names() -> tuple[str, ...]:
    """Every named statement of the store; tests pause before and after each."""
    return statements.names(SQL)


def connect(url: str, *, clock: Callable[[], Instant], create: bool = True, probe: Probe | None = None) -> Database:
    """`sqlite:///relative.db` or `sqlite:////absolute.db`. Only `create` makes a database that is not there."""
    scheme = url.partition(":")[0]
    if scheme != "sqlite":
        raise StoreError("store_unavailable", "this version opens sqlite:///PATH only")
    loaded = statements.load(SQL, "sqlite")
    return open_sqlite(url, statements=loaded, schema=migrate.migrations(SQL / "schema"), clock=clock, create=create, probe=probe)
