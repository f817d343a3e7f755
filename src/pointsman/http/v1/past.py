"""What happened, what it rests on, and who decided."""

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from pointsman.engine.queries import Entry
from pointsman.engine.views import decided_json, evidence_json
from pointsman.http.answer import reply
from pointsman.http.v1 import cursor
from pointsman.http.v1 import reply as replies
from pointsman.http.v1.operation import Asked

HISTORY = "/v1/tasks/{id}/history"
AUDIT = "/v1/audit"


async def history(asked: Asked) -> Response:
    after = cursor.read(HISTORY, asked.given)
    found = await asked.pm.history(asked.given["id"], asked.given["limit"] + 1, after=after[0] if after else 0)
    return _entries(asked, HISTORY, found, lambda entry: [entry.version])


async def audit(asked: Asked) -> Response:
    given = asked.given
    before = cursor.read(AUDIT, given)
    chosen = {"actor": given["actor"], "event": given["event"], "start": given["from"], "end": given["to"]}
    found = await asked.pm.audit(**chosen, before=before[0] if before else None, limit=given["limit"] + 1)
    return _entries(asked, AUDIT, found, lambda entry: [entry.seq])


def _entries(asked: Asked, path: str, found: Sequence[Entry], place: Any) -> Response:
    entries, following = replies.page(asked, path, found, place)
    return reply({"entries": [entry.as_json() for entry in entries], "next": following})


async def difference(asked: Asked) -> Response:
    return reply(await asked.pm.diff(asked.given["id"], asked.given["from"], asked.given["to"]))


async def report(asked: Asked) -> Response:
    return reply(await asked.pm.report(asked.given["id"]))


async def evidence(asked: Asked) -> Response:
    return reply({"evidence": evidence_json(await asked.pm.evidence(asked.given["id"]))})


async def decisions(asked: Asked) -> Response:
    return reply({"decisions": [decided_json(item) for item in await asked.pm.decisions(asked.given["id"])]})
