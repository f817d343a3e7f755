"""The schema, by numbered steps that only go forward.

`sql/schema/NNN_words.sql` is step NNN. The number of the last one applied is the database's `user_version`, written in
the step's own transaction, so that a step killed or failing half-way has never been.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Probe
from pointsman.store.sqlite_file import APPLICATION_ID, Connection, File, fault, unavailable

POINTS = ("migration.before", "migration.after")

_NAME = re.compile(r"(\d{3})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, the name of its file, and SQL without transaction commands."""

    number: int
    name: str
    sql: str


def migrations(directory: Path | Traversable) -> tuple[Migration, ...]:
    """The steps of `directory`, which must be numbered 001, 002, … without a gap, or a ValueError."""
    files = sorted((file for file in directory.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    for number, file in enumerate(files, 1):
        head = _NAME.fullmatch(file.name)
        if head is None or int(head[1]) != number:
            raise ValueError(f"{file.name} stands where {number:03}_WORDS.sql is wanted")
    return tuple(Migration(number, file.name, file.read_text("utf-8")) for number, file in enumerate(files, 1))


def migrate(file: File, schema: Sequence[Migration], probe: Probe) -> None:
    """Bring the file, empty or ours, to the last step of `schema`. A StoreError leaves it at the last whole step."""
    connection = file.open()
    try:
        _mark(connection)
        found = _version(connection)
        if found > len(schema):
            raise unavailable(file.path, f"its schema is number {found}, newer than {len(schema)}, the last one known here")
        connection.pragma("journal_mode", "wal")
        for step in schema[found:]:
            _apply(connection, step, file.path, probe)
    except apsw.Error as error:
        raise fault(error, file.path) or unavailable(file.path, str(error)) from error
    finally:
        connection.close()


def _mark(connection: Connection) -> None:
    """Make an empty file ours before it enters WAL mode, so that the mark is in the file itself from the first page on."""
    if connection.pragma("page_count") == 0:
        connection.pragma("synchronous", 2)
        connection.pragma("application_id", APPLICATION_ID)


def _version(connection: Connection) -> int:
    return int(connection.pragma("user_version"))


def _apply(connection: Connection, step: Migration, path: str, probe: Probe) -> None:
    """One step in one transaction; nothing when another process was quicker."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) >= step.number:
            return
        _run(connection, step, path)
        probe("migration.before")
        connection.execute("COMMIT")
        probe("migration.after")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run(connection: Connection, step: Migration, path: str) -> None:
    """Foreign keys are not enforced meanwhile, so that a step may rebuild a table; they are checked at its end."""
    connection.authorizer = _inside
    try:
        connection.execute(step.sql).fetchall()
    except (apsw.SQLError, apsw.ConstraintError, apsw.AuthError) as error:
        raise _failed(path, step, str(error)) from error
    finally:
        connection.authorizer = None
    if orphans := connection.execute("PRAGMA foreign_key_check").fetchall():
        raise _failed(path, step, f"it leaves {len(orphans)} rows whose foreign key has no target")
    connection.pragma("user_version", step.number)


def _inside(action: int, *_: str | None) -> int:
    """A step cannot end the transaction it runs in."""
    return apsw.SQLITE_DENY if action in (apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT) else apsw.SQLITE_OK


def _failed(path: str, step: Migration, why: str) -> StoreError:
    return unavailable(path, f"migration {step.name} failed and was taken back: {why}")
