"""MCP over standard input and output. The SDK keeps the wire on descriptors of its own, so that what a guard or a check
prints goes to standard error."""

from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from pointsman.engine.pointsman import Pointsman
from pointsman.mcp.desk import Desk
from pointsman.mcp.seat import Held, Seat
from pointsman.mcp.server import server


def serve(pm: Pointsman, name: str | None) -> None:
    """Serve one client until it closes the connection. With `name`, that is who calls; else each call says so."""
    seat = Seat(() if name is None else (name,), "embedded", Held())
    anyio.run(run, server(Desk(pm, holds=True), lambda _: seat))


async def run(made: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await made.run(incoming, outgoing, made.create_initialization_options())
