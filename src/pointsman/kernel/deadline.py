"""Deadlines: what happens when a task has been in a state for as long as it may.

Each due moment fires once, as an entry by pointsman: a reminder, an escalation, or the state's declared event. The event is
taken with rights set aside, since nobody asks for it; state, limits, guards, checks and evidence are judged as ever. What is
refused then is an entry too, which says why, and sets a later deadline: nobody else may be there to bring the task on. While its
task is parked, an operator holds it or a limit leaves nothing, an event waits and leaves no trace. Firing takes the deadline off
the task; a new state brings its own.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from pointsman.errors import Refused
from pointsman.kernel import decide, hold
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.definition import NOTICES, Definition, Limit
from pointsman.kernel.hold import Aim, Hold
from pointsman.kernel.lease import POINTSMAN
from pointsman.kernel.order import UNASKED
from pointsman.kernel.schema import arguments
from pointsman.kernel.steps import Accept, Decision, NeedChecks, Refuse
from pointsman.kernel.task import Task, changes
from pointsman.types import Duration, Instant, hours, iso

KIND = "deadline"
RARELY: Duration = hours(24)


def asked(machine: Bound, task: Task, now: Instant) -> Case | None:
    """The question that a passed deadline puts, as if pointsman asked it; None where there is only something to tell."""
    name = machine.definition.state[task.state].on_deadline
    if name is None or name in NOTICES:
        return None
    event = machine.definition.event[name]
    values, _ = arguments(machine.definition, event, {})
    at = max(now, task.updated_at + 1)
    return Case(machine, task.but(deadline=None), event, Proposal(name, {}, POINTSMAN, strict=False), values, at)


def noticed(machine: Bound, task: Task, now: Instant) -> Accept:
    """The entry that tells of a passed deadline for which no event is declared."""
    name = machine.definition.state[task.state].on_deadline
    return _noticed(task, max(now, task.updated_at + 1), name or KIND, _due(task))


def fired(case: Case, task: Task) -> Accept | None:
    """The entry of a passed deadline whose event was asked for; None while a limit leaves nothing for it."""
    match _decided(case):
        case Accept(after, payload=payload) as accept:
            return replace(accept, kind=KIND, refusal=None, payload={**payload, "changes": changes(task, after), "reason": _due(task)})
        case Refuse(refusal):
            if "retry_after_s" in refusal.extra:
                return None
            why = f"{refusal.code}: {refusal.detail}"
        case NeedChecks(needs):
            why = f"evidence_pending: not judged before: {', '.join(need.check for need in needs)}"
    return _noticed(task, case.now, case.event.name, f"{_due(task)}; refused: {why}", _again(case))


def _again(case: Case) -> Instant:
    """When a refused event is asked for again: each time when the task has been in its state for twice as long, but not less often
    than once a day, or once in the time that the state declares when that is longer."""
    declared = case.machine.definition.state[case.task.state].deadline or 0
    return case.now + min(case.now - case.task.since, max(declared, RARELY))


def _due(task: Task) -> str:
    assert task.deadline is not None, "who asks has seen that it is due"
    return f"due at {iso(task.deadline)}"


class Overdue(Protocol):
    """What a look at a task tells of whether its deadline may fire."""

    @property
    def state(self) -> str: ...
    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def updated_at(self) -> Instant: ...
    @property
    def parked(self) -> object: ...


def stopped(definition: Definition, task: Overdue, in_use: Iterable[Hold], now: Instant) -> bool:
    """Whether a due event waits: for a hold to end, or for its task to be unparked. What is only told waits for nothing."""
    event = definition.state[task.state].on_deadline
    if event is None or event in NOTICES:
        return False
    aim = Aim(definition.name, event, False, (task.state,), task.tags, task.updated_at)
    return task.parked is not None or hold.stopping(in_use, aim, now) is not None


def limits(definition: Definition, state: str) -> tuple[Limit, ...]:
    """The limits under which the event of a deadline stands."""
    event = definition.event.get(definition.state[state].on_deadline or "")
    return () if event is None else event.limits


def _decided(case: Case) -> Decision:
    try:
        return decide.judge(case, {}, UNASKED)
    except Refused as refused:  # a computed field or guard that fails
        return Refuse(refused.refusal)


def _noticed(task: Task, at: Instant, event: str, reason: str, again: Instant | None = None) -> Accept:
    after = task.but(version=task.version + 1, updated_at=at, deadline=again)
    return Accept(after, KIND, event, task.state, {"changes": changes(task, after), "reason": reason})
