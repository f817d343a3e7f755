"""JSON Schemas of what `/v1` answers, by name, as the OpenAPI document shows them."""

from collections.abc import Iterable, Mapping

from pointsman.kernel.definition import KINDS, Schema
from pointsman.kernel.operation import STANDINGS

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
ID: Schema = {"type": "string", "format": "uuid"}
TIME: Schema = {"type": "string", "format": "date-time"}
OBJECT: Schema = {"type": "object"}
ANY: Schema = {}
FATE: Schema = {"type": "string", "enum": ["block", "cancel", "continue"]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def closed(properties: Mapping[str, Schema], optional: Iterable[str] = ()) -> Schema:
    """An object with these members and no other."""
    left_out = set(optional)
    required = [name for name in properties if name not in left_out]
    return {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}


def by_name(schema: Schema) -> Schema:
    return {"type": "object", "additionalProperties": schema}


EVIDENCE = closed(
    {
        "status": {"type": "string", "enum": ["pass", "fail", "error", "pending", "stale"]},
        "reason": TEXT,
        "detail": ANY,
        "inputs_digest": TEXT,
        "by": TEXT,
        "at": TIME,
    }
)
TASK = closed(
    {
        "id": ID,
        "machine": TEXT,
        "machine_version": WHOLE,
        "state": TEXT,
        "version": WHOLE,
        "revision": WHOLE,
        "digest": TEXT,
        "fields": OBJECT,
        "owner": or_null(TEXT),
        "session": or_null(TEXT),
        "epoch": WHOLE,
        "lease": or_null(closed({"expires_at": TIME, "live": {"type": "boolean"}})),
        "parked": or_null(closed({"reason": TEXT, "at": TIME})),
        "children": closed({"open": WHOLE, "done": WHOLE, "failed": WHOLE, "cancelled": WHOLE}),
        "waiting": or_null(
            closed({"for": TEXT, "who": or_null(TEXT), "since": TIME, "deadline": or_null(TIME), "satisfiable": {"type": "boolean"}})
        ),
        "priority": WHOLE,
        "tags": many(TEXT),
        "needs": many(TEXT),
        "dedupe_key": or_null(TEXT),
        "parent": or_null(ID),
        "run_at": or_null(TIME),
        "blocked_by": many(closed({"task": ID, "on_failure": FATE})),
        "attempts": closed({"lost": WHOLE, "error": WHOLE, "deferred": WHOLE}),
        "evidence": by_name(ref("Evidence")),
        "approvals": or_null(OBJECT),
        "allowed": many(TEXT),
        "created_at": TIME,
        "updated_at": TIME,
        "dry_run": {"const": True},
    },
    optional=["dry_run", "children"],
)
ENTRY = closed(
    {
        "task": ID,
        "version": WHOLE,
        "seq": or_null(WHOLE),
        "at": TIME,
        "kind": TEXT,
        "event": TEXT,
        "from": or_null(TEXT),
        "to": TEXT,
        "by": TEXT,
        "session": or_null(TEXT),
        "door": TEXT,
        "epoch": WHOLE,
        "changes": OBJECT,
        "evidence": by_name(TEXT),
        "reason": or_null(TEXT),
        "hash": TEXT,
    }
)
DECISION = closed(
    {
        "event": TEXT,
        "by": TEXT,
        "at": TIME,
        "revision": WHOLE,
        "digest": TEXT,
        "shown": or_null(TEXT),
        "machine_version": WHOLE,
        "note": or_null(TEXT),
    }
)
PROPOSAL = closed(
    {
        "id": ID,
        "task": ID,
        "event": TEXT,
        "status": {"type": "string", "enum": ["pending", "accepted", "refused", "superseded"]},
        "by": TEXT,
        "created_at": TIME,
        "settled_at": or_null(TIME),
        "version": or_null(WHOLE),
        "refusal": or_null(OBJECT),
    }
)
_LISTED = many(ref("Operation"))
CANCELLED = closed({"task": ref("Task"), "happened": _LISTED, "in_doubt": _LISTED, "undoable": _LISTED, "not_undoable": _LISTED})
DIFFERENCE = closed(
    {
        "from": WHOLE,
        "to": WHOLE,
        "state": closed({"from": TEXT, "to": TEXT}),
        "fields": by_name(closed({"from": ANY, "to": ANY, "text": TEXT}, optional=["text"])),
    }
)
FAULT = closed({"code": TEXT, "message": TEXT, "place": TEXT, "line": WHOLE})
MACHINE = closed(
    {
        "name": TEXT,
        "version": WHOLE,
        "digest": TEXT,
        "definition": OBJECT,
        "schema": closed({"fields": OBJECT, "create": OBJECT, "events": by_name(OBJECT)}),
        "mermaid": TEXT,
        "faults": many(ref("Fault")),
        "warnings": many(ref("Fault")),
        "tasks": by_name(by_name(WHOLE)),
    }
)
KIND: Schema = {"type": "string", "enum": [*KINDS]}
_ALLOWED = closed(
    {"event": or_null(TEXT), "effect": TEXT, "kind": KIND, "undoable": {"type": "boolean"}, "request": OBJECT, "given": many(TEXT)}
)
REPORT = closed(
    {
        "task": ref("Task"),
        "as_of": WHOLE,
        "created_by": TEXT,
        "contributors": many(TEXT),
        "entries": many(ref("Entry")),
        "decisions": many(ref("Decision")),
        "open": by_name(TEXT),
        "effects": many(_ALLOWED),
    }
)
_ACT = closed({"by": TEXT, "at": TIME})
HOLD = closed(
    {
        "id": ID,
        "match": {"type": "object", "additionalProperties": TEXT},
        "from": TIME,
        "until": or_null(TIME),
        "reason": TEXT,
        "release_per_s": WHOLE,
        "placed": _ACT,
        "lifted": or_null(_ACT),
    }
)
TESTIMONY = closed({"by": TEXT, "epoch": or_null(WHOLE), "status": TEXT, "result": ANY, "note": or_null(TEXT), "at": TIME})
OPERATION = closed(
    {
        "id": ID,
        "task": ID,
        "name": TEXT,
        "kind": KIND,
        "effect": or_null(TEXT),
        "request": ANY,
        "status": {"type": "string", "enum": [*STANDINGS]},
        "result": ANY,
        "epoch": WHOLE,
        "attempt": WHOLE,
        "compensates": or_null(ID),
        "begun": _ACT,
        "deadline": TIME,
        "settles_at": TIME,
        "settled": or_null(closed({"by": TEXT, "at": TIME, "note": or_null(TEXT)})),
        "testimony": many(TESTIMONY),
    }
)
CHECKPOINT = closed({"number": WHOLE, "version": WHOLE, "epoch": WHOLE, "at": TIME})
_PENDING = closed(
    {"name": TEXT, "kind": or_null(KIND), "why": {"type": "string", "enum": ["declared", "planned", "not_done"]}, "id": or_null(ID)}
)
RESUMED = closed(
    {
        "task": ID,
        "state": TEXT,
        "version": WHOLE,
        "epoch": WHOLE,
        "allowed": many(TEXT),
        "operations": closed({"finished": many(ref("Operation")), "in_doubt": many(ref("Operation")), "pending": many(_PENDING)}),
        "checkpoint": or_null(closed({"number": WHOLE, "version": WHOLE, "epoch": WHOLE, "at": TIME, "data": ANY, "progress": ANY})),
        "notes": OBJECT,
        "deadlines": by_name(TIME),
    }
)
PROBLEM: Schema = {
    "type": "object",
    "properties": {
        "type": TEXT,
        "title": TEXT,
        "status": WHOLE,
        "detail": TEXT,
        "code": TEXT,
        "task": or_null(ID),
        "state": or_null(TEXT),
        "version": or_null(WHOLE),
        "failed": many(OBJECT),
        "allowed": many(TEXT),
        "unblock": many(TEXT),
        "recorded": {"type": "boolean"},
        "outcome": {"type": "string", "enum": ["not_done", "unknown"]},
        "retry_after_s": WHOLE,
        "hold": ID,
        "reason": TEXT,
        "until": or_null(TIME),
        "operation": ID,
    },
    "required": ["type", "title", "status", "detail", "code"],
}

COMPONENTS: Mapping[str, Schema] = {
    "Task": TASK,
    "Evidence": EVIDENCE,
    "Entry": ENTRY,
    "Decision": DECISION,
    "Proposal": PROPOSAL,
    "Cancelled": CANCELLED,
    "Difference": DIFFERENCE,
    "Fault": FAULT,
    "Machine": MACHINE,
    "Report": REPORT,
    "Hold": HOLD,
    "Operation": OPERATION,
    "Checkpoint": CHECKPOINT,
    "Resumed": RESUMED,
    "Problem": PROBLEM,
}
