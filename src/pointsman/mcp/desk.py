"""One call of a tool: read its arguments, call one verb of the engine, answer in JSON."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.views import task_json
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel import ingest, schema
from pointsman.kernel.chain import digest
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.mcp import words
from pointsman.mcp.fit import LIMIT, Content, as_text, fit, part, short, size
from pointsman.mcp.seat import Seat
from pointsman.mcp.tools import LARGEST_PAGE, PAGE, WAIT_S, Seating, Tool, names, toolbox

DOOR = Door("mcp")
SUBMIT_WAIT_S = 25.0
_GUIDE_ROOM = 200
_IN_LISTS = (200, 20)


class UnknownTool(Exception):
    """No tool has this name."""


@dataclass(frozen=True, slots=True)
class Answer:
    content: Content
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A call whose arguments are read: null ones are absent."""

    tool: Tool
    args: Mapping[str, Any]
    by: Principal | None
    seat: Seat

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


class Desk:
    """Answers calls on one engine. `holds` says that its connections remember what they acquired."""

    def __init__(self, pm: Pointsman, *, holds: bool):
        self.aio = pm.through(DOOR).aio
        self.machines = dict(pm.machines)
        self.called = names(self.machines)
        self.holds = holds
        self.chance = pm.engine.chance
        self.toolbox = lru_cache(maxsize=2)(lambda named: toolbox(self.machines, Seating(named, holds)))

    @property
    def instructions(self) -> str:
        return words.instructions(self.machines, self.called, holds=self.holds)

    def tools(self, seat: Seat) -> list[Tool]:
        """What the caller's roles can use; all of it where the connection does not say who calls."""
        try:
            by = seat.principal({})
        except Refused:
            by = None
        return [tool for tool in self.toolbox(seat.named).values() if tool.admits(by)]

    async def call(self, name: str, arguments: Any, seat: Seat) -> Answer:
        tool = self.toolbox(seat.named).get(name)
        if tool is None:
            raise UnknownTool
        try:
            args = read(tool, arguments)
            asked = Asked(tool, args, seat.principal(args), seat)
            return Answer(fit(await VERBS[tool.verb](self, asked)))
        except Refused as no:
            return self._refused(no.refusal, tool)

    def _refused(self, no: Refusal, tool: Tool) -> Answer:
        """A check that still runs is no refusal yet: the proposal stands and will be decided."""
        content = no.as_json() | {"tools": self._tools_of(tool.machine, no.allowed)}
        if no.failed:
            content["untrusted"] = ["failed", "detail"]
        pending = no.code == "evidence_pending" and "proposal" in no.extra
        return Answer(fit({"pending": True, **content} if pending else content), refused=not pending)

    def _tools_of(self, machine: str | None, events: Any) -> list[str]:
        served = [machine] if machine else list(self.machines)
        found = (self.called.get((name, event)) for name in served for event in events)
        return list(dict.fromkeys(tool for tool in found if tool))

    def task(self, task: Task) -> Content:
        tools = self._tools_of(task.machine, task.allowed)
        return {**task_json(task), "tools": tools, "untrusted": ["fields", "evidence"]}

    def moved(self, asked: Asked, task: Task, *, acquired: bool = False) -> Content:
        """A task as an accepted call left it, with what was then open to the caller."""
        if asked.seat.held:
            asked.seat.held.note(task, asked.who, acquired=acquired)
        return self.seen(asked, task)

    def seen(self, asked: Asked, task: Task) -> Content:
        return self.task(replace(task, allowed=allowed(self.machines[task.machine], task, asked.who)))


def read(tool: Tool, arguments: Any) -> dict[str, Any]:
    """Arguments against the tool's schema: every fault with its path, no input echoed."""
    sent = {} if arguments is None else arguments
    if not isinstance(sent, dict):
        raise invalid(("arguments", "must be an object"))
    if found := ingest.faults(sent) or schema.faults(tool.input, sent, ""):
        raise invalid(*found)
    return {name: value for name, value in sent.items() if value is not None}


# ── one function for each verb ───────────────────────────────────────────────────────────────────────────────────


async def _list(desk: Desk, asked: Asked) -> Content:
    view, limit = asked.args.get("view", "open"), min(asked.args.get("limit", PAGE), LARGEST_PAGE)
    after = await _cursor(desk, asked.args.get("cursor"))
    found = await desk.aio.list(
        machine=asked.args.get("machine"),
        state=asked.args.get("state"),
        owner=asked.who.name if view == "mine" else None,
        open=view != "all",
        limit=limit + 1,
        after=after,
    )
    return _page(desk, found, limit)


async def _cursor(desk: Desk, given: str | None) -> Task | None:
    if given is None:
        return None
    try:
        return await desk.aio.get(given)
    except Refused:
        raise invalid(("cursor", "is not the `next` of an answer")) from None


