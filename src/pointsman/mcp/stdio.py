"""MCP over standard input and output, which belong to the protocol from the first moment of the process to its end."""

import json
import os
import select
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from pointsman.engine.pointsman import Pointsman
from pointsman.kernel.rules import Principal
from pointsman.mcp.desk import DOOR, Desk
from pointsman.mcp.message import unread
from pointsman.mcp.seat import Held, Seat
from pointsman.mcp.server import server
from pointsman.worker.keeper import Keeper
from pointsman.worker.leaving import give_back

CLOSING_MS = 200


@dataclass(frozen=True, slots=True)
class Wire:
    """The descriptors that the client reads and writes, under numbers that nothing else in the process knows."""

    incoming: int
    outgoing: int


def take_wire() -> Wire:
    """From here on whatever is printed, by a work file, a check or a child, goes to standard error, and who reads
    standard input finds it empty. Ctrl-C ends the process at once: nothing wakes a thread that reads a pipe."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    wire = Wire(os.dup(0), os.dup(1))
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return wire


def serve(pm: Pointsman, name: str | None, wire: Wire) -> None:
    """Serve one client until it closes the connection. With `name`, that is who calls; else each call says so. What the
    client acquired is kept for it meanwhile, and given back at the end; a client that died leaves it to its lease."""
    through = pm.through(DOOR)
    keeper = Keeper(through)
    seat = Seat(() if name is None else (name,), "embedded", Held(keeper))
    reader = os.dup(wire.outgoing)
    keeper.start()
    anyio.run(run, server(Desk(pm, holds=True), lambda _: seat), wire)
    keeper.stop()
    if listens(reader):
        give_back_all(through, seat)


def listens(outgoing: int) -> bool:
    """Whether anybody can still read what we write. A client that ends the connection closes our input and waits for us;
    one that was killed has closed both, though perhaps a moment apart."""
    waiting = select.poll()
    waiting.register(outgoing, 0)
    return not waiting.poll(CLOSING_MS)


def give_back_all(pm: Pointsman, seat: Seat) -> None:
    """At the end of a connection, release what it still holds; the attempts are not counted."""
    for (name, id), epoch in (seat.held.epochs if seat.held else {}).items():
        give_back(pm, id, epoch, Principal(name, auth=seat.auth), "the connection ended", counts=False)


async def run(made: Server[Any], wire: Wire) -> None:
    lines = anyio.wrap_file(TextIOWrapper(os.fdopen(wire.incoming, "rb"), encoding="utf-8", errors="replace"))
    answers = anyio.wrap_file(TextIOWrapper(os.fdopen(wire.outgoing, "wb"), encoding="utf-8"))
    async with stdio_server(Sifted(lines, answers), answers) as (incoming, outgoing):  # type: ignore[arg-type]
        await made.run(incoming, outgoing, made.create_initialization_options())


class Sifted:
    """The lines that the SDK may read; the others are answered at once."""

    def __init__(self, lines: "anyio.AsyncFile[str]", answers: "anyio.AsyncFile[str]"):
        self.lines = lines
        self.answers = answers

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self.lines:
            answer = unread(line.encode()) if line.strip() else None
            if answer is None:
                yield line
            else:
                await self.answers.write(json.dumps(answer) + "\n")
                await self.answers.flush()
