"""Deadlines: what happens when a task has been in a state for as long as it may.

Each due moment fires once, as an entry by pointsman: a reminder, an escalation, or the state's declared event. The event is
taken with rights set aside, since nobody asks for it; state, limits, guards, checks and evidence are judged as ever. What is
refused then is an entry too, which says why, so that it is not tried for ever; only a limit that is used up is waited for.
Firing takes the deadline off the task; a new state brings its own.
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
    return _noticed(task, case.now, case.event.name, f"{_due(task)}; refused: {why}")


def _due(task: Task) -> str:
    assert task.deadline is not None, "who asks has seen that it is due"
    return f"due at {iso(task.deadline)}"


def aim(definition: Definition, state: str, tags: tuple[str, ...], touched: Instant) -> Aim | None:
    """A due event as holds look at it: one that is held fires when the hold has ended. None for what they do not stop."""
    event = definition.state[state].on_deadline
    return None if event is None or event in NOTICES else Aim(definition.name, event, False, (state,), tags, touched)


def _decided(case: Case) -> Decision:
    try:
        return decide.judge(case, {}, UNASKED)
    except Refused as refused:  # a computed field or guard that fails
        return Refuse(refused.refusal)


def _noticed(task: Task, at: Instant, event: str, reason: str) -> Accept:
    after = task.but(version=task.version + 1, updated_at=at, deadline=None)
    return Accept(after, KIND, event, task.state, {"changes": changes(task, after), "reason": reason})