def _page(desk: Desk, found: list[Task], limit: int) -> Content:
    """As many rows as fit, in short. `next` names the last of them while others follow."""
    rows: list[Content] = []
    for task in found[:limit]:
        row = short({name: value for name, value in task_json(task).items() if name != "allowed"}, *_IN_LISTS)
        if rows and size({"tasks": [*rows, row]}) > LIMIT - _GUIDE_ROOM:
            break
        rows.append(row)
    return {"tasks": rows, "next": rows[-1]["id"] if len(rows) < len(found) else None, "untrusted": ["tasks[].fields", "tasks[].evidence"]}


async def _get(desk: Desk, asked: Asked) -> Content:
    version = asked.args.get("version")
    task = await desk.aio.get(asked.args["task_id"], version=version, by=None if version else asked.by)
    name = asked.args.get("field")
    if name is None:
        return desk.task(task)
    if name not in task.fields:
        raise invalid(("field", "is no field of this task"))
    around = {key: getattr(task, key) for key in ("id", "machine", "state", "version", "digest")}
    return part(as_text(task.fields[name]), asked.args.get("offset", 0), {**around, "untrusted": ["fields"]}, name)


async def _wait(desk: Desk, asked: Asked) -> Content:
    task = await desk.aio.wait(
        asked.args["task_id"],
        version=asked.args.get("version"),
        states=asked.args.get("states"),
        timeout_s=asked.args.get("timeout_s", WAIT_S),
    )
    return desk.task(task if asked.by is None else await desk.aio.get(task.id, by=asked.by))


async def _proposal(desk: Desk, asked: Asked) -> Content:
    found = (await desk.aio.proposal(asked.args["proposal_id"])).as_json()
    return {**found, "untrusted": ["refusal"]}


async def _create(desk: Desk, asked: Asked) -> Content:
    task = await desk.aio.create(
        _machine(desk, asked),
        asked.fields,
        by=asked.who,
        priority=asked.args.get("priority", 0),
        idempotency_key=asked.args.get("idempotency_key"),
    )
    return desk.moved(asked, task)


async def _claim(desk: Desk, asked: Asked) -> Content:
    task = await desk.aio.claim(
        _machine(desk, asked),
        by=asked.who,
        id=asked.args.get("task_id"),
        expect_version=asked.args.get("expect_version"),
        session=_session(desk, asked),
        idempotency_key=asked.args.get("idempotency_key"),
    )
    if task is None:
        raise Refused(Refusal("nothing_to_claim", "no eligible task waits"))
    return desk.moved(asked, task, acquired=True)


def _session(desk: Desk, asked: Asked) -> str:
    """What to hold a claim under: the session given, or a new one. A call repeated with its key makes the same again."""
    if asked.session:
        return asked.session
    key = asked.args.get("idempotency_key")
    return f"mcp-{digest('session', [asked.who.name, key])[:16] if key else format(desk.chance(64), '016x')}"


def _machine(desk: Desk, asked: Asked) -> str:
    return asked.args.get("machine") or next(iter(desk.machines))


async def _event(desk: Desk, asked: Asked) -> Content:
    assert asked.tool.event is not None, "an event's tool has its event"
    if len(desk.machines) > 1 and (await desk.aio.get(asked.args["task_id"])).machine != asked.tool.machine:
        raise Refused(Refusal("unknown_task", f"no task of {asked.tool.machine} has this id", task=asked.args["task_id"].lower()))
    return desk.moved(asked, await _proposed(desk, asked, asked.tool.event.name, asked.fields, asked.session))


async def _propose(desk: Desk, asked: Asked) -> Content:
    event = asked.args["event"]
    acquires = any(event in machine.event and machine.event[event].acquires for machine in desk.machines.values())
    session = _session(desk, asked) if acquires else asked.session
    task = await _proposed(desk, asked, event, asked.args.get("args", {}), session)
    if asked.args.get("dry_run", False):
        return desk.seen(asked, task)
    return desk.moved(asked, task, acquired=acquires and task.session == session)


async def _proposed(desk: Desk, asked: Asked, event: str, args: Mapping[str, Any], session: str | None) -> Task:
    wanted = asked.args["task_id"]
    return await desk.aio.propose(
        wanted,
        event,
        args,
        by=asked.who,
        epoch=asked.epoch(wanted),
        expect_version=asked.args.get("expect_version"),
        digest=asked.args.get("digest"),
        session=session,
        idempotency_key=asked.args.get("idempotency_key"),
        dry_run=asked.args.get("dry_run", False),
        wait_s=SUBMIT_WAIT_S,
    )


VERBS: Mapping[str, Callable[[Desk, Asked], Awaitable[Content]]] = {
    "list": _list,
    "get": _get,
    "wait": _wait,
    "proposal": _proposal,
    "create": _create,
    "claim": _claim,
    "event": _event,
    "propose": _propose,
}
