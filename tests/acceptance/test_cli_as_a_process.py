"""What only a process shows: pipes that close, streams that are not UTF-8, prompts on a terminal, what is loaded at start."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from acceptance.cli import COMMAND, PATIENCE_SECONDS, environment, run

LATE = ("fastapi", "uvicorn", "starlette", "rich", "http.server")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    board = tmp_path_factory.mktemp("board")
    run(board, "init")
    run(board, "task", "create", "--arg", "topic=Züge in 東京")
    return board


def test_a_reader_that_leaves_early_is_no_error_to_shout_about(board: Path) -> None:
    ours, theirs = os.pipe()
    process = subprocess.Popen([*COMMAND, "task", "history"], cwd=board, env=environment(), stdout=theirs, stderr=subprocess.PIPE)
    os.close(ours)
    os.close(theirs)
    assert process.communicate(timeout=PATIENCE_SECONDS)[1] == b""
    assert process.returncode == 1


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_is_not_utf8_shows_escapes(board: Path, encoding: str) -> None:
    env = environment({"PYTHONIOENCODING": encoding})
    done = subprocess.run([*COMMAND, "task", "list"], cwd=board, env=env, capture_output=True, timeout=PATIENCE_SECONDS, check=True)
    assert done.stderr == b""
    assert b"\\u6771\\u4eac" in done.stdout


def test_help_loads_neither_the_server_nor_the_painter(board: Path) -> None:
    timed = [sys.executable, "-X", "importtime", *COMMAND[1:], "--help"]
    listed = subprocess.run(timed, cwd=board, env=environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in listed.stderr.splitlines()}
    assert "pointsman.cli.root" in loaded
    assert [name for name in LATE if name in loaded] == []


CLOSED = {"0": ["machine", "publish"], "1": ["task", "list", "--json"], "2": ["task", "list"], "0 1 2": ["task", "list"]}


@pytest.mark.parametrize("numbers", CLOSED)
def test_a_closed_stream_stands_for_nothing(board: Path, numbers: str) -> None:
    """Nor does a file of ours get the number of one, and what is printed with it."""
    closing = "; ".join(["import os, sys", *(f"os.close({number})" for number in numbers.split()), "os.execv(sys.argv[1], sys.argv[1:])"])
    command = [sys.executable, "-c", closing, *COMMAND, *CLOSED[numbers]]
    done = subprocess.run(command, cwd=board, env=environment(), capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert run(board, "db", "check").status == 0


def test_both_spellings_of_the_command_are_one(board: Path) -> None:
    from importlib.metadata import entry_points

    from pointsman.cli import main

    (script,) = entry_points(group="console_scripts", name="pointsman")
    assert script.load() is main
    assert run(board, "--help").out.startswith("Usage: pointsman ")


def on_a_terminal(folder: Path, answer: bytes, *argv: str) -> tuple[int, bytes]:
    """Exit status, and what was asked before `answer` was given."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*COMMAND, *argv], cwd=folder, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    asked = b""
    while b"[y/N]" not in asked:
        asked += os.read(ours, 4096)
    os.write(ours, answer)
    status = process.wait(PATIENCE_SECONDS)
    os.close(ours)
    return status, asked


@pytest.mark.parametrize(("answer", "kept", "status"), [(b"n\n", True, 1), (b"y\n", False, 0)])
def test_on_a_terminal_init_asks_before_it_overwrites(tmp_path: Path, answer: bytes, kept: bool, status: int) -> None:
    (tmp_path / "work.py").write_text("# mine\n")
    ended, asked = on_a_terminal(tmp_path, answer, "init")
    assert (ended, b"work.py" in asked) == (status, True)
    assert ((tmp_path / "work.py").read_text() == "# mine\n") is kept


@pytest.mark.parametrize(("answer", "written", "status"), [(b"n\n", False, 1), (b"y\n", True, 0)])
def test_on_a_terminal_init_shows_what_it_would_tell_an_agent_and_asks(tmp_path: Path, answer: bytes, written: bool, status: int) -> None:
    ended, asked = on_a_terminal(tmp_path, answer, "init", "--agent", "opencode")
    assert (ended, b'"command": [' in asked) == (status, True)
    assert (tmp_path / "opencode.json").exists() is written


@pytest.mark.parametrize(("answer", "kept", "status"), [(b"n\n", True, 1), (b"y\n", False, 0)])
def test_on_a_terminal_a_backup_asks_before_it_replaces(board: Path, answer: bytes, kept: bool, status: int) -> None:
    (board / "copy.db").write_text("mine")
    ended, asked = on_a_terminal(board, answer, "db", "backup", "copy.db")
    assert (ended, b"Overwrite" in asked) == (status, True)
    assert ((board / "copy.db").read_bytes() == b"mine") is kept
