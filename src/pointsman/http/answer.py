"""What the flat service says: a task's row, or a refusal, as bytes."""

from collections.abc import Mapping, Sequence
from json import JSONEncoder
from typing import Any

from starlette.responses import Response

from pointsman.errors import CODES, Refused, StoreError
from pointsman.http.flat import CONFLICTS, Flat, Post
from pointsman.kernel.task import Task

STATUS: Mapping[str, int] = {"malformed": 422, "unknown_task": 409, "self_approval": 409}
"""Where the flat service differs from the status in `CODES`."""

RETRY_AFTER_S = 1


def encode(value: Any) -> bytes:
    """Compact JSON in ASCII, which no text can make fail."""
    return _encode(value).encode()


_encode = JSONEncoder(separators=(",", ":")).encode


def reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


def evidence(task: Task, check: str) -> dict[str, Any] | None:
    """`{"ok", "reason"}`; None for a check that was never run."""
    found = task.evidence.get(check)
    return None if found is None else verdict(found.status, found.reason)


def verdict(status: str, reason: str) -> dict[str, Any]:
    return {"ok": status == "pass", "reason": reason}


def outcome(task: Task, check: str) -> dict[str, Any]:
    """What a POST that was accepted answers."""
    found = evidence(task, check)
    passed = None if found is None else found["ok"]
    return {"id": task.id, "state": task.state, "owner": task.owner, "passed": passed, "evidence": found}


def row(task: Task, columns: Sequence[str], check: str) -> dict[str, Any]:
    outside = {"id": task.id, "state": task.state, "owner": task.owner, "evidence": evidence(task, check)}
    return {name: outside[name] if name in outside else task.fields.get(name) for name in columns}


def refusal(no: Refused, post: Post | None, flat: Flat) -> Response:
    """FastAPI's error shapes: a list of faults for 422, one line for the rest."""
    if isinstance(no, StoreError):
        return unavailable(no)
    status = STATUS.get(no.code, CODES[no.code].http)
    wait_s = no.refusal.extra.get("retry_after_s")
    headers = {} if wait_s is None else {"retry-after": str(wait_s)}
    return reply({"detail": faults(no, post) if status == 422 else sentence(no, post, flat)}, status, headers)


def unavailable(no: StoreError) -> Response:
    return reply({"detail": no.detail, "outcome": no.outcome}, 503, {"retry-after": str(RETRY_AFTER_S)})


def sentence(no: Refused, post: Post | None, flat: Flat) -> str:
    if post is not None and no.code in CONFLICTS:
        return post.conflict
    if no.code == "evidence_failed":
        return f"evidence failed: {_failed(no, flat.evidence)}"
    return no.detail


def _failed(no: Refused, check: str) -> dict[str, Any]:
    found = next((item for item in no.failed if item.get("check") == check), no.failed[0])
    return verdict(found["status"], found["reason"])


def faults(no: Refused, post: Post | None) -> list[dict[str, Any]]:
    """One entry for each fault, placed by the caller's own word where a field has another name in the body."""
    spoken = {member.sets: member.name for member in post.members if member.sets} if post else {}
    listed = no.failed or [{"path": "", "message": no.detail}]
    return [{"type": no.code, "loc": _place(str(item["path"]), spoken), "msg": item["message"]} for item in listed]


def _place(path: str, spoken: Mapping[str, str]) -> list[str]:
    parts = [part for part in path.split(".") if part not in ("", "args", "fields")]
    where = [] if parts and parts[0] in ("query", "header") else ["body"]
    return where + [spoken.get(part, part) for part in parts]
