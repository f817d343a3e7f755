"""`bench` finds the benchmark and ends as it ends; the benchmark itself is tried by `make bench`."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from edges.cli import Cli
from pointsman.cli import bench
from pointsman.config import find


@pytest.mark.parametrize("status", [0, 7])
def test_the_benchmark_is_run_and_its_status_passed_on(cli: Cli, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    ran: list[list[str]] = []
    monkeypatch.setenv("POINTSMAN_WORK", "mine.py")

    def run(command: list[str], *, cwd: str, env: dict[str, str], check: bool) -> Any:
        ran.append(command)
        assert find(Path(cwd)) is None, "the board of the folder it was started in is no part of it"
        assert "POINTSMAN_WORK" not in env
        place = Path(env["PYTHONPATH"].split(":")[0])
        assert (place / "bench" / "__main__.py").is_file()
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr(subprocess, "run", run)
    assert cli("bench", "--quick").status == status
    assert cli("bench", "--db", "postgresql://ann@host/work").status == status
    assert [command[3:] for command in ran] == [["--quick"], ["--db", "postgresql://ann@host/work"]]
    assert {tuple(command[1:3]) for command in ran} == {("-m", "bench")}


def test_an_installation_without_it_says_so(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bench, "PLACES", (tmp_path,))
    assert cli("bench").status == 2
