"""A command in a process group of its own: told when it ends, and nothing of it lives on."""

import os
import signal
import sys
from pathlib import Path
from threading import Event

import pytest

from pointsman.worker.command import Command, End

PATIENCE_S = 20


def started(script: str, *, stdout: int | None = None, **env: str) -> tuple[Command, Event]:
    ended = Event()
    return Command(["sh", "-c", script], {"PATH": os.environ["PATH"], **env}, ended.set, stdout), ended


@pytest.mark.parametrize(
    ("script", "end", "said"),
    [
        ("exit 0", End(0, None), "ended with status 0"),
        ("exit 7", End(7, None), "ended with status 7"),
        ("kill -9 $$", End(None, "SIGKILL"), "was ended by SIGKILL"),
        (f"kill -{signal.SIGRTMIN + 1} $$", End(None, f"signal {signal.SIGRTMIN + 1}"), f"was ended by signal {signal.SIGRTMIN + 1}"),
    ],
)
def test_how_it_ended(script: str, end: End, said: str) -> None:
    command, ended = started(script)
    assert ended.wait(PATIENCE_S)
    assert command.end() == end
    assert (str(end), end.well) == (said, end == End(0, None))


def test_it_has_an_environment_and_a_group_of_its_own_and_nothing_to_read(tmp_path: Path) -> None:
    command, ended = started(f"echo $WORD $(wc -c) $(ps -o pgid= -p $$) $$ >{tmp_path}/said", WORD="here")
    assert ended.wait(PATIENCE_S)
    assert command.end().well
    word, read, group, number = (tmp_path / "said").read_text().split()
    assert (word, read, group) == ("here", "0", number)
    assert int(group) != os.getpgid(0)


def test_what_it_prints_can_go_elsewhere(capfd: pytest.CaptureFixture[str]) -> None:
    command, ended = started("echo said", stdout=2)
    assert ended.wait(PATIENCE_S)
    command.end()
    assert capfd.readouterr() == ("", "said\n")


def test_what_it_left_behind_is_killed() -> None:
    """The grandchild holds the write end of a pipe for as long as it lives."""
    reading, writing = os.pipe()
    command, ended = started("sleep 600 & exit 3", stdout=writing)
    os.close(writing)
    assert ended.wait(PATIENCE_S)
    assert command.end() == End(3, None)
    assert os.read(reading, 1) == b""
    os.close(reading)


def test_a_signal_reaches_all_of_it() -> None:
    reading, writing = os.pipe()
    command, ended = started("sleep 600 & echo begun; wait", stdout=writing)
    os.close(writing)
    assert os.read(reading, 6) == b"begun\n"
    command.send(signal.SIGTERM)
    assert ended.wait(PATIENCE_S)
    assert command.end() == End(None, "SIGTERM")
    assert os.read(reading, 1) == b""
    os.close(reading)
    command.send(signal.SIGTERM)  # nobody is there any more


def test_what_cannot_be_started_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        Command([f"{sys.executable}-not-there"], {}, lambda: None)
