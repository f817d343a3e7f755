"""Deadlines: what happens when a task has been in a state for as long as it may.

Each due moment fires once, as an entry by pointsman: a reminder, an escalation, or the state's declared event. The event is
taken with rights set aside, since nobody asks for it; state, guards, checks and evidence are judged as ever. What is
refused then is an entry too, which says why, so that it is not tried for ever. Firing takes the deadline off the task; a new
state brings its own.
"""

from dataclasses import replace

from pointsman.errors import Refused
from pointsman.kernel import decide
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.definition import NOTICES, Definition
from pointsman.kernel.hold import Aim
from pointsman.kernel.lease import POINTSMAN
from pointsman.kernel.order import UNASKED
from pointsman.kernel.schema import arguments
from pointsman.kernel.steps import Accept, Decision, NeedChecks, Refuse
from pointsman.kernel.task import Task, changes
from pointsman.types import Instant, iso

KIND = "deadline"


def fired(machine: Bound, task: Task, now: Instant) -> Accept:
    """The entry of a deadline that has passed."""
    assert task.deadline is not None, "who asks has seen that it is due"
    at = max(now, task.updated_at + 1)
    name = machine.definition.state[task.state].on_deadline
    due = f"due at {iso(task.deadline)}"
    if name is None or name in NOTICES:
        return _noticed(task, at, name or KIND, due)
    match _decided(machine, task.but(deadline=None), name, at):
        case Accept(after, payload=payload) as accept:
            return replace(accept, kind=KIND, refusal=None, payload={**payload, "changes": changes(task, after), "reason": due})
        case Refuse(refusal):
            return _noticed(task, at, name, f"{due}; refused: {refusal.code}: {refusal.detail}")
        case NeedChecks(needs):
            names = ", ".join(need.check for need in needs)
            return _noticed(task, at, name, f"{due}; refused: evidence_pending: not judged before: {names}")


def aim(definition: Definition, state: str, tags: tuple[str, ...], touched: Instant) -> Aim | None:
    """A due event as holds look at it: one that is held fires when the hold has ended. None for what they do not stop."""
    event = definition.state[state].on_deadline
    return None if event is None or event in NOTICES else Aim(definition.name, event, False, (state,), tags, touched)


def _decided(machine: Bound, task: Task, event: str, now: Instant) -> Decision:
    declared = machine.definition.event[event]
    values, _ = arguments(machine.definition, declared, {})
    case = Case(machine, task, declared, Proposal(event, {}, POINTSMAN, strict=False), values, now)
    try:
        return decide.judge(case, {}, UNASKED)
    except Refused as refused:  # a computed field or guard that fails
        return Refuse(refused.refusal)


def _noticed(task: Task, at: Instant, event: str, reason: str) -> Accept:
    after = task.but(version=task.version + 1, updated_at=at, deadline=None)
    return Accept(after, KIND, event, task.state, {"changes": changes(task, after), "reason": reason})
