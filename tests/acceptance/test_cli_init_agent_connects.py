"""What `init --agent` writes for a client starts a server that the protocol's official client works with."""

import asyncio
import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from acceptance.cli import environment, run


def from_json(path: Path, member: str) -> Any:
    return json.loads(path.read_text())[member]["pointsman"]


def claude_code(folder: Path) -> list[str]:
    server = from_json(folder / ".mcp.json", "mcpServers")
    return [server["command"], *server["args"]]


def codex(folder: Path) -> list[str]:
    server = tomllib.loads((folder / ".codex" / "config.toml").read_text())["mcp_servers"]["pointsman"]
    return [server["command"], *server["args"]]


def opencode(folder: Path) -> list[str]:
    return from_json(folder / "opencode.json", "mcp")["command"]


@pytest.mark.parametrize("read", [claude_code, codex, opencode])
def test_the_command_written_for_a_client_hands_it_the_next_task(tmp_path: Path, read: Callable[[Path], list[str]]) -> None:
    agent, board = read.__name__.replace("_", "-"), tmp_path / "board"
    assert run(tmp_path, "init", "board", "--agent", agent, "--yes").status == 0
    task = run(board, "task", "create", "--arg", "topic=Steam engines", "--json").data
    command, *arguments = read(board)

    async def claim() -> Any:
        elsewhere = StdioServerParameters(command=command, args=arguments, env=environment(), cwd=tmp_path)
        async with Client(elsewhere) as client:
            return (await client.call_tool("claim_task", {})).structured_content

    claimed = asyncio.run(claim())
    assert (claimed["id"], claimed["owner"], claimed["state"]) == (task["id"], agent, "writing")
