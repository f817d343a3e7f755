"""One function for each verb that tools have: it calls the engine and answers in JSON."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pointsman.engine.operations import Shown
from pointsman.engine.pointsman import Aio
from pointsman.engine.views import checkpoint_json, operation_json, resumed_json, task_json
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.chain import digest
from pointsman.kernel.task import Task
from pointsman.mcp.arguments import LARGEST_PAGE, PAGE, WAIT_S
from pointsman.mcp.asked import Asked
from pointsman.mcp.fit import LIMIT, Content, as_text, part, short, size

SUBMIT_WAIT_S = 25.0
_GUIDE_ROOM = 200
_IN_LISTS = (200, 20)


async def _list(asked: Asked) -> Content:
    view, limit = asked.args.get("view", "open"), min(asked.args.get("limit", PAGE), LARGEST_PAGE)
    after = await _cursor(asked.board.aio, asked.args.get("cursor"))
    found = await asked.board.aio.list(
        machine=asked.args.get("machine"),
        state=asked.args.get("state"),
        owner=asked.who.name if view == "mine" else None,
        open=view != "all",
        limit=limit + 1,
        after=after,
    )
    return _page(found, limit)


async def _cursor(aio: Aio, given: str | None) -> Task | None:
    if given is None:
        return None
    try:
        return await aio.get(given)
    except Refused:
        raise invalid(("cursor", "is not the `next` of an answer")) from None


def _page(found: list[Task], limit: int) -> Content:
    """As many rows as fit, in short. `next` names the last of them while others follow."""
    rows: list[Content] = []
    for task in found[:limit]:
        row = short({name: value for name, value in task_json(task).items() if name != "allowed"}, *_IN_LISTS)
        if rows and size({"tasks": [*rows, row]}) > LIMIT - _GUIDE_ROOM:
            break
        rows.append(row)
    return {"tasks": rows, "next": rows[-1]["id"] if len(rows) < len(found) else None, "untrusted": ["tasks[].fields", "tasks[].evidence"]}


async def _get(asked: Asked) -> Content:
    version = asked.args.get("version")
    task = await asked.board.aio.get(asked.args["task_id"], version=version, by=None if version else asked.by)
    name = asked.args.get("field")
    if name is None:
        return asked.board.task(task)
    if name not in task.fields:
        raise invalid(("field", "is no field of this task"))
    around = {key: getattr(task, key) for key in ("id", "machine", "state", "version", "digest")}
    return part(as_text(task.fields[name]), asked.args.get("offset", 0), {**around, "untrusted": ["fields"]}, name)


async def _wait(asked: Asked) -> Content:
    task = await asked.board.aio.wait(
        asked.args["task_id"],
        version=asked.args.get("version"),
        states=asked.args.get("states"),
        timeout_s=asked.args.get("timeout_s", WAIT_S),
    )
    return asked.board.task(task if asked.by is None else await asked.board.aio.get(task.id, by=asked.by))


async def _proposal(asked: Asked) -> Content:
    found = (await asked.board.aio.proposal(asked.args["proposal_id"])).as_json()
    return {**found, "untrusted": ["refusal"]}


async def _create(asked: Asked) -> Content:
    parent, upstreams, fate = asked.args.get("parent"), asked.args.get("blocked_by", ()), asked.args.get("on_failure")
    if fate is not None and not upstreams:
        raise invalid(("on_failure", "is about the tasks in blocked_by"))
    task = await asked.board.aio.create(
        _machine(asked),
        asked.fields,
        by=asked.who,
        priority=asked.args.get("priority", 0),
        tags=asked.args.get("tags"),
        needs=asked.args.get("needs"),
        run_at=asked.args.get("run_at"),
        dedupe_key=asked.args.get("dedupe_key"),
        blocked_by=[{"task": task, "on_failure": fate or "block"} for task in upstreams],
        parent=parent,
        epoch=asked.args.get("epoch") if parent is None else asked.epoch(parent),
        session=asked.session,
        idempotency_key=asked.args.get("idempotency_key"),
    )
    return asked.moved(task)


async def _claim(asked: Asked) -> Content:
    task = await asked.board.aio.claim(
        _machine(asked),
        by=asked.who,
        id=asked.args.get("task_id"),
        states=asked.args.get("states"),
        wait_s=asked.args.get("wait_s", 0),
        tags=asked.args.get("tags"),
        capabilities=asked.args.get("capabilities"),
        expect_version=asked.args.get("expect_version"),
        session=_session(asked),
        lease_s=asked.args.get("lease_s"),
        idempotency_key=asked.args.get("idempotency_key"),
    )
    if task is None:
        raise Refused(Refusal("nothing_to_claim", "no eligible task waits"))
    return asked.moved(task, acquired=True, lease_s=asked.args.get("lease_s"))


async def _renew(asked: Asked) -> Content:
    wanted, lease_s = asked.args["task_id"], asked.args.get("lease_s")
    task = await asked.board.aio.renew(wanted, by=asked.who, epoch=asked.epoch(wanted), session=asked.session, lease_s=lease_s)
    return asked.moved(task, lease_s=lease_s)


async def _release(asked: Asked) -> Content:
    wanted = asked.args["task_id"]
    task = await asked.board.aio.release(
        wanted,
        by=asked.who,
        epoch=asked.epoch(wanted),
        reason=asked.args.get("reason"),
        counts=asked.args.get("counts", True),
        error=asked.args.get("error", False),
        session=asked.session,
        idempotency_key=asked.args.get("idempotency_key"),
    )
    return asked.moved(task)


async def _begin(asked: Asked) -> Content:
    wanted, names = asked.args["task_id"], ("kind", "request", "effect", "timeout_s", "settle_s", "compensates", "idempotency_key")
    given = {name: asked.args.get(name) for name in names}
    shown = await asked.board.aio.begin(wanted, asked.args["name"], by=asked.who, epoch=asked.epoch(wanted), session=asked.session, **given)
    return await _ledger(asked, shown)


async def _finish(asked: Asked) -> Content:
    wanted = asked.args["operation_id"]
    shown = await asked.board.aio.finish(
        wanted,
        asked.args["status"],
        asked.args.get("result"),
        by=asked.who,
        task=asked.args["task_id"],
        epoch=asked.epoch(asked.args["task_id"]),
        note=asked.args.get("note"),
        session=asked.session,
        idempotency_key=asked.args.get("idempotency_key"),
    )
    return await _ledger(asked, shown)


async def _ledger(asked: Asked, shown: Shown) -> Content:
    """An operation as it stands, and whether this call changed anything; it has renewed the lease."""
    asked.moved(shown.task or await asked.board.aio.get(shown.operation.task))
    said = {"known": shown.known, "replayed": shown.replayed}
    return {**operation_json(shown), **said, "untrusted": ["request", "result", "testimony"]}


async def _checkpoint(asked: Asked) -> Content:
    wanted, args = asked.args["task_id"], asked.args
    kept = await asked.board.aio.checkpoint(
        wanted,
        args.get("data"),
        by=asked.who,
        epoch=asked.epoch(wanted),
        plan=[{"name": name} for name in args.get("plan", ())],
        progress=args.get("progress"),
        expect=args.get("expect"),
        session=asked.session,
    )
    asked.moved(await asked.board.aio.get(wanted))
    return {"task": wanted.lower(), **checkpoint_json(kept)}


async def _resume(asked: Asked) -> Content:
    found = await asked.board.aio.resume(asked.args["task_id"], by=asked.by, session=asked.session)
    return {**resumed_json(found), "untrusted": ["operations", "checkpoint", "notes"]}


def _session(asked: Asked) -> str:
    """What to hold a claim under: the session given, or a new one. A call repeated with its key makes the same again."""
    if asked.session:
        return asked.session
    key = asked.args.get("idempotency_key")
    return f"mcp-{digest('session', [asked.who.name, key])[:16] if key else format(asked.board.chance(64), '016x')}"


def _machine(asked: Asked) -> str:
    return asked.args.get("machine") or next(iter(asked.board.machines))


async def _event(asked: Asked) -> Content:
    assert asked.tool.event is not None, "an event's tool has its event"
    if len(asked.board.machines) > 1 and (await asked.board.aio.get(asked.args["task_id"])).machine != asked.tool.machine:
        raise Refused(Refusal("unknown_task", f"no task of {asked.tool.machine} has this id", task=asked.args["task_id"].lower()))
    return asked.moved(await _proposed(asked, asked.tool.event.name, asked.fields, asked.session))


async def _propose(asked: Asked) -> Content:
    event = asked.args["event"]
    acquires = any(event in machine.event and machine.event[event].acquires for machine in asked.board.machines.values())
    session = _session(asked) if acquires else asked.session
    task = await _proposed(asked, event, asked.args.get("args", {}), session)
    if asked.args.get("dry_run", False):
        return asked.board.seen(task, asked.who)
    return asked.moved(task, acquired=acquires and task.session == session)


async def _proposed(asked: Asked, event: str, args: Mapping[str, Any], session: str | None) -> Task:
    wanted = asked.args["task_id"]
    return await asked.board.aio.propose(
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


VERBS: Mapping[str, Callable[[Asked], Awaitable[Content]]] = {
    "list": _list,
    "get": _get,
    "wait": _wait,
    "proposal": _proposal,
    "create": _create,
    "claim": _claim,
    "renew": _renew,
    "release": _release,
    "event": _event,
    "propose": _propose,
    "begin": _begin,
    "finish": _finish,
    "checkpoint": _checkpoint,
    "resume": _resume,
}
