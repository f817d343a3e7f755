"""Routes drawn from the table: read the request, call, answer; every refusal as a problem."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import Refused
from pointsman.http.body import BODY_LIMIT, TooLarge, TooLargeResponse
from pointsman.http.metrics import ACCEPTED, Tally
from pointsman.http.problem import MEDIA_TYPE, of_http, refused
from pointsman.http.v1.feed import Feed
from pointsman.http.v1.leases import NOTHING
from pointsman.http.v1.operation import Asked, Operation
from pointsman.http.v1.read import Reading
from pointsman.http.v1.table import OPERATIONS

DOOR = Door("http")

Endpoint = Callable[[Request], Awaitable[Response]]
TOO_LARGE = of_http(413, f"the body is over {BODY_LIMIT} bytes")


class PathRoute(Route):
    """A path of `/v1` with its methods. It is asked only for paths that may be its own, and does not answer HEAD."""

    def __init__(self, path: str, calls: Mapping[str, Endpoint]):
        async def endpoint(request: Request) -> Response:
            return await calls[request.method](request)

        super().__init__(path, endpoint, methods=list(calls), include_in_schema=False)
        self.methods = set(calls)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if "/v1/" not in scope["path"]:
            return Match.NONE, {}
        match, found = super().matches(scope)
        return match, {**found, "route": self}


def routes(pm: Pointsman, feed: Feed, tally: Tally) -> Iterator[BaseRoute]:
    aio = pm.through(DOOR).aio
    by_path: dict[str, dict[str, Endpoint]] = defaultdict(dict)
    for operation in OPERATIONS:
        by_path[operation.path][operation.method] = answering(operation, Reading(operation, aio, feed), tally)
    return (PathRoute(path, calls) for path, calls in by_path.items())


PLACES = {
    "by": "header.Pointsman-As",
    "session": "header.Pointsman-Session",
    "idempotency_key": "header.Idempotency-Key",
    "expect_version": "header.If-Match",
    "at": "query.at",
    "order": "query.order",
}
"""Where an argument of a verb stands in a request."""


async def called(operation: Operation, asked: Asked) -> Response:
    """The answer of the verb. What does not fit in its arguments is placed where the caller wrote it."""
    try:
        return await operation.call(asked)
    except Refused as no:
        if no.code != "invalid":
            raise
        failed = [{**item, "path": PLACES.get(item["path"], item["path"])} for item in no.failed]
        detail = "; ".join(f"{item['path']}: {item['message']}" for item in failed)
        raise Refused(replace(no.refusal, failed=failed, detail=detail)) from None


def answering(operation: Operation, reading: Reading, tally: Tally) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            response = await called(operation, await reading.read(request))
        except TooLarge:
            return TooLargeResponse(TOO_LARGE, MEDIA_TYPE)
        except Refused as no:
            if operation.asks:
                tally.decided(DOOR.name, no.code)
            return refused(no, conditional=operation.conditional and "if-match" in request.headers)
        if operation.asks:
            tally.decided(DOOR.name, _decision(response))
        return response

    return endpoint


def _decision(response: Response) -> str:
    """What an answer that is no refusal counts as."""
    if response.status_code == 202:
        return "evidence_pending"
    return "nothing_to_claim" if response.body == NOTHING else ACCEPTED
