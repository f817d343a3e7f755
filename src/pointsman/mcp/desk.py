"""Where calls of tools come in: which tools there are for whom, and each call's answer."""

from dataclasses import dataclass
from typing import Any

from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import Refusal, Refused
from pointsman.mcp import words
from pointsman.mcp.asked import Asked, Board, read
from pointsman.mcp.fit import Content, fit
from pointsman.mcp.seat import Seat
from pointsman.mcp.tools import Seating, Tool, names, toolbox
from pointsman.mcp.verbs import VERBS

DOOR = Door("mcp")


class UnknownTool(Exception):
    """No tool has this name."""


@dataclass(frozen=True, slots=True)
class Answer:
    content: Content
    refused: bool = False


class Desk:
    """Answers calls on one engine. `holds` says that its connections remember what they acquired."""

    def __init__(self, pm: Pointsman, *, holds: bool):
        machines = dict(pm.machines)
        self.board = Board(pm.through(DOOR).aio, machines, names(machines), pm.engine.chance)
        self.holds = holds
        self.toolbox = {named: toolbox(machines, Seating(named, holds)) for named in (True, False)}

    @property
    def instructions(self) -> str:
        return words.instructions(self.board.machines, self.board.called, holds=self.holds)

    def tools(self, seat: Seat) -> list[Tool]:
        """What the caller's roles can use; all of it where the connection does not say who calls."""
        try:
            by = seat.principal({})
        except Refused:
            by = None
        return [tool for tool in self.toolbox[seat.named].values() if tool.admits(by)]

    async def call(self, name: str, arguments: Any, seat: Seat) -> Answer:
        tool = self.toolbox[seat.named].get(name)
        if tool is None:
            raise UnknownTool
        try:
            args = read(tool, arguments)
            asked = Asked(self.board, tool, args, seat.principal(args), seat)
            return Answer(fit(await VERBS[tool.verb](asked)))
        except Refused as no:
            return self._refused(no.refusal, tool)

    def _refused(self, no: Refusal, tool: Tool) -> Answer:
        """A check that still runs is no refusal yet: the proposal stands and will be decided."""
        machines = [tool.machine] if tool.machine else list(self.board.machines)
        content = no.as_json() | {"tools": self.board.tools(machines, no.allowed)}
        if no.failed:
            content["untrusted"] = ["failed", "detail"]
        pending = no.code == "evidence_pending" and "proposal" in no.extra
        return Answer(fit({"pending": True, **content} if pending else content), refused=not pending)
