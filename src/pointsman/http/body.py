"""Bytes of a request body, under limits: what may come in, and how much. `protocol.py` limits how long it may take."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

BODY_LIMIT = 1 << 20
LINGER_SECONDS = 1.0


class TooLarge(Exception):
    """The body is over the limit. Part of it may still be on its way."""


async def read_body(request: Request) -> bytes:
    """The body of a JSON request. Raises TooLarge, or HTTPException 415 or 400."""
    expect_json(request.headers)
    body = bytearray()
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "the body did not arrive whole")
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise TooLarge
        if not message.get("more_body", False):
            return bytes(body)


def expect_json(headers: Headers) -> None:
    """One plain `application/json`. A form or plain text, which any web page may post, is refused with the rest."""
    if not _is_json(headers.getlist("content-type")):
        raise HTTPException(415, "the body must be application/json")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HTTPException(415, "the body must come without a content encoding")


def _is_json(kinds: list[str]) -> bool:
    if kinds == ["application/json"]:
        return True
    kind, _, charset = kinds[0].lower().partition(";") if len(kinds) == 1 else ("", "", "")
    return kind.strip() == "application/json" and charset.strip().replace('"', "") in ("", "charset=utf-8")


class TooLargeResponse(Response):
    """413, sent whole at once; then what the client is still sending is read and dropped for a moment, since closing
    on unread bytes would reset the connection and lose the answer."""

    status_code = 413

    def __init__(self, members: Mapping[str, Any], media_type: str = "application/json"):
        self.body = json.dumps(members).encode()
        self.media_type = media_type.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = str(len(self.body)).encode()
        headers = [(b"content-type", self.media_type), (b"content-length", length), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await _drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive: Receive) -> None:
    try:
        async with asyncio.timeout(LINGER_SECONDS):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        return
