"""Serve a `Flat`: each POST reads a body, calls one verb of the engine and translates the answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.kernel.ingest import identifier
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pointsman.errors import Refusal, Refused, invalid
from pointsman.http.answer import encode, outcome, refusal, reply, row
from pointsman.http.body import read_body
from pointsman.http.flat import Flat, Post, Rows
from pointsman.http.shape import Call, read
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.task import Task

Endpoint = Callable[[Request], Awaitable[Response]]

FLAT_DOOR = Door("flat", strict=False)
PAGE = 500


def posting(pm: Pointsman, flat: Flat, post: Post) -> Endpoint:
    verb = _VERBS[post.verb]

    async def endpoint(request: Request) -> Response:
        body = await read_body(request)
        try:
            call = read(post, body)
            by = caller(post, call, request.headers.getlist("pointsman-as"))
            task = await verb(pm, flat, post, call, by, request.headers.get("idempotency-key"))
        except Refused as no:
            return refusal(no, post, flat)
        return reply(outcome(task, flat.evidence))

    return endpoint


def caller(post: Post, call: Call, header: list[str]) -> Principal:
    """In open mode a caller is who it says it is, in the body or in `Pointsman-As`, and has every role."""
    names = {*header, *([call.caller] if call.caller is not None else [])}
    if len(names) > 1:
        raise Refused(Refusal("identity_mismatch", "the request names its caller in two ways"))
    for name in names:
        return Principal(_read_name("header.Pointsman-As", name), kind=post.callers, auth="open")
    return Principal(ANONYMOUS, kind="person", auth="open")


def _read_name(place: str, name: str) -> str:
    if found := identifier(name, place):
        raise invalid(*found)
    return name


async def _create(pm: Pointsman, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    return await pm.aio.create(flat.machine, call.args, by=by, idempotency_key=key)


async def _claim(pm: Pointsman, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    task = await pm.aio.claim(flat.machine, by=by, id=call.task, idempotency_key=key)
    if task is None:
        raise Refused(Refusal("nothing_to_claim", "no eligible task waits"))
    return task


async def _propose(pm: Pointsman, flat: Flat, post: Post, call: Call, by: Principal, key: str | None) -> Task:
    return await pm.aio.propose(call.task, post.event, call.args, by=by, digest=call.digest, idempotency_key=key)


_VERBS = {"create": _create, "claim": _claim, "propose": _propose}


def listing(pm: Pointsman, flat: Flat, rows: Rows) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            chosen = _chosen(flat, rows, request)
            first = await pm.aio.list(**chosen, limit=PAGE)
        except Refused as no:
            return refusal(no, None, flat)
        if len(first) < PAGE:
            return reply({"rows": [row(task, rows.columns, flat.evidence) for task in first]})
        return StreamingResponse(_stream(pm, flat, rows, chosen, first), media_type="application/json")

    return endpoint


def _chosen(flat: Flat, rows: Rows, request: Request) -> dict[str, Any]:
    chosen: dict[str, Any] = {"machine": flat.machine, "order": rows.order, "state": rows.state, "open": rows.open}
    return chosen if rows.inbox is None else chosen | {"inbox": _whose(rows.inbox, request)}


def _whose(parameter: str, request: Request) -> str:
    given = request.query_params.getlist(parameter)
    if len(given) != 1:
        raise invalid((f"query.{parameter}", "is required, once"))
    return _read_name(f"query.{parameter}", given[0])


async def _stream(pm: Pointsman, flat: Flat, rows: Rows, chosen: dict[str, Any], page: list[Task]) -> AsyncIterator[bytes]:
    """Rows page by page. A task that moves to the end of the order meanwhile is shown as it was met first."""
    shown: set[str] = set()
    opening = b'{"rows":['
    while page:
        fresh = [task for task in page if task.id not in shown]
        if fresh:
            yield opening + b",".join(encode(row(task, rows.columns, flat.evidence)) for task in fresh)
            opening = b","
        shown.update(task.id for task in fresh)
        page = await pm.aio.list(**chosen, limit=PAGE, after=page[-1]) if len(page) == PAGE else []
    yield b"]}"
