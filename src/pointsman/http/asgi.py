"""The ASGI application: the flat paths, `/v1`, health and figures, and the guard around all of it."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, request_response
from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.engine.pointsman import Aio, Pointsman
from pointsman.http.answer import reply
from pointsman.http.body import BODY_LIMIT, TooLarge, TooLargeResponse
from pointsman.http.describe import GUARDED, figures_responses, operation, parameters, post_responses, request_body, rows_responses
from pointsman.http.endpoints import FLAT_DOOR, Endpoint, listing, posting
from pointsman.http.flat import TASKS, Flat, Post
from pointsman.http.guard import Guard
from pointsman.http.health import alive, figures, ready
from pointsman.http.metrics import Counting, Tally
from pointsman.http.problem import said, speaks
from pointsman.http.v1.describe import components, paths
from pointsman.http.v1.feed import Feed
from pointsman.http.v1.routes import DOOR, routes
from pointsman.http.v1.table import OPERATIONS
from pointsman.kernel.definition import Definition

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


class PlainRoute(APIRoute):
    """A route that FastAPI documents and keeps its hands off: the path is literal, and the endpoint gets the request
    as it came and answers in bytes. Matching patterns and parsing twice would cost as much as the rest of the edge."""

    def __init__(self, path: str, endpoint: Endpoint, **options: Any):
        super().__init__(path, endpoint, **options)
        self.app = request_response(endpoint)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(scope) if scope["path"].endswith(self.path) else (Match.NONE, {})


class Straight:
    """ASGI middleware that takes a request for a plain route to its endpoint, past the framework's routing, which costs
    more than the endpoint. Any other request, also one under a mount or by a wrong method, goes the whole way."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]):
        self.app = app
        plain = (route for route in routes if isinstance(route, PlainRoute))
        self.routes = {(method, route.path): route for route in plain for method in route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            return await self.app(scope, receive, send)
        scope["route"] = route
        response = await _answered(route.endpoint, Request(scope, receive, send))
        return await response(scope, receive, send)


async def _answered(endpoint: Endpoint, request: Request) -> Response:
    try:
        return await endpoint(request)
    except TooLarge as fault:
        return await _too_large(request, fault)
    except HTTPException as fault:
        return await _http_fault(request, fault)


class Service(FastAPI):
    """The application, its document completed by what is drawn from the table of `/v1`. `feed` serves the readers of
    this process until it is closed."""

    def __init__(self, pm: Pointsman, feed: Feed, lifespan: Lifespan | None):
        super().__init__(title="Pointsman", docs_url=None, redoc_url=None, redirect_slashes=False, lifespan=lifespan)
        self.machines = pm.machines
        self.feed = feed

    def openapi(self) -> dict[str, Any]:
        told = super().openapi()
        told["paths"] |= paths(OPERATIONS, self.machines.values())
        told.setdefault("components", {}).setdefault("schemas", {}).update(components(self.machines.values()))
        return told


def app(pm: Pointsman, flats: Sequence[Flat] = (TASKS,), *, joined: Sequence[BaseRoute] = (), lifespan: Lifespan | None = None) -> Service:
    """Serves `/v1`, and each flat mapping whose machine `pm` serves. Mount it where you like, or serve it by itself.
    `joined` are the routes of another edge, behind the same guard; `lifespan` runs with it."""
    tally, feed = Tally(), Feed(pm.through(DOOR).aio)
    api = Service(pm, feed, lifespan)
    api.router.route_class = PlainRoute
    api.add_exception_handler(TooLarge, _too_large)
    api.add_exception_handler(HTTPException, _http_fault)
    api.add_exception_handler(Exception, _fault)
    for flat in flats:
        if flat.machine in pm.machines:
            _add(api, pm, flat, tally)
    _add_health(api, pm.aio, tally)
    api.add_middleware(Straight, routes=list(api.router.routes))
    api.add_middleware(Guard)
    api.add_middleware(Counting, tally=tally)
    api.router.routes.extend(routes(pm, feed, tally))
    api.router.routes.extend(joined)
    return api


def _add_health(api: FastAPI, aio: Aio, tally: Tally) -> None:
    told = figures_responses()
    api.add_api_route("/healthz", alive, methods=["GET"], summary="Whether this process answers", responses=GUARDED)
    api.add_api_route("/readyz", ready(aio), methods=["GET"], summary="Whether it can decide", responses=GUARDED)
    api.add_api_route("/metrics", figures(aio, tally), methods=["GET"], summary="Its figures", responses=told)


def _add(api: FastAPI, pm: Pointsman, flat: Flat, tally: Tally) -> None:
    aio, definition = pm.through(FLAT_DOOR).aio, pm.machines[flat.machine]
    for post in flat.posts:
        api.add_api_route(
            post.path,
            posting(aio, flat, post, tally),
            methods=["POST"],
            summary=post.summary,
            operation_id=operation(flat, post.path),
            responses=post_responses(post, slow=_slow(definition, post)),
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


def _slow(definition: Definition, post: Post) -> bool:
    """Whether a check that must run first may outlive the caller's patience."""
    event = definition.event.get(post.event)
    return event is not None and any(not definition.check[name].eager for name in event.requires)


async def _too_large(request: Request, fault: Exception) -> Response:
    return TooLargeResponse({"detail": f"the body is over {BODY_LIMIT} bytes"})


async def _http_fault(request: Request, fault: Exception) -> Response:
    """What no route takes, told in the form of the paths around it."""
    assert isinstance(fault, HTTPException), "the handler is registered for it"
    if speaks(request.scope):
        return said(fault.status_code, fault.detail, fault.headers)
    return reply({"detail": fault.detail}, fault.status_code, fault.headers)


async def _fault(request: Request, fault: Exception) -> Response:
    """A fault of our own: logged by the server, and said without its words."""
    if speaks(request.scope):
        return said(500, "internal error")
    return reply({"detail": "internal error"}, 500)
