"""P2, the part of kill -9: whatever a caller was told is in history, wherever a process dies, and others go on.

Every crash point and every statement is listed from the code. At each, processes on one shared file kill themselves;
acknowledgements are kept outside, and the file is audited with a fresh process.
"""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pointsman import Pointsman
from pointsman.store.connect import statement_names
from pointsman.store.sqlite import CRASH_POINTS, crash_points
from promises import tour

SIDE_BY_SIDE = 3
ON_A_NEW_FILE = tuple(point for point in CRASH_POINTS if point.startswith("migration"))
ON_A_SHARED_FILE = tuple(point for point in crash_points(statement_names()) if point not in ON_A_NEW_FILE)


def _tour(url: str, crash_point: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tour.__file__, url, crash_point], capture_output=True, text=True, check=False, timeout=180)


def _whole_lines(said: str) -> list[str]:
    """A process may be killed in the middle of a word."""
    return [line.strip() for line in said.splitlines(keepends=True) if line.endswith("\n")]


def _audit(url: str, acknowledged: list[str]) -> None:
    """Everything acknowledged stands in history at its version and state; chains and rows agree; SQLite is content."""
    with Pointsman(url, create=False) as pm:
        report = pm.verify()
        assert report.ok, report.faults[:3]
        assert pm.check() == []
        for line in acknowledged:
            task, version, state = line.split()
            assert pm.get(task, version=int(version)).state == state


def test_a_process_that_is_left_alone_uses_every_statement(tmp_path: Path) -> None:
    """The control: without a crash the tour ends well, so a death below is the crash point's doing."""
    url = f"sqlite:///{tmp_path}/work.db"
    done = _tour(url, "")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 10
    _audit(url, done.stdout.splitlines())


def test_kill_9_at_every_crash_point_loses_nothing_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    Pointsman(url).close()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        ended = list(pool.map(lambda point: _tour(url, point), ON_A_SHARED_FILE))
    alive = {point: died.stderr[-300:] for point, died in zip(ON_A_SHARED_FILE, ended, strict=True) if died.returncode != -signal.SIGKILL}
    assert alive == {}, "a crash point was never hit"
    acknowledged = [line for died in ended for line in _whole_lines(died.stdout)]
    assert len(acknowledged) > len(ON_A_SHARED_FILE)
    _audit(url, acknowledged)


@pytest.mark.parametrize("point", ON_A_NEW_FILE)
def test_kill_9_while_a_database_is_made_leaves_one_that_can_be_made(tmp_path: Path, point: str) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    assert _tour(url, point).returncode == -signal.SIGKILL
    done = _tour(url, "")
    assert (done.returncode, done.stderr) == (0, "")
    _audit(url, done.stdout.splitlines())


def _killed_after(url: str, lines: int) -> list[str]:
    """Let a process go on until it has acknowledged so much, then kill it; all that it said."""
    with subprocess.Popen([sys.executable, tour.__file__, url, ""], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        read = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        return _whole_lines("".join((*read, *process.stdout)))


def test_kill_9_at_any_other_moment_loses_nothing_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/work.db"
    Pointsman(url).close()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        said = pool.map(lambda lines: _killed_after(url, lines), [number % 11 + 1 for number in range(22)])
    acknowledged = [line for lines in said for line in lines]
    assert len(acknowledged) >= 100
    _audit(url, acknowledged)
