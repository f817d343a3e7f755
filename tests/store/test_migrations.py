"""The schema goes forward in whole steps."""

from pathlib import Path

import pytest

from pointsman.errors import StoreError
from pointsman.store.migrate import Migration, migrations
from store.notes import SCHEMA, add, child, open_notes, texts

LATER = Migration(2, "002_later.sql", "ALTER TABLE notes ADD COLUMN colour TEXT; CREATE TABLE later (a INTEGER PRIMARY KEY);")


def test_steps_are_read_in_order_from_numbered_files(tmp_path: Path):
    (tmp_path / "002_more.sql").write_text("CREATE TABLE b (a)")
    (tmp_path / "001_core.sql").write_text("CREATE TABLE a (a)")
    (tmp_path / "notes.txt").write_text("not a step")
    assert [(step.number, step.name) for step in migrations(tmp_path)] == [(1, "001_core.sql"), (2, "002_more.sql")]


@pytest.mark.parametrize("files", [["002_a.sql"], ["001_a.sql", "001_b.sql"], ["001_a.sql", "003_b.sql"], ["core.sql"]])
def test_a_gap_or_a_twin_in_the_numbers_is_a_fault(tmp_path: Path, files: list[str]):
    for file in files:
        (tmp_path / file).write_text("SELECT 1")
    with pytest.raises(ValueError, match="is wanted"):
        migrations(tmp_path)


def test_an_older_database_is_brought_forward_with_its_rows(tmp_path: Path):
    old = open_notes(tmp_path)
    old.run(add("kept"))
    old.close()
    new = open_notes(tmp_path, schema=(*SCHEMA, LATER), create=False)
    assert new.read(texts) == ["kept"]
    assert new.read(lambda tx: tx._connection.pragma("user_version")) == 2
    new.close()


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("CREATE TABLE half (a); CREATE TABLE notes (a);", "already exists"),
        ("DROP TABLE notes; COMMIT; CREATE TABLE half (a);", "not authorized"),
        ("UPDATE notes SET parent = 77;", "1 rows whose foreign key has no target"),
    ],
)
def test_a_step_that_fails_leaves_the_old_database_usable(tmp_path: Path, sql: str, why: str):
    old = open_notes(tmp_path)
    old.run(add("kept"))
    old.close()
    with pytest.raises(StoreError, match=f"migration 002_bad.sql failed and was taken back: .*{why}"):
        open_notes(tmp_path, schema=(*SCHEMA, Migration(2, "002_bad.sql", sql)))
    again = open_notes(tmp_path)
    assert again.read(texts) == ["kept"]
    again.close()


START = """
import sys, pathlib
from store.notes import add, open_notes
db = open_notes(pathlib.Path(sys.argv[1]))
print(db.run(add("started")))
db.close()
"""


def test_several_processes_may_start_at_once_on_a_database_that_is_not_there(tmp_path: Path):
    starts = [child(START, tmp_path) for _ in range(5)]
    ends = [start.communicate(timeout=60) for start in starts]
    assert [errors for _, errors in ends] == [""] * 5
    assert sorted(int(number) for number, _ in ends) == [1, 2, 3, 4, 5]
