"""Reading: tasks as they are and were, and history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.engine.operations import Shown
from pointsman.engine.views import operation_json, task_json
from pointsman.kernel.operation import Happened, Operation
from pointsman.kernel.task import Task
from pointsman.store.history import Recorded
from pointsman.store.proposals import Kept
from pointsman.types import Instant, Json, iso


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of history as readers see it. `changes` holds what it moved, of the task or of one of its operations; it is
    empty once the payload was pruned."""

    task: str
    version: int
    seq: int | None
    at: Instant
    kind: str
    event: str
    from_state: str | None
    to_state: str
    by: str
    session: str | None
    door: str
    epoch: int
    changes: Mapping[str, Any]
    evidence: Mapping[str, str]
    reason: str | None
    hash: str

    def as_json(self) -> dict[str, Json]:
        """The shape of contract.md: `from` and `to`, times in RFC 3339."""
        names = ("task", "version", "seq", "event", "by", "session", "door", "epoch", "reason", "hash")
        return {
            **{name: getattr(self, name) for name in names},
            "kind": self.kind,
            "at": iso(self.at),
            "from": self.from_state,
            "to": self.to_state,
            "changes": {name: _told(name, value) for name, value in self.changes.items()},
            "evidence": dict(self.evidence),
        }


def _told(name: str, value: Any) -> Json:
    """A change as readers see it: its times in RFC 3339. History keeps µs, which its hashes cover."""
    match name:
        case "created_at" | "since" | "deadline" | "run_at":
            return None if value is None else iso(value)
        case "parked":
            return None if value is None else {**value, "at": iso(value["at"])}
        case "evidence":
            return {check: {**item, "at": iso(item["at"])} for check, item in value.items()}
        case "decisions":
            return [{**item, "at": iso(item["at"])} for item in value]
        case "operation":
            return {member: iso(said) if member in _TIMES and said is not None else said for member, said in value.items()}
        case _:
            return value


_TIMES = ("begun_at", "deadline", "settled_at")


def _operation(payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry of the ledger says of its operation, in as far as readers are told."""
    said = payload.get("operation")
    return {} if said is None else {"operation": {name: said[name] for name in (*_SAID, *_TIMES)}}


_SAID = ("id", "name", "kind", "effect", "request", "status", "attempt", "compensates", "result", "note")


def entry(recorded: Recorded) -> Entry:
    link, payload = recorded.link, recorded.payload or {}
    return Entry(
        task=link.task,
        version=link.version,
        seq=recorded.seq,
        at=link.at,
        kind=link.kind,
        event=link.event,
        from_state=link.from_state,
        to_state=link.to_state,
        by=link.by,
        session=link.session,
        door=link.door,
        epoch=link.epoch,
        changes={**payload.get("changes", {}), **_operation(payload)},
        evidence=payload.get("evidence", {}),
        reason=payload.get("reason"),
        hash=recorded.hash,
    )


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A cancelled task, and what it had done already."""

    task: Task
    report: Happened

    def as_json(self) -> dict[str, Json]:
        found: dict[str, Json] = {"task": task_json(self.task)}
        for name in Happened.__slots__:
            every: Sequence[Operation] = getattr(self.report, name)
            found[name] = [operation_json(Shown(item, "in_doubt" if item.status == "started" else item.status)) for item in every]
        return found


@dataclass(frozen=True, slots=True)
class Proposed:
    """A durable proposal as readers see it: `version` when accepted, `refusal` (its members) when refused."""

    id: str
    task: str
    event: str
    status: str
    by: str
    created_at: Instant
    settled_at: Instant | None
    version: int | None
    refusal: Mapping[str, Any] | None

    def as_json(self) -> dict[str, Json]:
        return {
            **{name: getattr(self, name) for name in ("id", "task", "event", "status", "by", "version")},
            "created_at": iso(self.created_at),
            "settled_at": None if self.settled_at is None else iso(self.settled_at),
            "refusal": None if self.refusal is None else dict(self.refusal),
        }


def proposed(kept: Kept) -> Proposed:
    return Proposed(
        kept.id, kept.task, kept.event, kept.status, kept.principal, kept.created_at, kept.settled_at, kept.version, kept.refused
    )
