"""The listings of docs/mcp.md for clients that a test cannot run connect the official client as they stand."""

import asyncio
import json
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from acceptance.process import Served
from agents.installed import environment, listing


def server(name: str, served: Served) -> dict[str, object]:
    return json.loads(listing(name, served))["mcpServers"]["pointsman"]


def test_over_stdio(served: Served, tmp_path: Path) -> None:
    env = environment(tmp_path, served)
    given = server("claude-stdio", served)
    command = f"{tmp_path}/programs/{given['command']}"
    parameters = StdioServerParameters(command=command, args=given["args"], env=env, cwd=tmp_path)  # type: ignore[arg-type]

    async def run() -> None:
        async with Client(parameters) as client:
            assert "claim_task" in {tool.name for tool in (await client.list_tools()).tools}

    asyncio.run(run())


def test_over_http(served: Served) -> None:
    given = server("claude-http", served)

    async def run() -> None:
        async with (
            create_mcp_http_client(headers=given["headers"]) as http,  # type: ignore[arg-type]
            Client(streamable_http_client(str(given["url"]), http_client=http)) as client,
        ):
            tools = (await client.list_tools()).tools
            assert all("as" not in tool.input_schema["properties"] for tool in tools)

    asyncio.run(run())
