"""The built-in machine, played in the kernel alone: no store, no clock."""

from dataclasses import replace

from pointsman import Principal, Task, Tasks
from pointsman.kernel.bound import Bound
from pointsman.kernel.case import Proposal
from pointsman.kernel.decide import Accept, Decision, create, decide

BOUND = Bound(Tasks.definition, Tasks.functions)
GOOD = "Release notes: the scheduler shares one queue between six agents."
W, X = Principal("w"), Principal("x")
ARGS = {"request_approval": {"draft": GOOD}}
PATH = {
    "queued": (),
    "claimed": ("claim",),
    "drafting": ("claim", "start_draft"),
    "awaiting_approval": ("claim", "start_draft", "request_approval"),
    "approved": ("claim", "start_draft", "request_approval", "approve"),
    "done": ("claim", "start_draft", "request_approval", "approve", "complete"),
    "failed": ("claim", "fail"),
}


def new() -> Task:
    accepted = create(BOUND, "01a22877-5573-7f83-ad0b-abae4ab3849b", {"title": "Release notes", "brief": "the scheduler"}, W, 1_000)
    assert isinstance(accepted, Accept)
    return accepted.after


def proposal(task: Task, event: str, by: Principal, **changes: object) -> Proposal:
    """A well-formed proposal that names the current epoch (owners) and digest (decisions)."""
    shown = task.digest if event in ("approve", "reject") else None
    epoch = None if event == "claim" else task.epoch
    plain = Proposal(event, ARGS.get(event, {}), by, epoch=epoch, shown=shown)
    return replace(plain, **changes)  # pyright: ignore[reportArgumentType]


def ask(task: Task, event: str, by: Principal, **changes: object) -> Decision:
    return decide(BOUND, task, proposal(task, event, by, **changes), 2_000, {})


def after(task: Task, event: str, by: Principal, **changes: object) -> Task:
    decision = ask(task, event, by, **changes)
    assert isinstance(decision, Accept), decision
    return decision.after


def at(state: str) -> Task:
    """A task of `w` in a state, approved by `x` where the way leads over an approval."""
    task = new()
    for event in PATH[state]:
        task = after(task, event, X if event == "approve" else W)
    assert task.state == state
    return task


def outcome(decision: Decision) -> str:
    """The new state of an accepted step, or the code of a refusal."""
    if isinstance(decision, Accept):
        return decision.refusal.code if decision.refusal else decision.after.state
    return decision.refusal.code if hasattr(decision, "refusal") else "needs_checks"
