"""The command in an empty folder, with a database of the built-in machine."""

from pathlib import Path

import pytest

from edges.cli import SETTINGS, Cli, ended
from pointsman import Pointsman


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    for name in SETTINGS:
        monkeypatch.delenv(f"POINTSMAN_{name}", raising=False)
    Pointsman("sqlite:///pointsman.db").close()
    return lambda *argv: ended(capsys, *argv)


@pytest.fixture
def id(cli: Cli) -> str:
    return cli("task", "create", "--arg", "title=Release notes", "--arg", "brief=What changed", "--as", "ann", "--json").data["id"]
