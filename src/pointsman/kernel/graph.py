"""Tasks that wait for others: what an upstream's end means for its dependents, and children's for their parent.

Pure: who asks brings how the others stand. A dependency alone closes no circle, since a task waits only for such as were
there before it; within a batch `sequence` finds them. A parent that joins its children can: it waits for tasks that were made
after it. Such a join is refused (`engine/circles.py`), and `circles` finds one that is there all the same.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from pointsman.kernel.chain import same
from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import granted
from pointsman.kernel.steps import Accept
from pointsman.kernel.task import Children, Fate, Joining, Rule, Task, changes, plain
from pointsman.types import Instant, Json

MOST_UPSTREAMS = 100
MOST_AT_ONCE = 1_000

Standing = Literal["open", "parked", "done", "failed", "cancelled"]
Effect = Literal["settle", "cancel"]

EFFECTS: Mapping[tuple[Standing, Fate], Effect] = {
    ("done", "block"): "settle",
    ("done", "cancel"): "settle",
    ("done", "continue"): "settle",
    ("failed", "cancel"): "cancel",
    ("failed", "continue"): "settle",
    ("cancelled", "cancel"): "cancel",
    ("cancelled", "continue"): "settle",
    ("parked", "cancel"): "cancel",
    ("parked", "continue"): "settle",
}
"""What an upstream's standing does to a dependent with this fate. Where nothing stands here it goes on waiting: for one
that is open or may be unparked, or, with fate `block`, for one that will never be done."""


def standing(definition: Definition, state: str, *, parked: bool) -> Standing:
    """How a task stands for those who wait for it."""
    declared = definition.state[state]
    if not declared.final:
        return "parked" if parked else "open"
    return "failed" if declared.outcome == "failed" else "cancelled" if declared.outcome == "cancelled" else "done"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A task that another waits for, as it stands."""

    task: str
    on_failure: Fate
    state: str
    standing: Standing

    @property
    def satisfiable(self) -> bool:
        """Whether it can still be done, or its failing does not matter."""
        return self.standing in ("open", "parked", "done") or self.on_failure != "block"

    def as_json(self) -> dict[str, Json]:
        return {"task": self.task, "state": self.state, "on_failure": self.on_failure, "satisfiable": self.satisfiable}


@dataclass(frozen=True, slots=True)
class Wait:
    """What a task waits for, in the words of readers: other tasks by id, and whether waiting can end by itself."""

    kind: Literal["dependency", "children"]
    who: tuple[str, ...]
    since: Instant
    satisfiable: bool


def waits(task: Task, upstreams: Sequence[Upstream], children: Sequence[str] = ()) -> Wait | None:
    """What keeps a task waiting among other tasks: the upstreams that are not settled, or, while it joins them, the open
    children by id. A parent is given back when its rule can no longer be met, so it never waits in vain."""
    if upstreams:
        return Wait("dependency", tuple(item.task for item in upstreams), task.since, all(item.satisfiable for item in upstreams))
    return None if task.joining is None else Wait("children", tuple(children), task.updated_at, satisfiable=True)


# ── parents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def counted(rows: Iterable[tuple[Definition, str, int]]) -> Children:
    """Children by how they ended, from how many are in each state of a machine."""
    sums: dict[str, int] = dict.fromkeys(("open", "done", "failed", "cancelled"), 0)
    for definition, state, count in rows:
        sums[standing(definition, state, parked=False)] += count
    return Children(**sums)


def joining(rule: Rule, before: Children) -> Joining:
    """From now on; `before` are the children there were."""
    return Joining(rule, before.done, before.failed, before.cancelled)


def since(joining: Joining, children: Children) -> Children:
    """The children that a join is about: those that were open when it began, and those that came later."""
    return Children(children.open, children.done - joining.done, children.failed - joining.failed, children.cancelled - joining.cancelled)


def is_over(joining: Joining, children: Children) -> bool | None:
    """Whether the rule is met (True), can no longer be met (False), or is still open (None)."""
    about = since(joining, children)
    wanted = about.total if joining.rule == "all" else 1 if joining.rule == "any" else joining.rule
    if about.done >= wanted:
        return True
    return False if about.done + about.open < wanted else None


def waiting(task: Task, rule: Rule, before: Children, now: Instant) -> Accept:
    """The entry of an owner who waits for children, without a lease."""
    at = max(now, task.updated_at + 1)
    after = task.but(version=task.version + 1, updated_at=at, joining=joining(rule, before), lease=None)
    return Accept(after, "wait", "wait", task.state, {"changes": changes(task, after)})


def joined(definition: Definition, task: Task, children: Children, *, met: bool, now: Instant) -> Accept:
    """The entry that gives a parent back to its owner, with a fresh lease, and says how the children ended."""
    assert task.joining is not None, "who asks has seen that it waits for children"
    at = max(now, task.updated_at + 1)
    lease = granted(definition.state[task.state], task.owner, at)
    after = task.but(version=task.version + 1, updated_at=at, joining=None, lease=lease)
    about = since(task.joining, children)
    ended: dict[str, Json] = {"done": about.done, "failed": about.failed, "cancelled": about.cancelled}
    reason = f"children {'are done' if met else 'can no longer be done'} by the rule {task.joining.rule}: " + ", ".join(
        f"{count} {name}" for name, count in ended.items()
    )
    return Accept(after, "join", "join", task.state, {"changes": changes(task, after), "children": ended, "met": met, "reason": reason})


# ── circles ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def circles(waits: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Circles among tasks, each `(task, what it waits for)`, so that every task in one has been named: each waits for the
    next, and the last is the first again."""
    left = dict[str, set[str]]()
    for task, waited in waits:
        left.setdefault(task, set()).add(waited)
    while circle := _circle(left):
        yield circle
        for task in circle[1:]:
            del left[task]


def _circle(waits: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        return [*reversed(error.args[1])]
    return []


# ── batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sequence(before: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """The refs of a batch in an order in which each comes after those `before` it; or a cycle, by name. Only what waits
    in a cycle is left over."""
    order, left = list[str](), dict(before)
    while free := [ref for ref, wanted in left.items() if not any(other in left for other in wanted)]:
        order += free
        for ref in free:
            del left[ref]
    return order, _cycle(left) if left else []


def _cycle(left: Mapping[str, Sequence[str]]) -> list[str]:
    """Every ref that is left waits for another that is left, so walking on comes back."""
    walked = [next(iter(left))]
    while True:
        following = next(other for other in left[walked[-1]] if other in left)
        if following in walked:
            return [*walked[walked.index(following) :], following]
        walked.append(following)


def as_made(task: Task, other: Task) -> bool:
    """Whether two new tasks are the same piece of work: fields and terms."""
    names = ("fields", "priority", "tags", "needs", "run_at", "dedupe_key", "parent", "blocked_by")
    return all(same(plain(getattr(task, name)), plain(getattr(other, name))) for name in names)
