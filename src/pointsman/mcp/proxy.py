"""A stdio server that passes every call on to the `/mcp` of a running server, under one name."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import anyio
import httpx2
import mcp_types as sdk
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPError

from pointsman.errors import StoreError
from pointsman.mcp.desk import Answer
from pointsman.mcp.server import Context, built, result
from pointsman.mcp.stdio import Wire, run

Said = TypeVar("Said")
REVISION = "2026-07-28"
CALL_SECONDS = 90.0


def serve(url: str, name: str | None, wire: Wire) -> None:
    """Serve one client. A server that is not there at the start is StoreError; one that goes away is told call by call."""
    anyio.run(_serve, Upstream(_endpoint(url), {} if name is None else {"Pointsman-As": name}), wire)


async def _serve(upstream: "Upstream", wire: Wire) -> None:
    await run(built(await upstream.instructions(), upstream.list_tools, upstream.call_tool), wire)


def _endpoint(url: str) -> str:
    base = url.rstrip("/")
    return base if base.endswith("/mcp") else f"{base}/mcp"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server that is asked anew for each call, so that it may be restarted between them."""

    url: str
    headers: Mapping[str, str]

    async def instructions(self) -> str | None:
        async def read(client: Client) -> str | None:
            return client.instructions

        return await self._ask(read, "auto")

    async def list_tools(self, context: Context, params: sdk.PaginatedRequestParams | None) -> sdk.ListToolsResult:
        return await self._ask(lambda client: client.list_tools())

    async def call_tool(self, context: Context, params: sdk.CallToolRequestParams) -> sdk.CallToolResult:
        try:
            return await self._ask(lambda client: client.call_tool(params.name, params.arguments))
        except StoreError as no:
            return result(Answer(no.refusal.as_json(), refused=True))

    async def _ask(self, use: Callable[[Client], Awaitable[Said]], mode: Literal["auto", "2026-07-28"] = REVISION) -> Said:
        """One connection, one question. What the server says is wrong with the question is passed on as it is."""
        try:
            async with create_mcp_http_client(headers=dict(self.headers)) as http:
                transport = streamable_http_client(self.url, http_client=http)
                async with Client(transport, mode=mode, read_timeout_seconds=CALL_SECONDS) as client:
                    said = await _said(client, use)
        except (ExceptionGroup, httpx2.HTTPError, httpx2.InvalidURL, MCPError) as lost:
            raise self._gone() from lost
        if isinstance(said, MCPError):
            raise said if said.error.code == sdk.INVALID_PARAMS else self._gone()
        return said

    def _gone(self) -> StoreError:
        return StoreError("store_unavailable", f"no Pointsman server answers at {self.url}", "unknown")


async def _said(client: Client, use: Callable[[Client], Awaitable[Said]]) -> Said | MCPError:
    """An error as a value: raised inside the connection, it would come out in a group."""
    try:
        return await use(client)
    except MCPError as fault:
        return fault
