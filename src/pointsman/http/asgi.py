"""The ASGI application: the flat paths, `/healthz`, and the guard around all of it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, request_response
from starlette.types import Scope

from pointsman.engine.pointsman import Aio, Pointsman
from pointsman.http.answer import reply
from pointsman.http.body import TooLarge, TooLargeResponse
from pointsman.http.describe import operation, parameters, post_responses, request_body, rows_responses
from pointsman.http.endpoints import FLAT_DOOR, Endpoint, listing, posting
from pointsman.http.flat import TASKS, Flat
from pointsman.http.guard import Guard


class PlainRoute(APIRoute):
    """A route that FastAPI documents and keeps its hands off: the path is literal, and the endpoint gets the request
    as it came and answers in bytes. Matching patterns and parsing twice would cost as much as the rest of the edge."""

    def __init__(self, path: str, endpoint: Endpoint, **options: Any):
        super().__init__(path, endpoint, **options)
        self.app = request_response(endpoint)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope["path"].endswith(self.path) else (Match.NONE, {})


def app(
    pm: Pointsman,
    flats: Sequence[Flat] = (TASKS,),
    *,
    routes: Sequence[BaseRoute] = (),
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]] | None = None,
) -> FastAPI:
    """Serves each flat mapping whose machine `pm` serves. Mount it where you like, or serve it by itself. `routes` are
    another edge's, behind the same guard; `lifespan` runs with it."""
    api = FastAPI(title="Pointsman", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
    api.router.route_class = PlainRoute
    api.add_middleware(Guard)
    api.add_exception_handler(TooLarge, _too_large)
    api.add_exception_handler(Exception, _fault)
    api.add_api_route("/healthz", _healthz, methods=["GET"], summary="Whether this process answers")
    for flat in flats:
        if flat.machine in pm.machines:
            _add(api, pm.through(FLAT_DOOR).aio, flat)
    api.router.routes.extend(routes)
    return api


def _add(api: FastAPI, aio: Aio, flat: Flat) -> None:
    for post in flat.posts:
        api.add_api_route(
            post.path,
            posting(aio, flat, post),
            methods=["POST"],
            summary=post.summary,
            operation_id=operation(flat, post.path),
            responses=post_responses(post),
            openapi_extra=request_body(post),
        )
    for rows in flat.rows:
        api.add_api_route(
            rows.path,
            listing(aio, flat, rows),
            methods=["GET"],
            summary=rows.summary,
            operation_id=operation(flat, rows.path),
            responses=rows_responses(rows),
            openapi_extra=parameters(rows),
        )


async def _healthz(request: Request) -> Response:
    return reply({"status": "ok"})


async def _too_large(request: Request, fault: Exception) -> Any:
    return TooLargeResponse()


async def _fault(request: Request, fault: Exception) -> Response:
    """A fault of our own: logged by the server, and said without its words."""
    return reply({"detail": "internal error"}, 500)
