"""Holds: an operator stops what matches, for a while and a reason, and lets it go again."""

from starlette.responses import Response

from pointsman.engine.views import hold_json
from pointsman.errors import invalid
from pointsman.http.answer import reply
from pointsman.http.v1 import cursor
from pointsman.http.v1 import reply as replies
from pointsman.http.v1.operation import Asked
from pointsman.http.v1.parameter import time
from pointsman.types import Instant

HOLDS = "/v1/holds"
HOLD = "/v1/holds/{id}"


async def place(asked: Asked) -> Response:
    """A hold that stands in the same words is answered as it is; a key would promise more, so it is refused."""
    if asked.given["Idempotency-Key"] is not None:
        raise invalid(("header.Idempotency-Key", "is not for holds: leave it out, the same hold is placed once"))
    body = asked.body
    start, until = _times(body.get("from"), body.get("until"))
    hold = await asked.pm.hold(
        body["match"], by=asked.by, reason=body["reason"], start=start, until=until, release_per_s=body.get("release_per_s")
    )
    return reply(hold_json(hold), 201)


def _times(start: str | None, until: str | None) -> tuple[Instant | None, Instant | None]:
    """Both times, or what is wrong with either."""
    read: dict[str, Instant] = {}
    found: list[tuple[str, str]] = []
    for path, text in (("from", start), ("until", until)):
        try:
            read |= {} if text is None else {path: time(text)}
        except ValueError as fault:
            found.append((path, str(fault)))
    if found:
        raise invalid(*found)
    return read.get("from"), read.get("until")


async def listing(asked: Asked) -> Response:
    last = cursor.read(HOLDS, asked.given)
    found = await asked.pm.holds(after=last[0] if last else None, limit=asked.given["limit"] + 1)
    holds, following = replies.page(asked, HOLDS, found, lambda hold: [hold.id])
    return reply({"holds": [hold_json(hold) for hold in holds], "next": following})


async def lift(asked: Asked) -> Response:
    return reply(hold_json(await asked.pm.lift(asked.given["id"], by=asked.by)))
