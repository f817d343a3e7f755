"""Who may speak to a server in open mode: programs and pages of this machine, and nobody through a proxy.

In open mode a name is all the identity there is, so the only wall is the loopback address. A web page elsewhere can
still reach it through the reader's browser: by another name for 127.0.0.1 (DNS rebinding), which `Host` betrays, or
by a form or fetch of its own, which `Origin` betrays. Both are judged before any route, together with what makes two
HTTP parsers read one request differently.

A wrong `Host` is 421: the request was meant for another server. The rest is 403, except what is no clean HTTP: 400.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from pointsman.http.problem import said, speaks

HEAD_LIMIT = 32_768
_FORWARDED = frozenset({b"forwarded", b"via", b"x-real-ip"})

_LOCAL_ONLY = (
    "this server is in open mode and answers only its own machine, without a proxy between; "
    "keys, which open it to others, come with a later version (`pointsman key create`); until then use an SSH tunnel"
)


@dataclass(frozen=True, slots=True)
class Wrong:
    status: int
    detail: str


@dataclass(slots=True)
class Head:
    """What the guard reads off the headers, in one pass."""

    size: int = 0
    hosts: list[bytes] = field(default_factory=list[bytes])
    origins: list[bytes] = field(default_factory=list[bytes])
    lengths: int = 0
    codings: list[bytes] = field(default_factory=list[bytes])
    forwarded: bool = False

    @classmethod
    def of(cls, scope: Scope) -> "Head":
        head = cls(size=len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b""))
        for name, value in scope["headers"]:
            head.note(name, value)
        return head

    def note(self, name: bytes, value: bytes) -> None:
        self.size += len(name) + len(value) + 4
        if name == b"host":
            self.hosts.append(value)
        elif name == b"origin":
            self.origins.append(value)
        elif name == b"content-length":
            self.lengths += 1
        elif name == b"transfer-encoding":
            self.codings.append(value.lower())
        elif name in _FORWARDED or name.startswith(b"x-forwarded-"):
            self.forwarded = True

    @property
    def clean(self) -> bool:
        """One Host, and one way at most to tell where the body ends."""
        return len(self.hosts) == 1 and self.lengths + len(self.codings) <= 1 and self.codings in ([], [b"chunked"])


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine, without asking a name server."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")


def _name(authority: str) -> str:
    """The host of `host`, `host:port` or `[v6]:port`; nothing of anything else."""
    found = _AUTHORITY.fullmatch(authority)
    return found[1] if found else ""


def judge(scope: Scope) -> Wrong | None:
    head = Head.of(scope)
    if head.size > HEAD_LIMIT:
        return Wrong(431, f"the request's head is over {HEAD_LIMIT} bytes")
    if not head.clean:
        return Wrong(400, "a request has one Host, and one Content-Length or `Transfer-Encoding: chunked` or neither")
    client = scope.get("client")
    if head.forwarded or (client and not is_loopback(client[0])):
        return Wrong(403, _LOCAL_ONLY)
    host = head.hosts[0].decode("latin-1")
    if not is_loopback(_name(host)):
        return Wrong(421, "this server is in open mode and goes by localhost, 127.0.0.1 and [::1] only")
    if head.origins and head.origins != [f"{scope['scheme']}://{host}".encode("latin-1")]:
        return Wrong(403, "requests of pages from another origin are refused")
    return None


class Guard:
    """ASGI middleware around every route."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wrong = judge(scope) if scope["type"] == "http" else None
        if wrong is None:
            await self.app(scope, receive, send)
        else:
            await _answer(scope, wrong)(scope, receive, send)


def _answer(scope: Scope, wrong: Wrong) -> Response:
    closing = {"connection": "close"}
    if speaks(scope):
        return said(wrong.status, wrong.detail, closing)
    return JSONResponse({"detail": wrong.detail}, wrong.status, closing)
