"""Where `make agents` puts the agents, and the listings of docs/mcp.md made ready for a server of a test."""

import os
import re
import sys
from pathlib import Path

import pytest

from acceptance.process import Served
from house import listings
from house.source import ROOT

FOLDER = Path(os.environ.get("POINTSMAN_AGENTS", ROOT / ".venv" / "agents"))
PAGE = ROOT / "docs" / "mcp.md"


def program(name: str) -> str:
    found = FOLDER / "node_modules" / ".bin" / name
    if not found.exists():
        pytest.fail(f"{name} is not installed; run: make agents")
    return str(found)


def environment(home: Path, served: Served) -> dict[str, str]:
    """A home of its own for the agent, whose settings name the test's database, and `pointsman` on its path. Agents
    pass few variables on, so the program brings its own."""
    source = ":".join(path for path in sys.path if path)
    programs = home / "programs"
    programs.mkdir()
    (programs / "pointsman").write_text(f'#!/bin/sh\nPYTHONPATH="{source}" exec "{sys.executable}" -m pointsman "$@"\n')
    (programs / "pointsman").chmod(0o755)
    (home / "pointsman.toml").write_text(f'db = "{served.db}"\n')
    return {"PATH": f"{programs}:{FOLDER / 'bin'}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8"}


def listing(name: str, served: Served) -> str:
    """A listing as it stands, on the test's port."""
    (found,) = [item.text for item in listings.listings(PAGE) if re.fullmatch(rf"{name}\.\w+", item.word)]
    return found.replace("8470", str(served.port))
