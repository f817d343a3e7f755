"""What readers get as JSON: tasks, evidence, decisions and machines, times in RFC 3339, absent parts null."""

from collections.abc import Mapping

from pointsman.engine.operations import Resumed, Shown
from pointsman.errors import Fault
from pointsman.kernel import forms
from pointsman.kernel.cautions import cautions
from pointsman.kernel.chain import digest
from pointsman.kernel.definition import Definition
from pointsman.kernel.draw import mermaid
from pointsman.kernel.exported import export
from pointsman.kernel.hold import Hold
from pointsman.kernel.operation import Pending
from pointsman.kernel.task import Decided, Evidence, Task, Waiting, plain
from pointsman.store.checkpoints import Checkpoint
from pointsman.store.operations import Testimony
from pointsman.types import Json, iso

_PLAIN = ("id", "machine", "machine_version", "state", "version", "revision", "digest", "owner", "session", "epoch", "priority")


def task_json(task: Task) -> dict[str, Json]:
    """`children` is there where somebody looked for them and there are some."""
    return {
        **{name: getattr(task, name) for name in _PLAIN},
        "run_at": None if task.run_at is None else iso(task.run_at),
        "tags": list(task.tags),
        "needs": list(task.needs),
        "dedupe_key": task.dedupe_key,
        "parent": task.parent,
        "blocked_by": [plain(item) for item in task.blocked_by],
        "attempts": plain(task.attempts),
        "parked": None if task.parked is None else {"reason": task.parked.reason, "at": iso(task.parked.at)},
        **({} if task.children is None else {"children": plain(task.children)}),
        "waiting": None if task.waiting is None else waiting_json(task.waiting),
        "approvals": None,
        "lease": None if task.lease is None else {"expires_at": iso(task.lease.expires_at), "live": task.lease.live},
        "fields": dict(task.fields),
        "evidence": evidence_json(task.evidence),
        "allowed": list(task.allowed),
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
    }


def waiting_json(waiting: Waiting) -> dict[str, Json]:
    return {
        "for": waiting.cause,
        "who": waiting.who,
        "since": iso(waiting.since),
        "deadline": None if waiting.deadline is None else iso(waiting.deadline),
        "satisfiable": waiting.satisfiable,
    }


def evidence_json(evidence: Mapping[str, Evidence]) -> dict[str, Json]:
    """Evidence by check."""
    return {name: _judged(item) for name, item in evidence.items()}


def _judged(evidence: Evidence) -> dict[str, Json]:
    return {
        "status": evidence.status,
        "reason": evidence.reason,
        "detail": evidence.detail,
        "inputs_digest": evidence.inputs_digest,
        "by": evidence.by,
        "at": iso(evidence.at),
    }


def decided_json(decided: Decided) -> dict[str, Json]:
    """`shown` is null for a decision that did not name what it judged."""
    names = ("event", "by", "revision", "digest", "shown", "machine_version", "note")
    return {**{name: getattr(decided, name) for name in names}, "at": iso(decided.at)}


def hold_json(hold: Hold) -> dict[str, Json]:
    """`from` and `until` are when it stops what it matches; `lifted` is null until somebody lifts it."""
    return {
        "id": hold.id,
        "match": hold.match.as_json(),
        "from": iso(hold.begins),
        "until": None if hold.until is None else iso(hold.until),
        "reason": hold.reason,
        "release_per_s": hold.release_per_s,
        "placed": {"by": hold.placed_by, "at": iso(hold.placed_at)},
        "lifted": None if hold.lifted_at is None else {"by": hold.lifted_by, "at": iso(hold.lifted_at)},
    }


def operation_json(shown: Shown) -> dict[str, Json]:
    """An operation as it stands; `testimony` is what somebody said of it who did not own the task any more."""
    item = shown.operation
    settled: Json = None if item.settled_at is None else {"by": item.settled_by, "at": iso(item.settled_at), "note": item.note}
    return {
        **{name: getattr(item, name) for name in ("id", "task", "name", "kind", "effect", "request")},
        "status": shown.standing,
        "result": item.result,
        **{name: getattr(item, name) for name in ("epoch", "attempt", "compensates")},
        "begun": {"by": item.begun_by, "at": iso(item.begun_at)},
        "deadline": iso(item.deadline),
        "settles_at": iso(item.settles_at),
        "settled": settled,
        "testimony": [_testimony(said) for said in shown.testimony],
    }


def _testimony(said: Testimony) -> dict[str, Json]:
    return {**{name: getattr(said, name) for name in ("by", "epoch", "status", "result", "note")}, "at": iso(said.at)}


def checkpoint_json(kept: Checkpoint) -> dict[str, Json]:
    """What its writer is answered: where it stands, without what it holds."""
    return {"number": kept.number, "version": kept.version, "epoch": kept.epoch, "at": iso(kept.at)}


def resumed_json(found: Resumed) -> dict[str, Json]:
    task, last = found.task, found.checkpoint
    return {
        **{name: getattr(task, name) for name in ("state", "version", "epoch")},
        "task": task.id,
        "allowed": list(task.allowed),
        "operations": {
            "finished": [operation_json(Shown(item, item.status)) for item in found.finished],
            "in_doubt": [operation_json(Shown(item, standing)) for item, standing in found.in_doubt],
            "pending": [plain_pending(item) for item in found.pending],
        },
        "checkpoint": None if last is None else {**checkpoint_json(last), "data": last.data, "progress": last.progress},
        "notes": dict(found.notes),
        "deadlines": {name: iso(at) for name, at in found.deadlines.items()},
    }


def plain_pending(item: Pending) -> dict[str, Json]:
    return {"name": item.name, "kind": item.kind, "why": item.why, "id": item.operation}


def machine_json(definition: Definition, tasks: Mapping[str, Json]) -> dict[str, Json]:
    """A served machine: it has no faults, or it would not be served. `tasks` counts by version and state."""
    form = export(definition)
    return {
        "name": definition.name,
        "version": definition.version,
        "digest": digest("machine", form),
        "definition": form,
        "schema": schema_json(definition),
        "mermaid": mermaid(definition),
        "faults": [],
        "warnings": [fault_json(item) for item in cautions(definition)],
        "tasks": dict(tasks),
    }


def schema_json(definition: Definition) -> dict[str, Json]:
    """JSON Schemas: of a task's fields, of the fields that make one, and of what each event takes."""
    return {
        "fields": forms.fields(definition),
        "create": forms.creation(definition),
        "events": {event.name: forms.arguments(definition, event) for event in definition.events},
    }


def fault_json(fault: Fault) -> dict[str, Json]:
    return {"code": fault.code, "message": fault.message, "place": fault.place, "line": fault.line}
