"""A proposal, and the question it puts: one task, one event, well-formed values, one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.definition import Event
from pointsman.kernel.graph import Upstream
from pointsman.kernel.hold import Aim, Hold
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.types import Duration, Fields, Instant


@dataclass(frozen=True, slots=True)
class Proposal:
    """Somebody asking for an event. `strict` doors must name the epoch (owners) and the digest shown (decisions);
    `lease` is how long an acquiring caller wants to hold the task, the state's own time if not said."""

    event: str
    args: Mapping[str, Any]
    by: Principal
    strict: bool = True
    session: str | None = None
    epoch: int | None = None
    expect_version: int | None = None
    shown: str | None = None
    lease: Duration | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One question, with all that its rules look at. `upstreams` are the tasks that the task still waits for; `holds` those of
    operators that match, and `found` is the task before a lapse was recorded on the way: both only where there are holds."""

    machine: Bound
    task: Task
    event: Event
    proposal: Proposal
    values: Fields
    now: Instant
    upstreams: tuple[Upstream, ...] = ()
    holds: tuple[Hold, ...] = ()
    found: Task | None = None

    def aim(self, found: Task | None) -> Aim:
        """The event as holds look at it."""
        task, event = self.task, self.event
        before = found or task
        return Aim(task.machine, event.name, event.acquires, (before.state, task.state), task.tags, before.updated_at)

    def no(self, code: str, detail: str, **members: Any) -> Refusal:
        return refuse(self.machine.definition, self.task, self.proposal.by, code, detail, **members)

    def invalid(self, *faults: tuple[str, str]) -> Refusal:
        listed = [{"path": path, "message": message} for path, message in faults]
        return self.no("invalid", "; ".join(f"{path}: {message}" for path, message in faults), failed=listed)
