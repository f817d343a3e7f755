"""Reading: tasks as they are and were, and history."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointsman.errors import Refusal, Refused
from pointsman.kernel.chain import same
from pointsman.kernel.definition import Definition
from pointsman.kernel.task import Task, apply
from pointsman.store import history
from pointsman.store.database import Tx
from pointsman.store.history import Recorded
from pointsman.types import Instant, Json, iso


@dataclass(frozen=True, slots=True)
class Entry:
    """One step of history as readers see it. `changes` holds what it moved; it is empty once the payload was pruned."""

    task: str
    version: int
    seq: int
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
            "changes": dict(self.changes),
            "evidence": dict(self.evidence),
        }


def entry(recorded: Recorded) -> Entry:
    link, payload = recorded.link, recorded.payload or {}
    return Entry(
        task=link.task,
        version=link.version,
        seq=recorded.key,
        at=link.at,
        kind=link.kind,
        event=link.event,
        from_state=link.from_state,
        to_state=link.to_state,
        by=link.by,
        session=link.session,
        door=link.door,
        epoch=link.epoch,
        changes=payload.get("changes", {}),
        evidence=payload.get("evidence", {}),
        reason=payload.get("reason"),
        hash=recorded.hash,
    )


def step(task: Task | None, recorded: Recorded) -> Task:
    """Fold one entry into the task before it."""
    payload = recorded.payload
    if payload is None:
        raise Refused(Refusal("unknown_task", "this version was pruned", task=recorded.link.task))
    return apply(task, recorded.link.task, recorded.link.version, recorded.link.at, payload["changes"])


def at_version(tx: Tx, task_id: str, version: int) -> tuple[Recorded, Task]:
    """A task as it was at a version, with the entry that made it so."""
    entries = history.of_task(tx, task_id, version)
    if not entries or entries[-1].link.version != version:
        raise Refused(Refusal("unknown_task", f"no task has this id and a version {version}", task=task_id))
    task: Task | None = None
    for recorded in entries:
        task = step(task, recorded)
    assert task is not None, "entries is not empty"
    return entries[-1], task


def what_changed(tx: Tx, definition: Definition, task: Task, shown: str) -> list[dict[str, Json]]:
    """Content fields that differ from the content whose digest was shown; empty when no version had that digest."""
    before: Task | None = None
    for recorded in history.of_task(tx, task.id):
        before = step(before, recorded)
        if before.digest == shown:
            moved = [name for name in definition.content if not same(before.fields[name], task.fields[name])]
            return [{"field": name, "shown_at_version": before.version} for name in moved]
    return []
