"""The served machines and all that is drawn from them."""

from starlette.responses import Response

from pointsman.http.answer import reply
from pointsman.http.v1.operation import Asked


async def listing(asked: Asked) -> Response:
    return reply({"machines": await asked.pm.published()})


async def get(asked: Asked) -> Response:
    return reply((await asked.pm.published(asked.given["name"]))[0])
