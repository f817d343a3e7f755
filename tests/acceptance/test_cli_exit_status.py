"""Every exit status, from the real command: 0 ok, 1 failure, 2 usage, 3 refused, 4 not found, 5 store unavailable."""

import sqlite3
from pathlib import Path

import pytest

from acceptance.cli import Ended, run

NOBODY = "01890000-0000-7000-8000-000000000000"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    board = tmp_path_factory.mktemp("board")
    run(board, "init")
    return board


def one_line(ended: Ended, status: int, code: str) -> str:
    assert (ended.status, ended.out) == (status, ""), ended
    assert ended.err.startswith(f"{code}: "), ended
    assert ended.err.count("\n") == 1, ended
    return ended.err


def test_0_for_what_was_done(board: Path) -> None:
    assert run(board, "task", "list").status == 0


def test_1_for_a_machine_with_faults(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(FAULTY)
    ended = run(tmp_path, "machine", "check", "bad.py")
    assert (ended.status, ended.err) == (1, "")
    assert "stuck" in ended.out
    assert "line 8" in ended.out


FAULTY = """\
from pointsman import Event, Machine, State


class Bad(Machine, name="bad"):
    version = 1

    start = State(initial=True)
    stuck = State()
    end = State(final=True)

    go = Event(start >> end)
"""


def test_1_for_a_history_that_was_altered(tmp_path: Path) -> None:
    run(tmp_path, "init")
    run(tmp_path, "task", "create", "--arg", "topic=Signals")
    db = sqlite3.connect(tmp_path / "pointsman.db")
    assert db.execute("UPDATE entries SET event = 'forged'").rowcount == 1
    db.commit()
    db.close()
    ended = run(tmp_path, "verify")
    assert ended.status == 1
    assert "NOT INTACT" in ended.out


def test_2_for_a_command_line_that_does_not_fit(board: Path) -> None:
    one_line(run(board, "task", "list", "--fly"), 2, "invalid")


def test_2_for_a_question_that_nobody_is_there_to_answer(board: Path) -> None:
    (board / "work.py").write_text((board / "work.py").read_text() + "\n# mine\n")
    assert "--yes" in one_line(run(board, "init"), 2, "invalid")
    assert (board / "work.py").read_text().endswith("# mine\n")


def test_3_for_a_refusal(board: Path) -> None:
    run(board, "task", "create", "--arg", "topic=Signals")
    id = run(board, "task", "list", "--json").data["tasks"][0]["id"]
    said = one_line(run(board, "task", "propose", id, "drop", "--as", "ann", "--expect-version", "99"), 3, "stale_version")
    assert "version 1" in said


def test_4_for_what_is_not_there(board: Path) -> None:
    one_line(run(board, "task", "show", NOBODY), 4, "unknown_task")
    one_line(run(board, "task", "create", "--machine", "nothing", "--arg", "topic=x"), 4, "unknown_machine")


def test_5_where_there_is_no_database(tmp_path: Path) -> None:
    said = one_line(run(tmp_path, "task", "list"), 5, "store_unavailable")
    assert str(tmp_path / "pointsman.db") in said
