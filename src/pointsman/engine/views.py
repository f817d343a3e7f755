"""A task as JSON, in the shape of contract.md: times in RFC 3339, absent parts null."""

from pointsman.kernel.task import Evidence, Task
from pointsman.types import Json, iso


def task_json(task: Task) -> dict[str, Json]:
    plain = ("id", "machine", "machine_version", "state", "version", "revision", "digest", "owner", "session", "epoch", "priority")
    return {
        **{name: getattr(task, name) for name in plain},
        "fields": dict(task.fields),
        "evidence": {name: evidence_json(item) for name, item in task.evidence.items()},
        "allowed": list(task.allowed),
        "created_at": iso(task.created_at),
        "updated_at": iso(task.updated_at),
    }


def evidence_json(evidence: Evidence) -> dict[str, Json]:
    return {
        "status": evidence.status,
        "reason": evidence.reason,
        "detail": evidence.detail,
        "inputs_digest": evidence.inputs_digest,
        "by": evidence.by,
        "at": iso(evidence.at),
    }
