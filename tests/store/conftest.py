"""A database of notes: on each store in turn, and on SQLite for what only a file has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from databases import STORES
from pointsman.store.database import Database
from pointsman.store.sqlite import Sqlite
from store.notes import open_notes, open_postgres_notes

Opener = Callable[..., Database]


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens one and the same database of notes, on one store and then on the other; a second time as it was left."""
    opened: list[Database] = []
    url = "" if request.param == "sqlite" else request.getfixturevalue("postgres").create()

    def open_(**changes: Any) -> Database:
        db = open_postgres_notes(url, tmp_path, **changes) if url else open_notes(tmp_path, **changes)
        opened.append(db)
        return db

    yield open_
    for db in opened:
        db.close()


@pytest.fixture
def db(opener: Opener) -> Database:
    return opener()


@pytest.fixture
def file_db(tmp_path: Path) -> Iterator[Sqlite]:
    opened = open_notes(tmp_path)
    yield opened
    opened.close()
