"""Owners and their time: take the tasks that wait, hold one for longer, give one back."""

from typing import Any

from starlette.responses import Response

from pointsman.engine.views import task_json
from pointsman.errors import invalid
from pointsman.http.answer import encode, reply
from pointsman.http.v1 import reply as replies
from pointsman.http.v1.operation import Asked
from pointsman.http.v1.tasks import meant
from pointsman.kernel.task import Task

CLAIMS = "/v1/claims"
LEASE = "/v1/tasks/{id}/lease"
MOST = 100
NOTHING = encode({"tasks": []})
"""The answer of a claim when nothing waits."""


async def claim(asked: Asked) -> Response:
    """Several are taken in one step. One key stands for one task, so it is refused beside a limit of several."""
    limit = min(asked.body.get("limit", 1), MOST)
    if limit > 1 and asked.given["Idempotency-Key"] is not None:
        raise invalid(("header.Idempotency-Key", "stands for one task: leave it out, or claim with limit 1"))
    machine = meant(asked, asked.body.get("machine"))
    found = await (_one(asked, machine) if limit == 1 else _several(asked, machine, limit))
    shown = [task_json(asked.pm.opened(task, asked.by, asked.session)) for task in found]
    replayed = {"idempotent-replayed": "true"} if found and found[0].replayed else {}
    return reply({"tasks": shown}, 200, replayed)


async def _one(asked: Asked, machine: str) -> list[Task]:
    task = await asked.pm.claim(machine, idempotency_key=asked.given["Idempotency-Key"], **_wanted(asked))
    return [] if task is None else [task]


async def _several(asked: Asked, machine: str, limit: int) -> list[Task]:
    return await asked.pm.claim_many(machine, limit, **_wanted(asked))


def _wanted(asked: Asked) -> dict[str, Any]:
    members = {name: asked.body.get(name) for name in ("states", "tags", "capabilities", "lease_s")}
    return {**members, "by": asked.by, "session": asked.session, "wait_s": asked.body.get("wait_s", 0)}


async def renew(asked: Asked) -> Response:
    body = asked.body
    task = await asked.pm.renew(asked.given["id"], by=asked.by, epoch=body["epoch"], session=asked.session, lease_s=body.get("lease_s"))
    return replies.of_task(asked.pm.opened(task, asked.by, asked.session))


async def release(asked: Asked) -> Response:
    task = await asked.pm.release(
        asked.given["id"],
        by=asked.by,
        epoch=asked.body["epoch"],
        reason=asked.body.get("reason"),
        counts=asked.body.get("counts", True),
        error=asked.body.get("error", False),
        session=asked.session,
        idempotency_key=asked.given["Idempotency-Key"],
    )
    return replies.of_task(asked.pm.opened(task, asked.by, asked.session))
