"""Problem details, RFC 9457: how `/v1` says no, whoever says it: a rule, the store, a route, the guard or the protocol."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response
from starlette.types import Scope

from pointsman.errors import CODES, Refused, StoreError
from pointsman.http.answer import RETRY_AFTER_S, encode

MEDIA_TYPE = "application/problem+json"
PREFIX = "/v1/"

SAID_BY_HTTP: Mapping[int, str] = {
    400: "malformed",
    403: "forbidden",
    404: "unknown_path",
    405: "method_not_allowed",
    408: "timed_out",
    413: "too_large",
    421: "misdirected",
    431: "head_too_large",
    500: "internal_error",
    503: "overloaded",
}
"""The code of a problem that is about HTTP itself, by status."""


def speaks(scope: Scope) -> bool:
    """Whether a request is for a path below `/v1/`, and so gets its problems in this form."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")).startswith(PREFIX)


def members(status: int, code: str, title: str, detail: str) -> dict[str, Any]:
    return {"type": f"urn:pointsman:{code}", "title": title, "status": status, "detail": detail, "code": code}


def of_http(status: int, detail: str) -> dict[str, Any]:
    """The members of a problem about HTTP itself."""
    return members(status, SAID_BY_HTTP[status], HTTPStatus(status).phrase, detail)


def said(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(of_http(status, detail)), status, headers, MEDIA_TYPE)


def refused(no: Refused, *, conditional: bool = False) -> Response:
    """A refusal with all its members. `conditional` is a request with If-Match: its stale version is a failed
    precondition."""
    status = 412 if conditional and no.code == "stale_version" else CODES[no.code].http
    told = members(status, no.code, CODES[no.code].meaning, no.detail) | no.refusal.as_json()
    return Response(encode(told), status, _headers(no), MEDIA_TYPE)


def _headers(no: Refused) -> dict[str, str]:
    wait_s = RETRY_AFTER_S if isinstance(no, StoreError) else no.refusal.extra.get("retry_after_s")
    again = {} if wait_s is None else {"retry-after": str(wait_s)}
    return again | ({"idempotent-replayed": "true"} if no.replayed else {})
