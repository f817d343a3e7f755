"""Which files are opened, and what the others are told. None of them is ever changed."""

import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from pointsman.errors import StoreError
from pointsman.store import sqlite_file
from pointsman.store.migrate import Migration
from store.notes import SCHEMA, add, child, open_notes, texts


def test_a_url_may_be_relative_absolute_or_a_plain_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    open_notes(tmp_path).close()
    for url in (
        "sqlite:///notes.db",
        f"sqlite:///{tmp_path}/notes.db",
        f"sqlite:////{tmp_path}/notes.db",
        "notes.db",
        f"{tmp_path}/notes.db",
    ):
        assert sqlite_file.locate(url) == str(tmp_path / "notes.db")


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "sqlite://host/x.db", "postgresql:///x", ":memory:", "sqlite:///:memory:", "a\0b"]
)
def test_a_url_that_names_no_file_is_refused(url: str):
    with pytest.raises(StoreError, match=r"named sqlite|needs the name of a file"):
        sqlite_file.locate(url)


def test_every_connection_has_what_durability_needs(tmp_path: Path):
    db = open_notes(tmp_path)
    wanted = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    for unit, only_reads in ((db.run, 0), (db.read, 1)):
        pragma = unit(lambda tx: tx._connection.pragma)
        assert {name: pragma(name) for name in (*wanted, "query_only")} == wanted | {"query_only": only_reads}
    db.close()


def test_a_connection_that_would_not_be_durable_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    open_notes(tmp_path).close()
    monkeypatch.setitem(sqlite_file.DURABLE, "synchronous", 7)
    with pytest.raises(StoreError, match="PRAGMA synchronous is 0 where 7 is needed"):
        open_notes(tmp_path)


def test_a_new_database_is_for_its_owner_alone(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("a"))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir() if file.is_file()}
    assert modes == dict.fromkeys(("notes.db", "notes.db-wal", "notes.db-shm", "notes.db-turn", "notes.db-next"), 0o600)
    db.close()


def test_what_was_written_is_there_after_opening_again(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("a"))
    db.close()
    again = open_notes(tmp_path, create=False)
    assert again.read(texts) == ["a"]
    assert again.check() == []
    again.close()


def test_without_create_nothing_is_created(tmp_path: Path):
    with pytest.raises(StoreError, match=f"{tmp_path}/notes.db: it does not exist"):
        open_notes(tmp_path, create=False)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == []


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(StoreError, match=f"{tmp_path}/none/notes.db: it cannot be created"):
        open_notes(tmp_path, "none/notes.db")


def directory(path: Path) -> None:
    path.mkdir()


def random_bytes(path: Path) -> None:
    path.write_bytes(bytes((n * 7919 + n // 3) % 256 for n in range(9000)))


def truncated_header(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + bytes(40))


def other_program(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.execute("PRAGMA application_id = 252006674")
    other.commit()
    other.close()


def no_program(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE theirs (a)")
    other.commit()
    other.close()


def pipe(path: Path) -> None:
    os.mkfifo(path)


FOREIGN: dict[Callable[[Path], None], str] = {
    directory: "it is not a regular file",
    pipe: "it is not a regular file",
    random_bytes: "it is not a SQLite database",
    truncated_header: "it is not a SQLite database",
    other_program: "it belongs to another program",
    no_program: "it belongs to another program",
}


@pytest.mark.parametrize("make", FOREIGN, ids=lambda make: make.__name__)
@pytest.mark.parametrize("create", [True, False])
def test_what_is_not_ours_is_refused_by_its_absolute_path_and_left_alone(tmp_path: Path, make: Callable[[Path], None], create: bool):
    path = tmp_path / "notes.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError, match=f"{path}: {FOREIGN[make]}") as refused:
        open_notes(tmp_path, create=create)
    assert (refused.value.code, refused.value.outcome) == ("store_unavailable", "not_done")
    assert (path.read_bytes() if path.is_file() else None) == before
    assert {file.name for file in tmp_path.iterdir()} == {"notes.db", "sql"}


def test_an_empty_file_is_a_new_database_only_with_create(tmp_path: Path):
    (tmp_path / "notes.db").touch()
    with pytest.raises(StoreError, match="it is empty"):
        open_notes(tmp_path, create=False)
    open_notes(tmp_path, create=True).close()


def test_a_link_to_nothing_is_refused_and_a_link_to_a_database_followed(tmp_path: Path):
    (tmp_path / "link.db").symlink_to(tmp_path / "notes.db")
    with pytest.raises(StoreError, match=f"{tmp_path}/link.db: it is a link to .* which does not exist"):
        open_notes(tmp_path, "link.db")
    open_notes(tmp_path).close()
    linked = open_notes(tmp_path, "link.db", create=False)
    assert linked.url == f"sqlite:///{tmp_path}/notes.db"
    linked.close()


def test_a_file_cut_short_is_refused(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("a"))
    db.close()
    whole = (tmp_path / "notes.db").read_bytes()
    (tmp_path / "notes.db").write_bytes(whole[:5000])
    with pytest.raises(StoreError, match="its content is damaged"):
        open_notes(tmp_path)
    assert (tmp_path / "notes.db").read_bytes() == whole[:5000]


def test_a_newer_schema_is_refused(tmp_path: Path):
    later = Migration(2, "002_later.sql", "CREATE TABLE later (a)")
    open_notes(tmp_path, schema=(*SCHEMA, later)).close()
    before = (tmp_path / "notes.db").read_bytes()
    with pytest.raises(StoreError, match="its schema is number 2, newer than 1"):
        open_notes(tmp_path)
    assert (tmp_path / "notes.db").read_bytes() == before


def test_opening_a_second_time_does_not_drop_the_locks_of_the_first(tmp_path: Path):
    """Closing any descriptor of a file drops this process's POSIX locks on it: the check of the header must not."""
    first = open_notes(tmp_path)
    first.run(add("a"))
    open_notes(tmp_path).close()
    rival = (
        "import apsw, sys; c = apsw.Connection(sys.argv[1]); c.pragma('locking_mode', 'exclusive'); c.execute('PRAGMA journal_mode=delete')"
    )
    _, errors = child(rival, tmp_path / "notes.db").communicate(timeout=30)
    assert "BusyError" in errors
    assert first.run(add("b")) == 2
    first.close()


def test_check_names_what_is_damaged(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("a single note"))
    db.close()
    path = tmp_path / "notes.db"
    path.write_bytes(path.read_bytes().replace(b"a single note", b"a changed one", 1))
    db = open_notes(tmp_path)
    assert db.check() == ["row 1 missing from index notes_by_text"]
    db.close()
