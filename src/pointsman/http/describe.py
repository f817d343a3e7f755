"""OpenAPI for the flat paths: the bodies they take and every status they answer. Documentation only: nothing here is
run on a request, and nothing there is generated from it by hand."""

from typing import Any

from pydantic import BaseModel

from pointsman.http.body import BODY_LIMIT
from pointsman.http.flat import Flat, Member, Post, Rows
from pointsman.http.guard import HEAD_LIMIT


class Evidence(BaseModel):
    ok: bool
    reason: str


class Outcome(BaseModel):
    id: str
    state: str
    owner: str | None
    passed: bool | None
    evidence: Evidence | None


class Problem(BaseModel):
    detail: str


class Unavailable(BaseModel):
    detail: str
    outcome: str


class Fault(BaseModel):
    type: str
    loc: list[str]
    msg: str


class Faults(BaseModel):
    detail: list[Fault]


_GUARDED: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "Not one clean HTTP request"},
    403: {"model": Problem, "description": "From another machine, through a proxy, or from a page of another origin"},
    408: {"model": Problem, "description": "The request did not arrive in time"},
    421: {"model": Problem, "description": "The Host is not a name of this machine"},
    431: {"model": Problem, "description": f"The head is over {HEAD_LIMIT} bytes"},
    503: {
        "model": Unavailable,
        "description": "The store failed, or too many are connected; `outcome`: may something be written",
    },
}
_BODIES: dict[int | str, dict[str, Any]] = {
    413: {"model": Problem, "description": f"The body is over {BODY_LIMIT} bytes"},
    415: {"model": Problem, "description": "The body is not plain application/json"},
    422: {"model": Faults, "description": "The body does not parse, or its members do not fit"},
}


def post_responses(post: Post) -> dict[int | str, dict[str, Any]]:
    own = {200: {"model": Outcome}, 409: {"model": Problem, "description": post.conflict}}
    return {**own, **_GUARDED, **_BODIES}


def rows_responses(rows: Rows) -> dict[int | str, dict[str, Any]]:
    fine: dict[str, Any] = {"description": "Rows", "content": {"application/json": {"schema": _rows(rows)}}}
    return {200: fine, **_GUARDED, **({422: _BODIES[422]} if rows.inbox else {})}


def request_body(post: Post) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {member.name: _member(member) for member in post.members},
        "required": [member.name for member in post.members if member.required],
        "additionalProperties": False,
    }
    headers = [_header("Pointsman-As", _name()), _header("Idempotency-Key", {"type": "string", "minLength": 1, "maxLength": 128})]
    return {"parameters": headers, "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def parameters(rows: Rows) -> dict[str, Any]:
    if rows.inbox is None:
        return {}
    return {"parameters": [{"name": rows.inbox, "in": "query", "required": True, "schema": _name()}]}


def _header(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _member(member: Member) -> dict[str, Any]:
    text = {"task": {"type": "string", "format": "uuid"}, "caller": _name()}.get(member.kind, {"type": "string"})
    return text if member.required else {"anyOf": [text, {"type": "null"}]}


def _name() -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": 128}


def _rows(rows: Rows) -> dict[str, Any]:
    row = {"type": "object", "properties": {name: {} for name in rows.columns}, "required": list(rows.columns)}
    return {"type": "object", "properties": {"rows": {"type": "array", "items": row}}, "required": ["rows"]}


def operation(flat: Flat, path: str) -> str:
    return f"{flat.machine}_{path.strip('/').replace('-', '_')}"
