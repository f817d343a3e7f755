"""Tasks and what is proposed for them."""

from typing import Any

from starlette.responses import Response

from pointsman.engine.views import task_json
from pointsman.errors import Refused, invalid
from pointsman.http.answer import reply
from pointsman.http.v1 import cursor
from pointsman.http.v1 import reply as replies
from pointsman.http.v1.operation import Asked
from pointsman.http.v1.parameter import WAIT_S
from pointsman.kernel.task import Task
from pointsman.store.lists import Position, position

TASKS = "/v1/tasks"
APPROVALS = "/v1/approvals"


async def create(asked: Asked) -> Response:
    body, key = asked.body, asked.given["Idempotency-Key"]
    machine = meant(asked, body.get("machine"))
    task = await asked.pm.create(
        machine,
        body["fields"],
        by=asked.by,
        priority=body.get("priority", 0),
        tags=body.get("tags"),
        needs=body.get("needs"),
        run_at=body.get("run_at"),
        dedupe_key=body.get("dedupe_key"),
        blocked_by=body.get("blocked_by", ()),
        parent=body.get("parent"),
        epoch=body.get("epoch"),
        session=asked.session,
        idempotency_key=key,
    )
    status = 200 if task.deduped else 201
    return replies.of_task(asked.pm.opened(task, asked.by, asked.session), status, location=f"{asked.base}{TASKS}/{task.id}")


async def batch(asked: Asked) -> Response:
    served = list(asked.pm.machines)
    tasks = await asked.pm.create_batch(
        asked.body["tasks"],
        by=asked.by,
        machine=served[0] if len(served) == 1 else None,
        parent=asked.body.get("parent"),
        epoch=asked.body.get("epoch"),
        join=asked.body.get("join"),
        session=asked.session,
        idempotency_key=asked.given["Idempotency-Key"],
    )
    shown = [task_json(asked.pm.opened(task, asked.by, asked.session)) for task in tasks]
    return reply({"tasks": shown}, 201, {"idempotent-replayed": "true"} if tasks[0].replayed else {})


async def cancel(asked: Asked) -> Response:
    report = await asked.pm.cancel(
        asked.given["id"],
        by=asked.by,
        reason=asked.body["reason"],
        cascade=asked.body.get("cascade", False),
        expect_version=asked.given["If-Match"],
        epoch=asked.body.get("epoch"),
        session=asked.session,
        idempotency_key=asked.given["Idempotency-Key"],
    )
    return reply(report.as_json(), 200, {"idempotent-replayed": "true"} if report.task.replayed else {})


async def unpark(asked: Asked) -> Response:
    given = asked.given
    task = await asked.pm.unpark(
        given["id"], by=asked.by, reason=asked.body["reason"], expect_version=given["If-Match"], idempotency_key=given["Idempotency-Key"]
    )
    return replies.of_task(asked.pm.opened(task, asked.by, asked.session))


def meant(asked: Asked, named: str | None) -> str:
    """The machine that is meant: it need not be named where one alone is served."""
    served = list(asked.pm.machines)
    if named is None and len(served) != 1:
        raise invalid(("machine", "is required where several machines are served: " + ", ".join(served)))
    return served[0] if named is None else named


async def get(asked: Asked) -> Response:
    at, version = asked.given["at"], asked.given["version"]
    task = await asked.pm.get(asked.given["id"], version=version, at=at, by=asked.by, session=asked.session)
    return replies.unless_seen(asked, task)


async def listing(asked: Asked) -> Response:
    """The feed number is read before the board: a reader who follows the feed from it misses nothing."""
    given = asked.given
    start = _start(cursor.read(TASKS, given))
    as_of = await asked.pm.as_of(given["at"])
    chosen: dict[str, Any] = {name: given[name] for name in ("machine", "state", "owner", "tag", "open", "q", "order")}
    at = None if given["at"] is None else f"#{as_of}"
    found = await asked.pm.list(**chosen, at=at, limit=given["limit"] + 1, after=start, by=asked.by, session=asked.session)
    return _board(asked, TASKS, found, order=given["order"], as_of=as_of)


async def approvals(asked: Asked) -> Response:
    if not asked.given["Pointsman-As"]:
        raise invalid(("header.Pointsman-As", "is required: whoever decides has a name"))
    start = _start(cursor.read(APPROVALS, asked.given))
    as_of = await asked.pm.as_of()
    found = await asked.pm.approvals(by=asked.by, session=asked.session, limit=asked.given["limit"] + 1, after=start)
    return _board(asked, APPROVALS, found, order="updated_at", as_of=as_of)


def _start(place: list[Any] | None) -> Position | None:
    return None if place is None else (place[0], place[1])


def _board(asked: Asked, path: str, found: list[Task], *, order: Any, as_of: int) -> Response:
    tasks, following = replies.page(asked, path, found, lambda task: list(position(task, order)))
    return reply({"tasks": [task_json(task) for task in tasks], "next": following, "as_of": as_of})


async def propose(asked: Asked) -> Response:
    given, body = asked.given, asked.body
    wait_s = WAIT_S if given["Prefer"] is None else given["Prefer"]
    try:
        task = await asked.pm.propose(
            given["id"],
            given["event"],
            body.get("args", {}),
            by=asked.by,
            epoch=body.get("epoch"),
            expect_version=given["If-Match"],
            digest=body.get("digest"),
            session=asked.session,
            idempotency_key=given["Idempotency-Key"],
            dry_run=given["dry_run"],
            wait_s=wait_s,
        )
    except Refused as no:
        return await _later(asked, no)
    shown = asked.pm.opened(task, asked.by, asked.session)
    return reply(task_json(shown) | {"dry_run": True}) if given["dry_run"] else replies.of_task(shown)


async def _later(asked: Asked, no: Refused) -> Response:
    """202 for a proposal whose checks outlive the caller's patience; any other refusal is told as it is."""
    proposal_id = no.refusal.extra.get("proposal")
    if proposal_id is None:
        raise no
    headers = {"location": f"{asked.base}/v1/proposals/{proposal_id}"} | ({"idempotent-replayed": "true"} if no.replayed else {})
    return reply((await asked.pm.proposal(proposal_id)).as_json(), 202, headers)


async def proposal(asked: Asked) -> Response:
    return reply((await asked.pm.proposal(asked.given["id"])).as_json())
