"""The rules of a decision that look only at the task and the proposal, in the order in which they speak.

    complete → rights (with `owner` taken as true) → expected version and digest → already decided → state → ownership
    → parked, holds, limits, dependencies, operations → guards

`ORDER` is that list; the first rule that answers with a refusal wins.
"""

from collections.abc import Callable
from dataclasses import replace

from pointsman.errors import Refusal
from pointsman.kernel import hold, operation, parking
from pointsman.kernel.case import Case
from pointsman.kernel.lease import not_mine
from pointsman.kernel.limits import limited
from pointsman.kernel.refuse import contributed, rights
from pointsman.kernel.rules import ANONYMOUS, admits, says
from pointsman.types import iso

Rule = Callable[[Case], Refusal | None]


def complete(case: Case) -> Refusal | None:
    event, proposal = case.event, case.proposal
    if event.decides and proposal.strict and proposal.shown is None:
        return case.invalid(("digest", "a decision names the digest of the content it judges, as the task shows it"))
    if proposal.by.name == ANONYMOUS and (event.acquires or (proposal.strict and event.personal)):
        return case.invalid(("by", "whoever owns or decides has a name"))
    return None


def may_propose(case: Case) -> Refusal | None:
    by, event = case.proposal.by, case.event
    if rights(event, case.task, by, is_owner=True):
        return None
    if contributed(case.task, by) and admits(event.by, by, is_owner=True, is_contributor=False):
        return case.no("self_approval", f"{by.name} owned or contributed to this content; somebody else must {event.name} it")
    return case.no("role_missing", f"{event.name} needs {says(event.by)}")


def as_expected(case: Case) -> Refusal | None:
    task, proposal = case.task, case.proposal
    if proposal.expect_version is not None and proposal.expect_version != task.version:
        return case.no("stale_version", f"the task is at version {task.version}, not {proposal.expect_version}")
    if proposal.shown is not None and proposal.shown != task.digest:
        return case.no("stale_content", "the content changed since it was shown; read it again", shown=proposal.shown, digest=task.digest)
    return None


def undecided(case: Case) -> Refusal | None:
    task, event = case.task, case.event
    if not event.decides or event.target(task.state) is not None or not task.decisions:
        return None
    last = task.decisions[-1]
    return case.no(
        "already_decided", f"{last.by} decided {last.event} before", decided={"event": last.event, "by": last.by, "at": iso(last.at)}
    )


def in_state(case: Case) -> Refusal | None:
    task, event = case.task, case.event
    if event.acquires and task.held:
        return case.no("already_claimed", f"{task.owner} holds the task")
    if event.target(task.state) is None:
        return case.no("wrong_state", f"{event.name} is open in {', '.join(event.sources)}; the task is {task.state}")
    return None


def owned(case: Case) -> Refusal | None:
    task, proposal, event = case.task, case.proposal, case.event
    only_owner = not rights(event, task, proposal.by, is_owner=False)
    return not_mine(case.machine.definition, task, proposal, only_owner=only_owner)


def in_work(case: Case) -> Refusal | None:
    return None if case.task.parked is None else parking.refusal(case.machine, case.task, case.proposal.by)


def unblocked(case: Case) -> Refusal | None:
    """Nobody begins on a task that waits for others; whoever works on it goes on."""
    if not case.event.acquires or not case.upstreams:
        return None
    said = ", ".join(f"{item.task} ({item.state})" for item in case.upstreams)
    hopeless = "" if all(item.satisfiable for item in case.upstreams) else "; not all of them can still be done: cancel the task"
    listed = [item.as_json() for item in case.upstreams]
    return case.no("blocked", f"the task waits for {said}{hopeless}", failed=listed)


def not_held(case: Case) -> Refusal | None:
    """Released at a rate, a backlog is held too, until its turn."""
    stop = hold.stopping(case.holds, case.aim(case.found), case.now) if case.holds else None
    return None if stop is None else case.no("held", stop.detail(), **stop.told(case.now))


def settled(case: Case) -> Refusal | None:
    return unfinished(case, case.event.target(case.task.state) or case.task.state)


def unfinished(case: Case, target: str) -> Refusal | None:
    """A task is not completed while something of it is under way or in doubt; it may be given up."""
    state = case.machine.definition.state[target]
    if not case.task.begun or not state.final or state.outcome is not None:
        return None
    listed = operation.unsettled(case.task)
    said = ", ".join(f"{item['name']} ({item['status']})" for item in listed)
    return case.no("operation_in_doubt", f"not finished: {said}", failed=listed)


def guarded(case: Case) -> Refusal | None:
    if not case.event.when:
        return None
    proposal = replace(case.proposal, args=case.values)
    sees = {"task": case.task, "proposal": proposal, "principal": proposal.by, "now": case.now, "decisions": case.task.decisions}
    answers = [(function.name, case.machine.guard(function, sees)) for function in case.event.when]
    failed = [{"guard": name, "reason": answer.reason} for name, answer in answers if not answer.ok]
    return case.no("guard_failed", "; ".join(item["reason"] for item in failed), failed=failed) if failed else None


ORDER: tuple[Rule, ...] = (
    complete,
    may_propose,
    as_expected,
    undecided,
    in_state,
    owned,
    in_work,
    not_held,
    limited,
    unblocked,
    settled,
    guarded,
)
UNASKED: tuple[Rule, ...] = (in_state, in_work, limited, settled, guarded)
"""What is judged of an event that nobody asks for, because its time has come."""
