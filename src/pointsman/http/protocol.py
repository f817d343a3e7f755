"""uvicorn's HTTP protocol with limits: 800 connections, a head of 32 kB within ten seconds, a body within twenty.

httptools has no such limits (a header of any size is kept whole, half a request is waited for without end), and ASGI
begins only after the head. Whole heads are measured once more by `guard.py` and bodies by `body.py`, which also serve
under other servers.
"""

import asyncio
import json
from asyncio.events import TimerHandle
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from pointsman.http.answer import RETRY_AFTER_S
from pointsman.http.guard import HEAD_LIMIT
from pointsman.http.problem import MEDIA_TYPE, of_http

CONNECTIONS = 800
HEAD_SECONDS = 10.0
BODY_SECONDS = 20.0
LINGER_SECONDS = 1.0


class Bounded(HttpToolsProtocol):
    """Counts bytes while a head is incomplete and time while a request is. The chunk in which a head begins is not
    counted, since it may hold the end of the request before; the loop bounds it."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        self.in_head = False
        self.in_body = False
        self.head_size = 0
        self.timer: TimerHandle | None = None
        self.refused = False
        self.url = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS:
            self.refused = True
            self._answer(503, "too many connections", outcome="not_done")
        else:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        if self.in_head:
            self.head_size += len(data)
            if self.head_size > HEAD_LIMIT:
                self._refuse(431, f"the request's head is over {HEAD_LIMIT} bytes")
                return
        super().data_received(data)
        if self.timer is None and (self.in_head or self.in_body) and not self.refused:
            self._start_timer()

    def on_message_begin(self) -> None:
        self.in_head = True
        self.head_size = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.in_head, self.in_body = False, True
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self.in_body = False
        self._stop_timer()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is not a clean HTTP/1.1 request")

    def _start_timer(self) -> None:
        self.timer = self.loop.call_later(BODY_SECONDS if self.in_body else HEAD_SECONDS, self._late)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def _late(self) -> None:
        if self.in_head or self.in_body:
            self._refuse(408, "the request did not arrive in time")
        else:
            self.transport.close()

    def _refuse(self, status: int, detail: str) -> None:
        """Take no more from this connection, and say why if the fault is in the request whose turn it is. One that
        came whole before it is still answered, as the last."""
        self.refused = True
        self._stop_timer()
        cycle = self.cycle
        if cycle is None or (cycle.response_complete and not self.in_body):
            self._answer(status, detail)
        elif self.pipeline or cycle.response_started:
            self.transport.close()
        elif not cycle.more_body:
            cycle.keep_alive = False
        else:
            cycle.disconnected = True
            cycle.message_event.set()
            self._answer(status, detail)

    def _answer(self, status: int, detail: str, **more: str) -> None:
        """Hang up after a moment of reading and dropping what still comes: closing on unread bytes would reset the
        connection and lose the answer."""
        if self.transport.is_closing():
            return
        known = self.url.startswith(b"/v1/")
        body = json.dumps((of_http(status, detail) if known else {"detail": detail}) | more)
        kind = MEDIA_TYPE if known else "application/json"
        again = f"retry-after: {RETRY_AFTER_S}\r\n" if status == 503 else ""
        self.transport.write(
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\n"
            f"content-length: {len(body)}\r\n{again}connection: close\r\n\r\n{body}".encode()
        )
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
