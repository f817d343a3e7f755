"""A finished database of either store, copied again and again, and changed behind Pointsman's back."""

import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import apsw
import psycopg

from databases import PostgresServer

_numbers = count()


class Copies(Protocol):
    """`url` is the original, which must be closed."""

    url: str

    def changed(self, statements: Iterable[str]) -> str:
        """The URL of a copy on which raw SQL was run, with no constraint that SQL can switch off."""
        ...

    def alter(self, url: str, *statements: str) -> None:
        """Raw SQL on a copy."""
        ...

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Raw SQL on the original."""
        ...

    def tables(self) -> dict[str, list[str]]:
        """Each table's columns."""
        ...

    def key_of(self, table: str) -> list[str]:
        """The columns of its primary key."""
        ...

    def is_number(self, table: str, column: str) -> bool: ...


class SqliteCopies:
    def __init__(self, folder: Path):
        self._folder, self._path = folder, folder / "work.db"
        self.url = f"sqlite:///{self._path}"

    def changed(self, statements: Iterable[str]) -> str:
        copy = self._folder / f"copy{next(_numbers)}.db"
        shutil.copy(self._path, copy)
        self.alter(f"sqlite:///{copy}", *statements)
        return f"sqlite:///{copy}"

    def alter(self, url: str, *statements: str) -> None:
        raw = apsw.Connection(url.removeprefix("sqlite:///"))
        raw.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            raw.execute(statement)
        raw.close()

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        raw = apsw.Connection(str(self._path))
        try:
            return raw.execute(sql).fetchall()
        finally:
            raw.close()

    def tables(self) -> dict[str, list[str]]:
        named = self.ask("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        return {table: [row[1] for row in self._columns(table)] for (table,) in named}

    def key_of(self, table: str) -> list[str]:
        return [row[1] for row in self._columns(table) if row[5]]

    def is_number(self, table: str, column: str) -> bool:
        return next(row[2] for row in self._columns(table) if row[1] == column) == "INTEGER"

    def _columns(self, table: str) -> list[tuple[Any, ...]]:
        return self.ask(f"PRAGMA table_info({table})")


class PostgresCopies:
    """One database, laid back to what it was before each change: a database of its own for every change costs too much."""

    def __init__(self, server: PostgresServer):
        self.url = server.empty()
        self._kept = False

    def changed(self, statements: Iterable[str]) -> str:
        again = [f"DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept.{table}" for table in self.tables()]
        self.alter(self.url, *(again if self._kept else self._keeping()), *statements)
        self._kept = True
        return self.url

    def alter(self, url: str, *statements: str) -> None:
        with psycopg.connect(url, options="-c search_path=pointsman -c session_replication_role=replica") as raw:
            for statement in statements:
                raw.execute(statement.encode())

    def _keeping(self) -> list[str]:
        """What sets a copy of every table aside, and removes every CHECK."""
        checks = "SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'c' AND connamespace = 'pointsman'::regnamespace"
        return [
            "CREATE SCHEMA kept",
            *(f"CREATE TABLE kept.{table} AS TABLE {table}" for table in self.tables()),
            *(f"ALTER TABLE {table} DROP CONSTRAINT {constraint}" for table, constraint in self.ask(checks)),
        ]

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url, options="-c search_path=kept,pointsman") as raw:
            return raw.execute(sql.encode()).fetchall()

    def tables(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table, column in self.ask(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'pointsman' ORDER BY 1, ordinal_position"
        ):
            found.setdefault(table, []).append(column)
        return found

    def key_of(self, table: str) -> list[str]:
        rows = self.ask(
            "SELECT a.attname FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) "
            f"WHERE i.indrelid = 'pointsman.{table}'::regclass AND i.indisprimary ORDER BY a.attnum"
        )
        return [name for (name,) in rows]

    def is_number(self, table: str, column: str) -> bool:
        kind = f"SELECT data_type FROM information_schema.columns WHERE table_schema = 'pointsman' AND table_name = '{table}'"
        return self.ask(f"{kind} AND column_name = '{column}'") == [("bigint",)]
