"""Part of P21: a fault of the disk gets a typed answer, nothing is half-written, and service returns by itself."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from faults.disk import Disk, faulty
from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.sqlite import Sqlite
from pointsman.store.turn import Turn
from store.notes import Clock, add, child, open_notes, texts, together


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with faulty(tmp_path) as disk:
        yield disk


@pytest.fixture
def db(disk: Disk) -> Iterator[Sqlite]:
    opened = open_notes(disk.folder)
    opened.run(add("before"))
    yield opened
    opened.close()


def refused(db: Sqlite) -> tuple[str, str]:
    """The code and the outcome that a unit is answered with."""
    with pytest.raises(StoreError) as told:
        db.run(add("during"))
    assert db.url.removeprefix("sqlite:///") in told.value.detail
    return told.value.code, told.value.outcome


def test_a_full_disk_at_commit_is_unknown_and_passes(db: Sqlite, disk: Disk):
    disk.full = True
    assert refused(db) == ("store_unavailable", "unknown")
    assert db.read(texts) == ["before"]
    assert refused(db) == ("store_unavailable", "unknown")
    disk.full = False
    assert db.run(add("after")) == 2
    assert db.read(texts) == ["before", "after"]


def test_a_sync_that_fails_is_unknown_and_passes(db: Sqlite, disk: Disk):
    disk.sync_fails = True
    assert refused(db) == ("store_unavailable", "unknown")
    disk.sync_fails = False
    db.run(add("after"))
    assert db.read(texts) in (["before", "after"], ["before", "during", "after"])


def test_in_a_group_whose_commit_failed_only_what_raised_is_known(db: Sqlite, disk: Disk):
    def raises(tx: Tx) -> None:
        raise ZeroDivisionError

    disk.sync_fails = True
    outcomes = [future.exception() for future in together(db, add("a"), raises, add("b"))]
    assert [isinstance(told, StoreError) and told.outcome for told in outcomes] == ["unknown", "not_done", "unknown"]
    disk.sync_fails = False


def test_a_database_that_may_not_grow_says_so_before_the_commit(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(lambda tx: tx._connection.pragma("max_page_count", 5))
    fits, too_much, also_fits = together(db, add("a"), add("x" * 50_000), add("b"))
    assert (fits.result(), also_fits.result()) == (1, 2)
    with pytest.raises(StoreError, match="its disk is full") as told:
        too_much.result()
    assert (told.value.code, told.value.outcome) == ("store_unavailable", "not_done")
    assert db.run(add("x" * 50_000)) == 3, "the connection was opened anew, without the limit"
    db.close()


def test_no_power_is_told_and_passes(db: Sqlite, disk: Disk):
    disk.dark = True
    assert refused(db)[0] == "store_unavailable"
    disk.dark = False
    assert db.run(add("after"))


def test_a_database_locked_by_another_program_is_busy_and_nothing_was_done(tmp_path: Path):
    db = open_notes(tmp_path, patience_s=0.05)
    rival = apsw.Connection(str(tmp_path / "notes.db"))
    rival.execute("BEGIN IMMEDIATE")
    assert refused(db) == ("store_busy", "not_done")
    told = [future.exception(10) for future in [db.submit(add("a")), db.submit(add("b"))]]
    assert [isinstance(error, StoreError) and (error.code, error.outcome) for error in told] == [("store_busy", "not_done")] * 2
    assert db.read(texts) == []
    rival.execute("ROLLBACK")
    assert db.run(add("after")) == 1
    rival.close()
    db.close()


def test_a_turn_that_does_not_come_is_busy(tmp_path: Path):
    db = open_notes(tmp_path, patience_s=0.05)
    rival = Turn(str(tmp_path / "notes.db"), 0o600)
    assert rival.take(1)
    assert refused(db) == ("store_busy", "not_done")
    with pytest.raises(StoreError, match="another process kept the write lock"):
        open_notes(tmp_path, patience_s=0.05)
    rival.give()
    assert db.run(add("after")) == 1
    rival.close()
    db.close()


STOPS_BEFORE_ITS_COMMIT = """
import os, pathlib, signal, sys
from store.notes import add, open_notes
db = open_notes(pathlib.Path(sys.argv[1]), probe=lambda point: point == "commit.before" and os.kill(os.getpid(), signal.SIGSTOP))
print(db.run(add("slept on it")))
"""


def test_a_process_frozen_in_its_commit_makes_others_busy_until_it_goes_on(tmp_path: Path):
    db = open_notes(tmp_path, patience_s=0.05)
    frozen = child(STOPS_BEFORE_ITS_COMMIT, tmp_path)
    assert os.WIFSTOPPED(os.waitpid(frozen.pid, os.WUNTRACED)[1])
    assert refused(db) == ("store_busy", "not_done")
    assert db.read(texts) == []
    frozen.send_signal(signal.SIGCONT)
    assert frozen.communicate(timeout=30) == ("1\n", "")
    assert db.run(add("after")) == 2
    db.close()


def test_a_database_that_is_gone_is_unavailable_until_it_is_back(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("before"))
    assert db.read(texts) == ["before"]
    away = tmp_path / "away"
    away.mkdir()
    files = [f"notes.db{end}" for end in ("", "-wal", "-shm")]
    for name in files:
        os.rename(tmp_path / name, away / name)
    assert refused(db) == ("store_unavailable", "not_done")
    with pytest.raises(StoreError, match="it is gone"):
        db.read(texts)
    for name in files:
        os.rename(away / name, tmp_path / name)
    assert db.run(add("after")) == 2
    assert db.read(texts) == ["before", "after"]
    db.close()


def test_another_database_laid_in_its_place_is_taken_up_whole(tmp_path: Path):
    (tmp_path / "other").mkdir()
    other = open_notes(tmp_path / "other")
    other.run(add("other"))
    other.close()
    db = open_notes(tmp_path)
    db.run(add("before"))
    db.read(texts)
    for end in ("-wal", "-shm"):
        (tmp_path / f"notes.db{end}").unlink()
    os.replace(tmp_path / "other" / "notes.db", tmp_path / "notes.db")
    assert db.read(texts) == ["other"]
    assert db.run(add("after")) == 2
    db.close()


def test_a_foreign_file_laid_in_its_place_is_refused(tmp_path: Path):
    db = open_notes(tmp_path)
    db.run(add("before"))
    for end in ("-wal", "-shm"):
        (tmp_path / f"notes.db{end}").unlink()
    foreign = tmp_path / "foreign.db"
    foreign.write_bytes(b"not a database" * 1000)
    os.replace(foreign, tmp_path / "notes.db")
    assert refused(db) == ("store_unavailable", "not_done")
    with pytest.raises(StoreError, match="not a SQLite database"):
        db.read(texts)
    assert (tmp_path / "notes.db").read_bytes() == b"not a database" * 1000
    db.close()


def test_a_database_that_became_read_only_is_unavailable_until_it_is_not(db: Sqlite, disk: Disk):
    assert db.read(texts) == ["before"]
    disk.sync_fails = disk.read_only = True
    assert refused(db) == ("store_unavailable", "unknown")
    disk.sync_fails = False
    with pytest.raises(StoreError, match="it is read-only") as told:
        db.run(add("during"))
    assert told.value.outcome == "not_done"
    assert db.read(texts) == ["before"]
    disk.read_only = False
    db.run(add("after"))
    assert db.read(texts) == ["before", "after"]


def test_damage_that_a_unit_meets_is_unavailable_for_that_unit(tmp_path: Path):
    db = open_notes(tmp_path, clock=Clock())
    db.run(add("a single note"))
    db.close()
    path = tmp_path / "notes.db"
    raw = bytearray(path.read_bytes())
    raw[4096:4104] = b"\xff" * 8
    path.write_bytes(bytes(raw))
    db = open_notes(tmp_path)
    with pytest.raises(StoreError, match="its content is damaged"):
        db.read(lambda tx: tx("note", id=1))
    assert refused(db) == ("store_unavailable", "not_done")
    db.close()
