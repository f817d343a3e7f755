"""OpenAPI for the flat paths: the bodies they take and every status they answer. Documentation only: nothing here is
run on a request, and nothing there is generated from it by hand."""

from typing import Any

from pydantic import BaseModel

from pointsman.http.body import BODY_LIMIT
from pointsman.http.flat import Flat, Member, Post, Rows
from pointsman.http.guard import HEAD_LIMIT


class FlatEvidence(BaseModel):
    ok: bool
    reason: str


class FlatOutcome(BaseModel):
    id: str
    state: str
    owner: str | None
    passed: bool | None
    evidence: FlatEvidence | None


class FlatPending(BaseModel):
    proposal: str


class FlatProblem(BaseModel):
    detail: str


class FlatUnavailable(BaseModel):
    detail: str
    outcome: str


class FlatFault(BaseModel):
    type: str
    loc: list[str]
    msg: str


class FlatFaults(BaseModel):
    detail: list[FlatFault]


GUARDED: dict[int | str, dict[str, Any]] = {
    400: {"model": FlatProblem, "description": "Not one clean HTTP request"},
    403: {"model": FlatProblem, "description": "From another machine, through a proxy, or from a page of another origin"},
    408: {"model": FlatProblem, "description": "The request did not arrive in time"},
    421: {"model": FlatProblem, "description": "The Host is not a name of this machine"},
    431: {"model": FlatProblem, "description": f"The head is over {HEAD_LIMIT} bytes"},
    503: {
        "model": FlatUnavailable,
        "description": "The store failed, or too many are connected; `outcome`: may something be written",
    },
}
_BODIES: dict[int | str, dict[str, Any]] = {
    413: {"model": FlatProblem, "description": f"The body is over {BODY_LIMIT} bytes"},
    415: {"model": FlatProblem, "description": "The body is not plain application/json"},
    422: {"model": FlatFaults, "description": "The body does not parse, or its members do not fit"},
}


def post_responses(post: Post, *, slow: bool = False) -> dict[int | str, dict[str, Any]]:
    own: dict[int | str, dict[str, Any]] = {200: {"model": FlatOutcome}, 409: {"model": FlatProblem, "description": post.conflict}}
    later = {202: {"model": FlatPending, "description": "A check is still running; GET /v1/proposals/{id} tells its outcome"}}
    return own | GUARDED | _BODIES | (later if slow else {})


def rows_responses(rows: Rows) -> dict[int | str, dict[str, Any]]:
    fine: dict[str, Any] = {"description": "Rows", "content": {"application/json": {"schema": _rows(rows)}}}
    return {200: fine, **GUARDED, **({422: _BODIES[422]} if rows.inbox else {})}


def figures_responses() -> dict[int | str, dict[str, Any]]:
    """Prometheus' text format."""
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {200: {"description": "Figures in Prometheus' text format", "content": text}, **GUARDED}


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
