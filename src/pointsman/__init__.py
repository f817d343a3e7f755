"""Pointsman: agents and people propose; a declared state machine decides, in one atomic, recorded step."""

from pointsman.builtin import Tasks
from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import DefinitionError, Refused, StoreError
from pointsman.kernel.annotations import NonBlank
from pointsman.kernel.authoring import Machine
from pointsman.kernel.definition import Retry
from pointsman.kernel.functions import check, computed, guard, judge
from pointsman.kernel.marks import Effect, Event, Limit, Schedule, State, always, field, note, optional, result
from pointsman.kernel.rules import Principal, contributor, owner, person, role
from pointsman.kernel.task import Task
from pointsman.kernel.verdict import Verdict
from pointsman.types import hours, minutes, seconds
from pointsman.worker.outcomes import Cancel, Defer, Done, EffectFailed, Fail, Finding, Found, NotFound, NotSent, Outcome, Unknown
from pointsman.worker.work import AsyncWork, Work
from pointsman.worker.worker import Worker

__all__ = [
    "AsyncWork",
    "Cancel",
    "Defer",
    "DefinitionError",
    "Done",
    "Door",
    "Effect",
    "EffectFailed",
    "Event",
    "Fail",
    "Finding",
    "Found",
    "Limit",
    "Machine",
    "NonBlank",
    "NotFound",
    "NotSent",
    "Outcome",
    "Pointsman",
    "Principal",
    "Refused",
    "Retry",
    "Schedule",
    "State",
    "StoreError",
    "Task",
    "Tasks",
    "Unknown",
    "Verdict",
    "Work",
    "Worker",
    "always",
    "check",
    "computed",
    "contributor",
    "field",
    "guard",
    "hours",
    "judge",
    "minutes",
    "note",
    "optional",
    "owner",
    "person",
    "result",
    "role",
    "seconds",
]
