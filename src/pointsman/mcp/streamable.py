"""MCP over streamable HTTP: an endpoint for the host's own routes, where every request stands alone.

The SDK is loaded at the first request, in a thread, so that a server that nobody speaks MCP to starts without it.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from pointsman.engine.pointsman import Pointsman
from pointsman.errors import CODES, Refusal, Refused
from pointsman.kernel.ingest import TOTAL_BYTES, parse
from pointsman.mcp.desk import Desk
from pointsman.mcp.message import PARSE_ERROR, error, unread
from pointsman.mcp.seat import Seat

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Streamable:
    """The endpoint. `run` belongs in the host's lifespan: it ends what the first request began."""

    def __init__(self, pm: Pointsman):
        self.pm = pm
        self.loading = asyncio.Lock()
        self.stopping = asyncio.Event()
        self.manager: StreamableHTTPSessionManager | None = None
        self.keeper: asyncio.Task[None] | None = None

    @property
    def route(self) -> Route:
        return Route(PATH, self, methods=["POST"])

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        try:
            yield
        finally:
            self.stopping.set()
            if self.keeper is not None:
                await self.keeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await _body(Headers(scope=scope), receive)
        except Refused as no:
            await _malformed(no.refusal)(scope, receive, send)
            return
        if answer := unread(body):
            await JSONResponse(answer)(scope, receive, send)
            return
        manager = self.manager or await self._load()
        await manager.handle_request(scope, _replayed(body, receive), send)

    async def _load(self) -> "StreamableHTTPSessionManager":
        async with self.loading:
            if self.manager is None:
                manager, opened = await asyncio.to_thread(_made, self.pm), asyncio.Event()
                self.keeper = asyncio.create_task(self._keep(manager, opened))
                await opened.wait()
                self.manager = manager
            return self.manager

    async def _keep(self, manager: "StreamableHTTPSessionManager", opened: asyncio.Event) -> None:
        """One task opens and closes the manager, whose task group must not change hands."""
        async with manager.run():
            opened.set()
            await self.stopping.wait()


def _made(pm: Pointsman) -> "StreamableHTTPSessionManager":
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from pointsman.mcp.server import server

    hosts = [f"{name}{port}" for name in _LOOPBACK for port in ("", ":*")]
    return StreamableHTTPSessionManager(
        server(Desk(pm, holds=False), _seat),
        json_response=True,
        stateless=True,
        max_request_body_size=TOTAL_BYTES,
        security_settings=TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts]),
    )


def _seat(context: Any) -> Seat:
    headers: Headers = context.request.headers
    return Seat(tuple(headers.getlist("pointsman-as")), "open", None, headers.get("pointsman-session"))


# ── the body, judged as every other door judges it ───────────────────────────────────────────────────────────────


async def _body(headers: Headers, receive: Receive) -> bytes:
    """A JSON body under the limit, with unique keys and finite numbers."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(Refusal("unsupported_media", "the body must be application/json"))
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refused(Refusal("malformed", "the body did not arrive whole"))
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > TOTAL_BYTES:
            raise Refused(Refusal("too_large", f"a body may have {TOTAL_BYTES} bytes"))
        if not message.get("more_body", False):
            return _message(b"".join(parts))


def _message(body: bytes) -> bytes:
    sent = parse(body)
    if not isinstance(sent, dict) or not isinstance(sent.get("method"), str):
        raise Refused(Refusal("malformed", "the body is not one JSON-RPC request"))
    return body


def _malformed(no: Refusal) -> JSONResponse:
    return JSONResponse(error(None, PARSE_ERROR, no), CODES[no.code].http)


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay
