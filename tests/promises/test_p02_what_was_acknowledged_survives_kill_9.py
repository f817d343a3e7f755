"""P2, the part of kill -9: whatever a caller was told is in history, wherever a process dies, and others go on.

Every crash point and every statement is listed from the code. At each, processes on one shared database kill themselves;
acknowledgements are kept outside, and the database is audited with a fresh process. On PostgreSQL, where every kill costs
a server process too, statements that only read are left to the long run.
"""

import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from databases import STORES
from pointsman import Pointsman
from pointsman.store import migrate, postgres, sqlite, statements
from pointsman.store.connect import SQL, statement_names
from promises import tour

SIDE_BY_SIDE = 3
WRITING = [name for name, statement in statements.load(SQL).items() if not statement.sql.lstrip().startswith("SELECT")]


def _points(url: str, names: Sequence[str]) -> list[str]:
    """Where a process may die on a database that is there already."""
    kind = sqlite if url.startswith("sqlite") else postgres
    return [point for point in kind.crash_points(names) if not point.startswith("migration")]


def _tour(url: str, crash_point: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, tour.__file__, url, crash_point], capture_output=True, text=True, check=False, timeout=180)


def _whole_lines(said: str) -> list[str]:
    """A process may be killed in the middle of a word."""
    return [line.strip() for line in said.splitlines(keepends=True) if line.endswith("\n")]


def _audit(url: str, acknowledged: list[str]) -> None:
    """Everything acknowledged stands in history at its version and state; chains and rows agree; the store is content."""
    with Pointsman(url, create=False) as pm:
        report = pm.verify()
        assert report.ok, report.faults[:3]
        assert pm.check() == []
        for line in acknowledged:
            task, version, state = line.split()
            assert pm.get(task, version=int(version)).state == state


def test_a_process_that_is_left_alone_ends_well(url: str) -> None:
    """The control: without a crash the tour ends well, so a death below is the crash point's doing."""
    done = _tour(url, "")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) >= 10
    _audit(url, done.stdout.splitlines())


def _killed_at_each(url: str, points: Sequence[str]) -> None:
    Pointsman(url).close()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        ended = list(pool.map(lambda point: _tour(url, point), points))
    alive = {point: died.stderr[-300:] for point, died in zip(points, ended, strict=True) if died.returncode != -signal.SIGKILL}
    assert alive == {}, "a crash point was never hit"
    acknowledged = [line for died in ended for line in _whole_lines(died.stdout)]
    assert len(acknowledged) > len(points)
    _audit(url, acknowledged)


def test_kill_9_at_every_crash_point_loses_nothing_acknowledged(url: str) -> None:
    _killed_at_each(url, _points(url, statement_names() if url.startswith("sqlite") else WRITING))


@pytest.mark.long
def test_kill_9_at_every_statement_that_reads_loses_nothing_acknowledged(request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres").empty()
    _killed_at_each(url, _points(url, [name for name in statement_names() if name not in WRITING]))


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("point", migrate.POINTS)
def test_kill_9_while_a_database_is_made_leaves_one_that_can_be_made(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, point: str
) -> None:
    url = f"sqlite:///{tmp_path}/work.db" if kind == "sqlite" else request.getfixturevalue("postgres").create()
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


def test_kill_9_at_any_other_moment_loses_nothing_acknowledged(url: str) -> None:
    Pointsman(url).close()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        said = pool.map(lambda lines: _killed_after(url, lines), [number % 11 + 1 for number in range(22)])
    acknowledged = [line for lines in said for line in lines]
    assert len(acknowledged) >= 100
    _audit(url, acknowledged)
