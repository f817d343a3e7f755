"""Pointsman: agents and people propose; a declared state machine decides, in one atomic, recorded step."""

from pointsman.builtin import Tasks
from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import DefinitionError, Refused, StoreError
from pointsman.kernel.annotations import NonBlank
from pointsman.kernel.authoring import Machine
from pointsman.kernel.definition import Retry
from pointsman.kernel.marks import (
    Effect,
    Event,
    Limit,
    Schedule,
    State,
    always,
    check,
    computed,
    field,
    guard,
    judge,
    note,
    optional,
    result,
)
from pointsman.kernel.rules import Principal, contributor, owner, person, role
from pointsman.kernel.task import Task
from pointsman.kernel.verdict import Verdict
from pointsman.types import hours, minutes, seconds
from pointsman.worker.worker import Outcome, Work, Worker

__all__ = [
    "DefinitionError",
    "Door",
    "Effect",
    "Event",
    "Limit",
    "Machine",
    "NonBlank",
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
