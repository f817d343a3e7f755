"""Whether this process answers, whether it can decide, and its figures."""

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from pointsman.engine.pointsman import Aio
from pointsman.errors import StoreError
from pointsman.http.answer import reply, unavailable
from pointsman.http.metrics import MEDIA_TYPE, Tally, text

Endpoint = Callable[[Request], Awaitable[Response]]


async def alive(request: Request) -> Response:
    return reply({"status": "ok"})


def ready(aio: Aio) -> Endpoint:
    """Ready is who can read the board."""

    async def endpoint(request: Request) -> Response:
        try:
            await aio.list(limit=1)
        except StoreError as no:
            return unavailable(no)
        return reply({"status": "ready"})

    return endpoint


def figures(aio: Aio, tally: Tally) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            told = text(tally, await aio.figures())
        except StoreError as no:
            return unavailable(no)
        return Response(told, media_type=MEDIA_TYPE)

    return endpoint
