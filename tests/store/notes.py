"""A small database for the store's own tests: notes that point at notes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pointsman.store
from pointsman.store.database import Tx
from pointsman.store.migrate import Migration
from pointsman.store.sqlite import Sqlite, open_sqlite
from pointsman.store.statements import load

SQL = """
-- name: add_note :one
INSERT INTO notes (text, parent) VALUES (:text, :parent) RETURNING id;

-- name: put_note :none
INSERT INTO notes (id, text) VALUES (:id, :text);

-- name: put_or_roll_back :none
-- A conflict here ends the whole transaction, as some faults of a disk do.
INSERT OR ROLLBACK INTO notes (id, text) VALUES (:id, :text);

-- name: note :one
SELECT id, text FROM notes WHERE id = :id;

-- name: find_note :one?
SELECT id, text FROM notes WHERE text = :text;

-- name: echo :one
SELECT :value;

-- name: notes :many
SELECT text FROM notes ORDER BY id;

-- name: numbered :many
SELECT id, text FROM notes ORDER BY id;

-- name: count_up :one
UPDATE notes SET number = number + 1 WHERE id = :id RETURNING number;
"""

SCHEMA = (
    Migration(
        1,
        "001_notes.sql",
        """
        CREATE TABLE notes (
            id INTEGER PRIMARY KEY, text TEXT NOT NULL, number INTEGER NOT NULL DEFAULT 0,
            parent INTEGER REFERENCES notes (id) DEFERRABLE INITIALLY DEFERRED);
        CREATE INDEX notes_by_text ON notes (text);
        """,
    ),
)


def statements(folder: Path):
    """Several processes may open one folder at once, so the file comes whole or not at all."""
    folder.mkdir(exist_ok=True)
    whole = folder / f"{os.getpid()}-{threading.get_ident()}"
    whole.write_text(SQL)
    whole.replace(folder / "notes.sql")
    return load(folder)


class Clock:
    """Microseconds that pass by themselves, one with every look."""

    def __init__(self, at: int = 1_000_000):
        self.at = at

    def __call__(self) -> int:
        self.at += 1
        return self.at


def open_notes(folder: Path, name: str = "notes.db", **changes: Any) -> Sqlite:
    known = {"statements": statements(folder / "sql"), "schema": SCHEMA, "clock": Clock(), "create": True}
    return open_sqlite(folder / name, **(known | changes))


def add(text: str, parent: int | None = None) -> Callable[[Tx], int]:
    return lambda tx: tx("add_note", text=text, parent=parent)[0]


def texts(tx: Tx) -> list[str]:
    return [text for (text,) in tx("notes")]


class Gate:
    """Holds the writer inside a unit, so that what is submitted meanwhile becomes one group."""

    def __init__(self, db: Sqlite):
        self._db = db
        self._opened = threading.Event()

    def __enter__(self) -> "Gate":
        entered = threading.Event()

        def hold(tx: Tx) -> None:
            entered.set()
            assert self._opened.wait(10)

        self._held: Future[None] = self._db.submit(hold)
        assert entered.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.set()
        self._held.result(10)


def together(db: Sqlite, *units: Callable[[Tx], Any]) -> list[Future[Any]]:
    """The futures of units that ran as one group, all of them done."""
    with Gate(db):
        futures = [db.submit(unit) for unit in units]
    for future in futures:
        future.exception(10)
    return futures


def child(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A process that runs `program` with the packages of this one."""
    roots = Path(pointsman.store.__file__).parents[2], Path(__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, roots))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
