"""The official SDK's low-level server over a `Desk`: one server for every revision that clients negotiate."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import mcp_types as sdk
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from pointsman.mcp.desk import Answer, Desk, UnknownTool
from pointsman.mcp.fit import encode
from pointsman.mcp.seat import Seat
from pointsman.mcp.tools import Tool

Context = ServerRequestContext[Any, Any]
NAME = "pointsman"
NOT_AN_OBJECT = {"(not an object)": True}


def server(desk: Desk, seat: Callable[[Context], Seat]) -> Server[Any]:
    """`seat` tells from a request's context where it comes from."""

    async def list_tools(context: Context, params: sdk.PaginatedRequestParams | None) -> sdk.ListToolsResult:
        return sdk.ListToolsResult(tools=[spoken(tool) for tool in desk.tools(seat(context))])

    async def call_tool(context: Context, params: sdk.CallToolRequestParams) -> sdk.CallToolResult:
        try:
            return result(await desk.call(params.name, params.arguments, seat(context)))
        except UnknownTool:
            raise MCPError(code=sdk.INVALID_PARAMS, message="no tool has this name; tools/list names them") from None

    return built(desk.instructions, list_tools, call_tool)


def built(
    instructions: str | None,
    list_tools: Callable[[Context, sdk.PaginatedRequestParams | None], Awaitable[sdk.ListToolsResult]],
    call_tool: Callable[[Context, sdk.CallToolRequestParams], Awaitable[sdk.CallToolResult]],
) -> Server[Any]:
    made: Server[Any] = Server(
        NAME,
        version=version("pointsman"),
        title="Pointsman",
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    made.middleware.append(_as_object)
    return made


async def _as_object(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Arguments that are no object are a fault of the tool's arguments, told as such, and not of the protocol."""
    params = ctx.params
    if ctx.method == "tools/call" and params and not isinstance(params.get("arguments"), dict | None):
        ctx = replace(ctx, params={**params, "arguments": NOT_AN_OBJECT})
    return await call_next(ctx)


def spoken(tool: Tool) -> sdk.Tool:
    """Every hint is set: clients that never ask call a tool only if it says that it is harmless."""
    hints = sdk.ToolAnnotations(
        read_only_hint=tool.reads, destructive_hint=False, idempotent_hint=tool.reads or tool.repeatable, open_world_hint=False
    )
    return sdk.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.input),
        output_schema=dict(tool.output),
        annotations=hints,
    )


def result(answer: Answer) -> sdk.CallToolResult:
    """The same JSON as structured content and as text: some clients read only the one, some only the other."""
    text = sdk.TextContent(type="text", text=encode(answer.content))
    return sdk.CallToolResult(content=[text], structured_content=answer.content, is_error=answer.refused)
