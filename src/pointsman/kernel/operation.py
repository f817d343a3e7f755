"""Operations: durable steps of a task with a stable id, written before they happen.

             begin               succeeded, failed
    (none) ────────▶ started ─────────────────────▶ finished, for good
       │              ▲   │ not_done                      ▲
       │        begin └── not_done                        │
       └──────────────────────────────────────────────────┘
         remember: what does no harm when it is done twice needs no intent before it

A started operation whose owner was replaced, gave the task back or let its lease run out is *in doubt*: nobody alive can say
whether it happened. That is read from the task and stored nowhere, so a takeover writes nothing here. What a new owner may do
then is declared with the operation's kind:

    repeatable, keyed   begin it again: doing it twice does no harm, or the remote knows its id
    lookup              ask the remote by its id: what was found is its outcome; `not_done` counts only once the sender had given up
                        and a time to settle has passed
    ask                 a person with role operator says what happened
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pointsman.kernel.bound import Bound
from pointsman.kernel.definition import Definition, Kind
from pointsman.kernel.lease import granted
from pointsman.kernel.steps import Accept
from pointsman.kernel.task import Begun, Task, changes
from pointsman.types import Duration, Instant, Json

Outcome = Literal["succeeded", "failed", "not_done"]
Status = Literal["started", "succeeded", "failed", "not_done"]
Standing = Literal["started", "in_doubt", "succeeded", "failed", "not_done"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
STANDINGS: tuple[Standing, ...] = get_args(Standing)
REMEMBERED = "remember"
"""The kind of an entry that begins and finishes an operation at once. Its name settles whether it was written, so it needs no
idempotency record."""
AGAIN: frozenset[Kind] = frozenset({"repeatable", "keyed"})
"""What a new owner begins again without asking anybody."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What is about to be done. `timeout` is when its sender gives up, `settle` how long after that the remote may still come
    to know of it; `compensates` is the operation that this one undoes."""

    name: str
    kind: Kind | None
    effect: str | None
    request: Json
    timeout: Duration | None = None
    settle: Duration | None = None
    compensates: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as it stands. `epoch`, `begun_by`, `begun_at` and `deadline` are those of whoever began it last, `attempt`
    how often that was."""

    id: str
    task: str
    name: str
    kind: Kind
    effect: str | None
    request: Json
    request_digest: str
    settle: Duration
    compensates: str | None
    status: Status
    epoch: int
    attempt: int
    begun_by: str
    begun_at: Instant
    deadline: Instant
    settled_by: str | None = None
    settled_at: Instant | None = None
    result: Json = None
    note: str | None = None

    @property
    def settles_at(self) -> Instant:
        """From when on a remote that does not know of it never will."""
        return self.deadline + self.settle

    def standing(self, task: Task, *, over: bool = False) -> Standing:
        """How it stands for its task, which may be over: then nobody is at it any more."""
        return "in_doubt" if self.status == "started" and (over or not _underway(self.epoch, task)) else self.status


@dataclass(frozen=True, slots=True)
class Planned:
    """Something that a checkpoint says is to be done yet."""

    name: str
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody says came of an operation."""

    status: Outcome
    result: Json = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An operation after a step, and the step; None where there was nothing to write. `standing` is what is answered."""

    operation: Operation
    standing: Standing
    accept: Accept | None = None


def _underway(epoch: int, task: Task) -> bool:
    return task.held and epoch == task.epoch


def unsettled(task: Task) -> Sequence[Mapping[str, Json]]:
    """The operations that keep a task from being completed, as a refusal lists them."""
    return [
        {"operation": item.id, "name": item.name, "status": "started" if _underway(item.epoch, task) else "in_doubt"} for item in task.begun
    ]


def entry(machine: Bound, task: Task, kind: str, at: Instant, step: Step, begun: tuple[Begun, ...], *, renews: bool) -> Accept:
    """Every accepted call of the owner renews, but who waits for children waits without a lease; an answer of somebody else ends the
    time for which the task was put off."""
    held = renews and task.joining is None
    lease = granted(machine.definition.state[task.state], task.owner, at) if held else task.lease
    after = task.but(version=task.version + 1, updated_at=at, lease=lease, begun=begun, run_at=task.run_at if renews else None)
    said: dict[str, Json] = {"operation": as_json(step.operation), "standing": step.standing}
    return Accept(after, kind, kind, task.state, {"changes": changes(task, after), **said})


def as_json(operation: Operation) -> dict[str, Any]:
    """All members, as history keeps them: times in µs."""
    return {name: getattr(operation, name) for name in operation.__slots__}


# ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Pending:
    """What is to be done yet, and who says so: its machine, the last checkpoint, or an attempt that came to nothing."""

    name: str
    kind: Kind | None
    why: Literal["declared", "planned", "not_done"]
    operation: str | None = None


def pending(definition: Definition, task: Task, every: Sequence[Operation], plan: Sequence[Planned]) -> list[Pending]:
    """Nothing is to be done of a task that is over; and what undoes an effect is not to be done, but may."""
    if definition.state[task.state].final:
        return []
    names, effects = {item.name for item in every}, {item.effect for item in every}
    again = [Pending(item.name, item.kind, "not_done", item.id) for item in every if item.status == "not_done"]
    undoing = {item.undo for item in definition.effects}
    open_now = [item for item in definition.effects if task.state in item.during and item.name not in undoing]
    declared = [Pending(item.name, item.kind, "declared") for item in open_now]
    new = [item for item in declared if item.name not in effects]
    planned = [Pending(item.name, item.kind, "planned") for item in plan if item.name not in names | {item.name for item in new}]
    return [*again, *new, *planned]


@dataclass(frozen=True, slots=True)
class Happened:
    """What a cancelled task has done already: what succeeded, what nobody can answer for, and of what succeeded which effects can
    be undone and which cannot."""

    happened: Sequence[Operation]
    in_doubt: Sequence[Operation]
    undoable: Sequence[Operation]
    not_undoable: Sequence[Operation]


def happened(definition: Definition, every: Sequence[Operation]) -> Happened:
    done = sorted((item for item in every if item.status == "succeeded"), key=lambda item: item.settled_at or 0)
    undone = {item.compensates for item in done}
    effects = [item for item in done if item.kind != "repeatable" and item.compensates is None and item.id not in undone]
    undoable = [item for item in effects if (effect := definition.effect.get(item.effect or "")) and effect.undo]
    return Happened(
        done, [item for item in every if item.status == "started"], undoable, [item for item in effects if item not in undoable]
    )
