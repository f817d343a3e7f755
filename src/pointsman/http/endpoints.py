"""Serve a `Flat`: each POST reads a body, calls one verb of the engine and translates the answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pointsman.engine.door import Door
from pointsman.engine.pointsman import Aio
from pointsman.errors import Refusal, Refused, invalid
from pointsman.http.answer import encode, outcome, refusal, reply, row
from pointsman.http.body import read_body
from pointsman.http.caller import caller, faults
from pointsman.http.flat import Flat, Post, Rows
from pointsman.http.metrics import Tally
from pointsman.http.shape import Call, read
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task

Endpoint = Callable[[Request], Awaitable[Response]]

FLAT_DOOR = Door("flat", strict=False)
PAGE = 500
WAIT_S = 25


def posting(aio: Aio, flat: Flat, post: Post, tally: Tally) -> Endpoint:
    verb = _VERBS[post.verb]

    async def endpoint(request: Request) -> Response:
        body = await read_body(request)
        try:
            call = read(post, body)
            by = caller(call.caller, request.headers.getlist("pointsman-as"), post.callers)
            task = await verb(aio, flat, post, call, by, request.headers.get("idempotency-key"))
        except Refused as no:
            tally.decided(FLAT_DOOR.name, no.code)
            return later(no, request) or refusal(no, post, flat)
        tally.decided(FLAT_DOOR.name)
        return reply(outcome(task, flat.evidence))

    return endpoint


async def _create(aio: Aio, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    return await aio.create(flat.machine, call.args, by=by, idempotency_key=key)


async def _claim(aio: Aio, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    task = await aio.claim(flat.machine, by=by, id=call.task, idempotency_key=key)
    if task is None:
        raise Refused(Refusal("nothing_to_claim", "no eligible task waits"))
    return task


async def _propose(aio: Aio, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    assert call.task is not None, "every path that proposes requires its task"
    return await aio.propose(call.task, post.event, call.args, by=by, digest=call.digest, idempotency_key=key, wait_s=WAIT_S)


_VERBS = {"create": _create, "claim": _claim, "propose": _propose}


def later(no: Refused, request: Request) -> Response | None:
    """202 when a check outlives its caller's patience: the proposal goes on, and can be asked for."""
    proposal = no.refusal.extra.get("proposal")
    if proposal is None:
        return None
    base = request.scope.get("root_path", "")
    return reply({"proposal": proposal}, 202, {"location": f"{base}/v1/proposals/{proposal}"})


def listing(aio: Aio, flat: Flat, rows: Rows) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            chosen = _chosen(flat, rows, request)
            first = await aio.list(**chosen, limit=PAGE)
        except Refused as no:
            return refusal(no, None, flat)
        if len(first) < PAGE:
            return reply({"rows": [row(task, rows.columns, flat.evidence) for task in first]})
        return StreamingResponse(_stream(aio, flat, rows, chosen, first), media_type="application/json")

    return endpoint


def _chosen(flat: Flat, rows: Rows, request: Request) -> dict[str, Any]:
    chosen: dict[str, Any] = {"machine": flat.machine, "order": rows.order, "state": rows.state, "open": rows.open}
    return chosen if rows.inbox is None else chosen | {"inbox": _whose(rows.inbox, request)}


def _whose(parameter: str, request: Request) -> str:
    given = request.query_params.getlist(parameter)
    if len(given) != 1:
        raise invalid((f"query.{parameter}", "is required, once"))
    if found := faults(given[0], f"query.{parameter}"):
        raise invalid(*found)
    return given[0]


async def _stream(aio: Aio, flat: Flat, rows: Rows, chosen: dict[str, Any], page: list[Task]) -> AsyncIterator[bytes]:
    """Rows page by page. A task that moves to the end of the order meanwhile is shown as it was met first."""
    shown: set[str] = set()
    opening = b'{"rows":['
    while page:
        fresh = [task for task in page if task.id not in shown]
        if fresh:
            yield opening + b",".join(encode(row(task, rows.columns, flat.evidence)) for task in fresh)
            opening = b","
        shown.update(task.id for task in fresh)
        page = await aio.list(**chosen, limit=PAGE, after=page[-1]) if len(page) == PAGE else []
    yield b"]}"
