"""A stdio server that passes every call on to the `/mcp` of a running server, under one name."""

from typing import Any

import anyio
import mcp_types as sdk
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from pointsman.mcp.server import Context, built
from pointsman.mcp.stdio import Wire, run


def serve(url: str, name: str | None, wire: Wire) -> None:
    anyio.run(_serve, url, name, wire)


async def _serve(url: str, name: str | None, wire: Wire) -> None:
    headers = {"Pointsman-As": name} if name is not None else {}
    async with create_mcp_http_client(headers=headers) as http, Client(streamable_http_client(_endpoint(url), http_client=http)) as client:
        await run(_passing_on(client), wire)


def _endpoint(url: str) -> str:
    base = url.rstrip("/")
    return base if base.endswith("/mcp") else f"{base}/mcp"


def _passing_on(client: Client) -> Any:
    async def list_tools(context: Context, params: sdk.PaginatedRequestParams | None) -> sdk.ListToolsResult:
        return await client.list_tools()

    async def call_tool(context: Context, params: sdk.CallToolRequestParams) -> sdk.CallToolResult:
        return await client.call_tool(params.name, params.arguments)

    return built(client.instructions, list_tools, call_tool)
