"""One SQLite file: where it is, whether it is ours, a connection that keeps what it says, and what its errors mean.

The file is never opened except by SQLite's own file layer: closing a descriptor of our own would drop, by POSIX rule,
every lock that another connection of this process holds on it.
"""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Row

APPLICATION_ID = 0x504F494E
"""The letters POIN, at byte 68 of every database of ours."""

DURABLE = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
"""What every connection sets and then reads back. 2 is FULL: at NORMAL a power cut takes acknowledged work with it."""

CACHED_STATEMENTS = 512
BUSY = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)
UNAVAILABLE = {
    apsw.FullError: "its disk is full",
    apsw.IOError: "reading or writing it failed",
    apsw.ReadOnlyError: "it is read-only",
    apsw.CorruptError: "its content is damaged",
    apsw.NotADBError: "it is not a SQLite database",
    apsw.CantOpenError: "it, or a file beside it, cannot be opened",
    apsw.PermissionsError: "access to it was denied",
    apsw.AuthError: "access to it was denied",
    apsw.NoLFSError: "it is too large for this system",
    apsw.NoMemError: "memory ran out",
    apsw.InternalError: "SQLite met an internal fault",
    apsw.InterruptError: "SQLite was interrupted",
}


class Cursor(Protocol):
    def execute(self, sql: str, bindings: Mapping[str, Any] | None = None, /) -> "Cursor": ...
    def fetchall(self) -> list[Row]: ...


class Connection(Protocol):
    """What the store uses of apsw's connection, typed; apsw's own stubs leave what can be bound unknown."""

    authorizer: Callable[..., int] | None

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, sql: str, bindings: Mapping[str, Any] | None = None, /) -> Cursor: ...
    def cursor(self) -> Cursor: ...
    def pragma(self, name: str, value: str | int | None = None, /) -> Any: ...
    def config(self, option: int, value: int, /) -> Any: ...
    def set_busy_timeout(self, milliseconds: int, /) -> None: ...
    def close(self) -> None: ...


def unavailable(path: str, why: str, outcome: str = "not_done") -> StoreError:
    return StoreError("store_unavailable", f"database {path}: {why}", outcome)


def busy(path: str) -> StoreError:
    return StoreError("store_busy", f"database {path}: another process kept the write lock")


def fault(error: apsw.Error, path: str, outcome: str = "not_done") -> StoreError | None:
    """What `error` says of the store, or None when it says something of the statement or of its values."""
    if isinstance(error, BUSY):
        return busy(path)
    why = next((why for kind, why in UNAVAILABLE.items() if isinstance(error, kind)), None)
    return None if why is None else unavailable(path, f"{why} ({_result(error)})", outcome)


def _result(error: apsw.Error) -> str:
    code = getattr(error, "extendedresult", -1)
    names = apsw.mapping_extended_result_codes, apsw.mapping_result_codes
    return next((str(table[code]) for table in names if code in table), type(error).__name__)


@dataclass(frozen=True, slots=True)
class File:
    """A database file by its absolute path, links followed. `patience_s` is how long a lock is waited for."""

    path: str
    patience_s: float

    def identity(self) -> tuple[int, int]:
        """Which file the path names now. It changes when somebody removes the file or lays another in its place."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            raise unavailable(self.path, f"it is gone ({error.strerror})") from error
        return status.st_dev, status.st_ino

    def mode(self) -> int:
        return os.stat(self.path).st_mode

    def open(self) -> Connection:
        """A bare connection: it waits for locks, and keeps a statement's plan whatever is bound to it. Otherwise SQLite prepares anew,
        at every call, each statement on a table with partial indexes. Nothing else is set yet."""
        try:
            opened = apsw.Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=CACHED_STATEMENTS)
        except apsw.Error as error:
            raise fault(error, self.path) or unavailable(self.path, str(error)) from error
        connection = cast(Connection, opened)
        connection.set_busy_timeout(round(self.patience_s * 1000))
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        return connection

    def connect(self, schema: int, **pragmas: int) -> Connection:
        """A connection to a database of ours at schema number `schema`, durable, or a StoreError."""
        connection = self.open()
        try:
            self._check(connection, DURABLE | pragmas | {"application_id": APPLICATION_ID, "user_version": schema}, {*DURABLE, *pragmas})
        except apsw.Error as error:
            connection.close()
            raise fault(error, self.path) or unavailable(self.path, str(error)) from error
        except StoreError:
            connection.close()
            raise
        return connection

    def _check(self, connection: Connection, wanted: dict[str, str | int], settable: set[str]) -> None:
        for name, value in wanted.items():
            if name in settable:
                connection.pragma(name, value)
            if (found := connection.pragma(name)) != value:
                raise unavailable(self.path, f"PRAGMA {name} is {found!r} where {value!r} is needed")

    def header(self) -> bytes:
        """The first 100 bytes as they stand on disk, fewer when the file is shorter."""
        try:
            raw = apsw.VFSFile("", self.path, [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
            try:
                return raw.xRead(min(100, raw.xFileSize()), 0)
            finally:
                raw.xClose()
        except apsw.Error as error:
            raise fault(error, self.path) or unavailable(self.path, str(error)) from error


def locate(url: str | Path) -> str:
    """The absolute path that `sqlite:///rel.db`, `sqlite:////abs.db` or a plain path names, links followed."""
    text = os.fspath(url)
    scheme, mark, rest = text.partition("://")
    if mark and not (scheme == "sqlite" and rest.startswith("/")):
        raise StoreError("store_unavailable", "a SQLite database is named sqlite:///relative.db, sqlite:////absolute.db or by its path")
    name = rest[1:] if mark else text
    if not name or name == ":memory:" or "\0" in name:
        raise StoreError("store_unavailable", "a SQLite database needs the name of a file")
    path = os.path.abspath(name)
    if os.path.islink(path) and not os.path.exists(path):
        raise unavailable(path, f"it is a link to {os.readlink(path)!r}, which does not exist")
    return os.path.realpath(path)


def claim(file: File, create: bool) -> None:
    """See that the file is ours, or make an empty one. Anything else is a StoreError, and is left as it was."""
    try:
        if not stat.S_ISREG(file.mode()):
            raise unavailable(file.path, "it is not a regular file")
    except FileNotFoundError:
        if not create:
            raise unavailable(file.path, "it does not exist") from None
        _make(file.path)
    except OSError as error:
        raise unavailable(file.path, f"it cannot be reached ({error.strerror})") from error
    head = file.header()
    if not head and create:
        return
    if len(head) < 100 or not head.startswith(b"SQLite format 3\0"):
        raise unavailable(file.path, "it is empty" if not head else "it is not a SQLite database")
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise unavailable(file.path, "it belongs to another program")


def _make(path: str) -> None:
    """Create it empty, for its owner's eyes only. Another process may do the same at the same moment."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise unavailable(path, f"it cannot be created ({error.strerror})") from error
