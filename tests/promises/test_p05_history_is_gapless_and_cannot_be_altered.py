"""P5: altering, dropping, swapping or inserting an entry, or any covered or derived column, is found and named."""

import shutil
from pathlib import Path

import apsw
import pytest

import support
from pointsman import Event, Machine, Pointsman, State, Tasks, Verdict, check, optional, owner
from pointsman.store.columns import COLUMNS, VOLATILE
from pointsman.store.connect import SQL
from pointsman.store.snapshots import EVERY

TAMPERABLE = [(table, column) for table, columns in COLUMNS.items() for column, kind in columns.items() if kind != VOLATILE]


def slow(text: str | None) -> Verdict:
    return Verdict(text == "right", "compared")


class Judged(Machine, name="judged"):
    version = 1
    text: str | None = None
    open = State(initial=True)
    done = State(final=True, outcome="failed")
    right = check(slow)
    take = Event(open >> open, acquires=True)
    finish = Event(open >> done, by=owner, sets=optional("text"), requires=right)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with every kind of row, closed."""
    path = tmp_path_factory.mktemp("whole") / "work.db"
    with Pointsman(f"sqlite:///{path}", [Tasks, Judged]) as pm:
        for _ in range(3):
            task = support.approved(pm)
        long = support.drafting(pm)
        for _ in range(EVERY):
            pm.propose(long.id, "start_draft", by=support.OWNER, epoch=long.epoch)
        pm.propose(task.id, "complete", by=support.OWNER, epoch=task.epoch, idempotency_key="k1")
        judged = pm.create("judged", {}, by="ann")
        judged = pm.claim("judged", by="w", id=judged.id)
        assert judged is not None
        pm.propose(judged.id, "finish", {"text": "right"}, by="w", epoch=judged.epoch)
        assert pm.as_of() == len(pm.history(n=1000))
    return path


def _tampered(whole: Path, tmp_path: Path, *statements: str) -> list[str]:
    """What verify says after raw SQL was run on a copy. No machine is served: verification needs only the database."""
    path = tmp_path / "work.db"
    shutil.copy(whole, path)
    raw = apsw.Connection(str(path))
    raw.execute("PRAGMA ignore_check_constraints = ON")
    for statement in statements:
        raw.execute(statement)
    raw.close()
    with Pointsman(f"sqlite:///{path}", [], create=False) as pm:
        report = pm.verify()
    assert report.ok == (not report.faults)
    return [fault.what for fault in report.faults]


def test_an_untouched_database_verifies(whole: Path, tmp_path: Path) -> None:
    assert _tampered(whole, tmp_path) == []


def test_every_column_of_every_table_is_declared(whole: Path) -> None:
    raw = apsw.Connection(str(whole))
    tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    found = {table: {row[1] for row in raw.execute(f"PRAGMA table_info({table})")} for table in tables}
    assert found == {table: set(columns) for table, columns in COLUMNS.items()}
    assert SQL.joinpath("schema").is_dir()


@pytest.mark.parametrize(("table", "column"), TAMPERABLE)
def test_an_altered_column_is_found(whole: Path, tmp_path: Path, table: str, column: str) -> None:
    raw = apsw.Connection(str(whole))
    keys = [row[1] for row in raw.execute(f"PRAGMA table_info({table})") if row[5]]
    *row, kind = raw.execute(f"SELECT {', '.join(keys)}, typeof({column}) FROM {table} ORDER BY 1 DESC LIMIT 1").fetchone()
    raw.close()
    where = " AND ".join(f"{key} = {value!r}" for key, value in zip(keys, row, strict=True))
    changed = f"{column} + 1000" if kind == "integer" else f"coalesce({column}, '') || ' '"
    assert _tampered(whole, tmp_path, f"UPDATE {table} SET {column} = {changed} WHERE {where}")


@pytest.mark.parametrize("column", ["owner", "session", "evidence", "fields"])
def test_a_column_set_to_null_or_empty_is_found(whole: Path, tmp_path: Path, column: str) -> None:
    empty = "NULL" if column in ("owner", "session") else "'{}'"
    faults = _tampered(whole, tmp_path, f"UPDATE tasks SET {column} = {empty}, session = 's' WHERE key = 1")
    assert any("live row" in fault for fault in faults)


def _swapped(table: str, column: str, where: str) -> list[str]:
    """Exchange the values 2 and 3 of a unique column."""
    return [f"UPDATE {table} SET {column} = -{column} WHERE {where}", f"UPDATE {table} SET {column} = 5 + {column} WHERE {where}"]


LAST = "(SELECT max(key) FROM entries WHERE task = 1)"


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        (["DELETE FROM payloads WHERE entry = 2", "DELETE FROM entries WHERE key = 2"], "missing"),
        (["DELETE FROM payloads WHERE entry = 2"], "payload is gone"),
        ([f"DELETE FROM entries WHERE key = {LAST}"], "live row"),
        (_swapped("entries", "version", "key IN (2, 3)"), "not follow"),
        (_swapped("payloads", "entry", "entry IN (2, 3, -2, -3)"), "payload was altered"),
        (["DELETE FROM tasks WHERE key = 1"], "stray entry"),
        (["DELETE FROM entries WHERE task = 1"], "without history"),
    ],
)
def test_a_dropped_swapped_or_inserted_entry_is_found(whole: Path, tmp_path: Path, statements: list[str], named: str) -> None:
    assert any(named in fault for fault in _tampered(whole, tmp_path, *statements))


def test_an_inserted_entry_is_found(whole: Path, tmp_path: Path) -> None:
    raw = apsw.Connection(str(whole))
    names = [row[1] for row in raw.execute("PRAGMA table_info(entries)") if row[1] != "key"]
    raw.close()
    copied = ", ".join("version + 1" if name == "version" else name for name in names)
    statement = f"INSERT INTO entries ({', '.join(names)}) SELECT {copied} FROM entries WHERE key = {LAST}"
    assert _tampered(whole, tmp_path, statement)


DELETED_UNSEEN = {
    "judgements": "history does not say that a check was asked",
    "proposals": "history does not say that somebody waited",
    "refusals": "volatile",
}


@pytest.mark.parametrize("table", COLUMNS)
def test_a_deleted_row_is_found_where_history_implies_it(whole: Path, tmp_path: Path, table: str) -> None:
    raw = apsw.Connection(str(whole))
    (key, *_) = [row[1] for row in raw.execute(f"PRAGMA table_info({table})") if row[5]]
    raw.close()
    faults = _tampered(whole, tmp_path, f"DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})")
    assert bool(faults) == (table not in DELETED_UNSEEN)


def test_an_entry_slipped_in_behind_the_feed_is_found(whole: Path, tmp_path: Path) -> None:
    """With a fitting hash, payload and live row, and with a key that the feed has passed."""
    path = tmp_path / "work.db"
    shutil.copy(whole, path)
    with Pointsman(f"sqlite:///{path}", [Tasks, Judged]) as pm:
        task = pm.list(limit=1)[0]
        head = pm.head()
        record = pm.propose(task.id, "fail", by="x")
        assert pm.verify(head).ok
    raw = apsw.Connection(str(path))
    raw.execute("DELETE FROM feed WHERE entry = (SELECT max(key) FROM entries)")
    raw.execute("UPDATE payloads SET entry = 0 WHERE entry = (SELECT max(key) FROM entries)")
    raw.execute("UPDATE entries SET key = 0 WHERE key = (SELECT max(key) FROM entries)")
    raw.close()
    with Pointsman(f"sqlite:///{path}", [], create=False) as pm:
        assert record.version == task.version + 1
        assert [fault.what for fault in pm.verify(head).faults] == ["an entry stands behind the feed without a number (key 0)"]


def test_the_first_bad_entry_is_named(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    shutil.copy(whole, path)
    raw = apsw.Connection(str(path))
    task, version = raw.execute("SELECT t.id, e.version FROM entries e JOIN tasks t ON t.key = e.task WHERE e.key = 3").fetchone()
    raw.execute("UPDATE entries SET by = 'mallory' WHERE key >= 3")
    raw.close()
    with Pointsman(f"sqlite:///{path}", [], create=False) as pm:
        first = next(fault for fault in pm.verify().faults if fault.what == "a covered column was altered")
    assert (first.task, first.version) == (task, version)
