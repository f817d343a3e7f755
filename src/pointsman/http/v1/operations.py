"""Durable work: operations, checkpoints, and what somebody needs to resume."""

from starlette.responses import Response

from pointsman.engine.operations import Shown
from pointsman.engine.views import checkpoint_json, operation_json, resumed_json
from pointsman.http.answer import reply
from pointsman.http.v1 import cursor
from pointsman.http.v1 import reply as replies
from pointsman.http.v1.operation import Asked

OPERATIONS = "/v1/tasks/{id}/operations"
OUTCOME = "/v1/operations/{id}/outcome"
CHECKPOINT = "/v1/tasks/{id}/checkpoint"


async def begin(asked: Asked) -> Response:
    """201 when it is this call's to do; 200 with how it stands when the name was there already."""
    names = ("epoch", "effect", "kind", "request", "timeout_s", "settle_s", "compensates")
    shown = await asked.pm.begin(
        asked.given["id"],
        asked.body["name"],
        by=asked.by,
        session=asked.session,
        idempotency_key=asked.given["Idempotency-Key"],
        **{name: asked.body.get(name) for name in names},
    )
    return _told(shown, 200 if shown.known else 201)


async def settle(asked: Asked) -> Response:
    body = asked.body
    shown = await asked.pm.finish(
        asked.given["id"],
        body["status"],
        body.get("result"),
        by=asked.by,
        epoch=body.get("epoch"),
        note=body.get("note"),
        session=asked.session,
        idempotency_key=asked.given["Idempotency-Key"],
    )
    return _told(shown, 200)


def _told(shown: Shown, status: int) -> Response:
    return reply(operation_json(shown), status, {"idempotent-replayed": "true"} if shown.replayed else {})


async def listing(asked: Asked) -> Response:
    after = cursor.read(OPERATIONS, asked.given)
    found = await asked.pm.operations(asked.given["id"], limit=asked.given["limit"] + 1, after=after[0] if after else None)
    shown, following = replies.page(asked, OPERATIONS, found, lambda item: [item.operation.id])
    return reply({"operations": [operation_json(item) for item in shown], "next": following})


async def checkpoint(asked: Asked) -> Response:
    body = asked.body
    kept = await asked.pm.checkpoint(
        asked.given["id"],
        body["data"],
        by=asked.by,
        epoch=body["epoch"],
        plan=body.get("plan", ()),
        progress=body.get("progress"),
        expect=body.get("expect"),
        session=asked.session,
    )
    return reply(checkpoint_json(kept))


async def resume(asked: Asked) -> Response:
    found = await asked.pm.resume(asked.given["id"], by=asked.by, session=asked.session)
    return reply(resumed_json(found))
