"""The MCP floor: one tool that does nothing, on the same SDK's server and settings. `noop_tool PORT` serves HTTP, without a
port standard input and output."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import mcp_types as sdk
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Context = ServerRequestContext[object, object]


async def list_tools(context: Context, params: sdk.PaginatedRequestParams | None) -> sdk.ListToolsResult:
    return sdk.ListToolsResult(tools=[sdk.Tool(name="nothing", description="Does nothing.", input_schema={"type": "object"})])


async def call_tool(context: Context, params: sdk.CallToolRequestParams) -> sdk.CallToolResult:
    return sdk.CallToolResult(content=[sdk.TextContent(type="text", text="{}")], structured_content={})


server: "Server[object]" = Server("nothing", on_list_tools=list_tools, on_call_tool=call_tool)


async def healthz(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


def http(port: int) -> None:
    manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    class Endpoint:
        """An ASGI application by itself, which is what a route takes when it is no function."""

        __call__ = staticmethod(manager.handle_request)

    app = Starlette(routes=[Route("/mcp", Endpoint(), methods=["POST"]), Route("/healthz", healthz)], lifespan=running)
    uvicorn.run(app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning")


async def stdio() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    if len(sys.argv) > 1:
        http(int(sys.argv[1]))
    else:
        anyio.run(stdio)
