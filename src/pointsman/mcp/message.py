"""A JSON-RPC message as it arrives, judged before the SDK reads it, as every other door judges JSON.

The SDK takes the last of two equal keys, and drops without an answer what it cannot decode. What it must not see is
answered here: text that is not one JSON object is a protocol error; a tool call whose text no store can hold is a tool
result that says so.
"""

import json
from typing import Any

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.ingest import faults, parse

PARSE_ERROR = -32700
INVALID_REQUEST = -32600


def unread(body: bytes) -> dict[str, Any] | None:
    """The answer to a message that goes no further; None for one that the SDK may read."""
    try:
        sent = parse(body)
    except Refused as no:
        return error(_id(body), PARSE_ERROR, no.refusal)
    if not isinstance(sent, dict):
        return error(None, INVALID_REQUEST, Refusal("malformed", "the message is not one JSON-RPC object"))
    found = faults(sent)
    return _unfit(sent, invalid(*found).refusal) if found else None


def _id(body: bytes) -> Any:
    """The id of a message that is not taken, where a plain reader finds one: whoever sent it waits for an answer to it."""
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return _of(sent) if isinstance(sent, dict) else None


def _of(sent: dict[str, Any]) -> Any:
    id = sent.get("id")
    return id if isinstance(id, str | int) and not faults(id) else None


def error(id: Any, code: int, no: Refusal) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": no.detail, "data": no.as_json()}}


def _unfit(sent: dict[str, Any], no: Refusal) -> dict[str, Any]:
    id = _of(sent)
    if sent.get("method") != "tools/call":
        return error(id, INVALID_REQUEST, no)
    refused = no.as_json()
    content = [{"type": "text", "text": json.dumps(refused)}]
    return {"jsonrpc": "2.0", "id": id, "result": {"content": content, "structuredContent": refused, "isError": True}}
