"""The MCP inspector finds the tools' schemas portable, over stdio and HTTP, and can call them."""

import json
import subprocess
from pathlib import Path

import pytest

from acceptance.process import serving
from agents.installed import environment, program
from support import BRIEF

pytestmark = pytest.mark.agents
LIMIT_S = 60

TWO_MACHINES = """
from pointsman import Event, Machine, NonBlank, State, Tasks

class Batches(Machine, name="batches"):
    title: NonBlank
    rows: dict[str, list[int]] | None = None
    new = State(initial=True)
    over = State(final=True, outcome="failed")
    finish = Event(new >> over, sets="rows")

machines = [Tasks, Batches]
"""


def inspect(*arguments: str, folder: Path, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    command = [program("mcp-inspector"), "--cli", *arguments]
    return subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def test_schemas_are_portable(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(TWO_MACHINES)
    with serving(tmp_path) as served:
        env = environment(tmp_path, served)
        for target in (("pointsman", "mcp", "--as", "ann"), ("pointsman", "mcp", "work.py"), (f"{served.url}/mcp", "--transport", "http")):
            done = inspect(*target, "--method", "tools/list", "--strict", folder=tmp_path, env=env)
            assert done.returncode == 0, done.stderr
            assert "claim_task" in {tool["name"] for tool in json.loads(done.stdout)["tools"]}


def test_a_tool_can_be_called(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        target = (f"{served.url}/mcp", "--transport", "http", "--header", "Pointsman-As: ann", "--method", "tools/call")
        call = ("--tool-name", "create_task", "--tool-args-json", json.dumps({"title": "Release notes", "brief": BRIEF}))
        done = inspect(*target, *call, folder=tmp_path, env=environment(tmp_path, served))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["structuredContent"]["state"] == "queued"
