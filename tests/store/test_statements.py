from pathlib import Path

import pytest

from pointsman.store.statements import load, names


def written(folder: Path, text: str, file: str = "a.sql") -> Path:
    (folder / file).write_text(text)
    return folder


def test_a_statement_has_a_name_a_shape_parameters_and_words(tmp_path: Path):
    loaded = load(
        written(
            tmp_path,
            """-- Statements of a table.

-- name: advance :one?
-- Moves it on,
-- once.
UPDATE t SET a = :a, b = ':not', "c:no" = 1 /* :nor */ -- :this
WHERE a = :old AND d = :a
RETURNING a;  -- the new one

-- name: all_of_them :many
SELECT a FROM t /*lock:skip*/
""",
        )
    )
    advance = loaded["advance"]
    assert (advance.shape, advance.parameters, advance.doc) == (":one?", ("a", "old"), "Moves it on, once.")
    assert advance.sql.startswith("UPDATE t")
    assert advance.sql.endswith("RETURNING a")
    assert loaded["all_of_them"].sql == "SELECT a FROM t /*lock:skip*/"
    assert list(loaded) == ["advance", "all_of_them"]


def test_a_statement_may_be_spelled_for_each_database(tmp_path: Path):
    folder = written(tmp_path, "-- name: one@sqlite :one\nSELECT :a\n-- name: one@postgres :one\nSELECT CAST(:a AS int)\n")
    assert load(folder, "sqlite")["one"].sql == "SELECT :a"
    assert load(folder, "postgres")["one"].sql == "SELECT CAST(:a AS int)"
    assert names(folder) == ("one",)


def test_names_come_from_every_file_in_order(tmp_path: Path):
    written(tmp_path, "-- name: second :none\nDELETE FROM t", "b.sql")
    written(tmp_path, "-- name: first :none\nDELETE FROM t", "a.sql")
    (tmp_path / "schema").mkdir()
    assert names(tmp_path) == ("first", "second")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("-- name: a :none\nDELETE FROM t\n-- name: a :none\nDELETE FROM u", "a.sql:1, a.sql:3: a is to be written once"),
        ("-- name: a :some\nSELECT 1", "unknown shape :some"),
        ("-- name: a\nSELECT 1", "is no header"),
        ("-- name: a :one\nSELECT 1; SELECT 2", "a holds several statements"),
        ("-- name: a :one\nSELECT ';' ; -- x\n;", "a holds several statements"),
        ("-- name: a :one\n-- only words\n", "a holds no statement"),
        ("SELECT 1;\n-- name: a :one\nSELECT 1", "SQL stands before the first header"),
        ("-- name: a@oracle :one\nSELECT 1", "unknown database oracle"),
        ("-- name: a@sqlite :one\nSELECT 1", "a is to be written once, or once each"),
        ("-- name: a :one\nSELECT 1\n-- name: a@sqlite :one\nSELECT 1", "a is to be written once, or once each"),
        ("-- name: a@sqlite :one\nSELECT :x\n-- name: a@postgres :one\nSELECT :y", "differ in shape or parameters"),
        ("-- name: a@sqlite :one\nSELECT 1\n-- name: a@postgres :many\nSELECT 1", "differ in shape or parameters"),
    ],
)
def test_a_fault_is_found_when_loading(tmp_path: Path, text: str, fault: str):
    with pytest.raises(ValueError, match="statements cannot be used") as found:
        load(written(tmp_path, text))
    assert fault in str(found.value)


def test_all_faults_come_at_once_with_their_places(tmp_path: Path):
    written(tmp_path, "-- name: a :some\nSELECT 1\n-- name: b :one\n")
    written(tmp_path, "-- name: c\nSELECT 1\n", "z.sql")
    with pytest.raises(ValueError, match="statements cannot be used") as found:
        load(tmp_path)
    assert [line.split(": ")[0].strip() for line in str(found.value).splitlines()[1:]] == ["a.sql:1", "a.sql:3", "z.sql:1"]
