"""The official MCP client, against real processes."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from edges.mcp_world import content
from pointsman import Pointsman

MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}
PATHS = os.pathsep.join(path for path in sys.path if path)


class Spoken:
    """A client under one name. `refused` are answers that must be refusals, `call` those that must not."""

    def __init__(self, client: Client):
        self.client = client

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        answer = content(result)
        assert not result.is_error, answer
        return answer

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error
        return content(result)


def command(*options: str, folder: Path) -> StdioServerParameters:
    environment = {"PYTHONPATH": PATHS, "PATH": os.environ["PATH"]}
    return StdioServerParameters(command=sys.executable, args=["-m", "pointsman", "mcp", *options], env=environment, cwd=folder)


@asynccontextmanager
async def over_stdio(*options: str, folder: Path, mode: str = "legacy") -> AsyncIterator[Spoken]:
    """A stdio process of its own. It makes no database, so one is there."""
    if not {"--db", "--url"} & set(options):
        Pointsman(f"sqlite:///{folder}/pointsman.db", []).close()
    async with Client(command(*options, folder=folder), mode=mode) as client:  # type: ignore[arg-type]
        yield Spoken(client)


@asynccontextmanager
async def over_http(url: str, name: str, mode: str = "legacy") -> AsyncIterator[Spoken]:
    async with (
        create_mcp_http_client(headers={"Pointsman-As": name}) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,  # type: ignore[arg-type]
    ):
        yield Spoken(client)
