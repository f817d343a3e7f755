"""A call of a tool whose arguments are read, and the board it is made on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

from pointsman.engine.pointsman import Aio
from pointsman.engine.record import Chance
from pointsman.engine.views import task_json
from pointsman.errors import invalid
from pointsman.kernel import ingest, schema
from pointsman.kernel.definition import Definition
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.mcp.fit import Content
from pointsman.mcp.seat import Seat
from pointsman.mcp.tools import Tool

CLAIM = "claim_task"


@dataclass(frozen=True, slots=True)
class Board:
    """The verbs, the served machines, and the tool of each event by (machine, event)."""

    aio: Aio
    machines: Mapping[str, Definition]
    called: Mapping[tuple[str, str], str]
    chance: Chance

    def tools(self, machines: Sequence[str], events: Sequence[str]) -> list[str]:
        """The tools of events. Those that acquire share one."""
        found = [self._tool(machine, event) for machine in machines for event in events]
        return list(dict.fromkeys(tool for tool in found if tool))

    def _tool(self, machine: str, event: str) -> str | None:
        served = self.machines.get(machine)
        known = served is not None and event in served.event
        return self.called.get((machine, event), CLAIM) if known else None

    def task(self, task: Task) -> Content:
        tools = self.tools([task.machine], task.allowed)
        return {**task_json(task), "tools": tools, "untrusted": ["fields", "evidence"]}

    def seen(self, task: Task, by: Principal) -> Content:
        """A task that a verb answered, with what is open in it to the caller."""
        machine = self.machines.get(task.machine)
        return self.task(replace(task, allowed=allowed(machine, task, by)) if machine else task)


@dataclass(frozen=True, slots=True)
class Asked:
    """A call whose arguments are read: null ones are absent."""

    board: Board
    tool: Tool
    args: Mapping[str, Any]
    by: Principal | None
    seat: Seat
    at: float = field(default_factory=monotonic)

    @property
    def who(self) -> Principal:
        if self.by is None:
            raise invalid(("as", "say who you are"))
        return self.by

    @property
    def fields(self) -> dict[str, Any]:
        return {field: self.args[argument] for argument, field in self.tool.sets.items() if argument in self.args}

    def epoch(self, task: str) -> int | None:
        """The one given, else the one under which this connection acquired the task."""
        held = self.seat.held.epochs.get((self.who.name, task.lower())) if self.seat.held else None
        return self.args.get("epoch", held)

    @property
    def session(self) -> str | None:
        return self.args.get("session", self.seat.session)

    def moved(self, task: Task, *, acquired: bool = False, lease_s: float | None = None) -> Content:
        """A task as an accepted call left it, which may have asked for a lease of its own length."""
        if self.seat.held:
            self.seat.held.note(task, self.who, self.at, acquired=acquired, lease_s=lease_s)
        return self.board.seen(task, self.who)


def read(tool: Tool, arguments: Any) -> dict[str, Any]:
    """Arguments against the tool's schema: every fault with its path, no input echoed."""
    sent = {} if arguments is None else arguments
    if not isinstance(sent, dict):
        raise invalid(("arguments", "must be an object"))
    if found := ingest.faults(sent) or schema.faults(tool.input, sent, ""):
        raise invalid(*found)
    return {name: value for name, value in sent.items() if value is not None}
