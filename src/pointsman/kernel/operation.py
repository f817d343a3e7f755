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
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import digest, same
from pointsman.kernel.definition import KINDS, Definition, Kind
from pointsman.kernel.effect import built
from pointsman.kernel.flow import decided
from pointsman.kernel.lease import Claim, granted, not_mine
from pointsman.kernel.parking import OPERATOR
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Accept, Refuse
from pointsman.kernel.task import Begun, Task, changes
from pointsman.types import SECOND, Duration, Instant, Json, iso

Outcome = Literal["succeeded", "failed", "not_done"]
Status = Literal["started", "succeeded", "failed", "not_done"]
Standing = Literal["started", "in_doubt", "succeeded", "failed", "not_done"]

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
AGAIN: frozenset[Kind] = frozenset({"repeatable", "keyed"})
"""What a new owner begins again without asking anybody."""

TIMEOUT: Duration = 60 * SECOND
"""When a sender gives up, unless the operation says otherwise."""
MOST_OPEN = 100
"""How many operations of a task may be started and not finished."""


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


# ── begin ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def begin(
    machine: Bound,
    task: Task,
    known: Operation | None,
    others: Sequence[Operation],
    intent: Intent,
    claim: Claim,
    now: Instant,
    new_id: str,
) -> Step | Refuse:
    """The owner is about to do something. `known` is what the task has under this name already, `others` are those of the same
    declared effect."""
    definition = machine.definition
    meant = _meant(definition, task, known, intent, claim)
    if isinstance(meant, Refusal):
        return Refuse(meant)
    if known is None:
        if refusal := _no_more(definition, task, others, _asked(meant), claim.by):
            return Refuse(refusal)
        return _started(machine, task, _new(task, meant, new_id), claim.by, now, meant, "started")
    stands = known.standing(task)
    if stands == "not_done":
        return _started(machine, task, known, claim.by, now, meant, "started")
    if known.epoch != task.epoch and stands == "in_doubt" and known.kind in AGAIN:
        return _started(machine, task, known, claim.by, now, meant, "in_doubt")
    return Step(known, "started" if known.status == "started" and known.epoch == task.epoch else stands)


def remember(
    machine: Bound, task: Task, known: Operation | None, intent: Intent, result: Json, claim: Claim, now: Instant, new_id: str
) -> Step | Refuse:
    """The owner has done something repeatable, and says what came of it: begun and finished in one step. What came of it first
    stands."""
    meant = _meant(machine.definition, task, known, intent, claim)
    if isinstance(meant, Refusal):
        return Refuse(meant)
    if known is not None and known.status in ("succeeded", "failed"):
        return Step(known, known.status)
    begun = _begun(_new(task, meant, new_id) if known is None else known, task, claim.by, max(now, task.updated_at + 1), meant)
    after = replace(begun, status="succeeded", settled_by=claim.by.name, settled_at=begun.begun_at, result=result)
    left = task.begun if known is None else tuple(item for item in task.begun if item.id != after.id)
    return Step(after, "succeeded", _entry(machine, task, "remember", begun.begun_at, Step(after, "succeeded"), left, renews=True))


def _meant(definition: Definition, task: Task, known: Operation | None, intent: Intent, claim: Claim) -> Intent | Refusal:
    """The intent as it is declared, if its owner may have it now and its name does not stand for another."""
    if refusal := _not_now(definition, task, claim):
        return refusal
    meant = _declared(definition, task, intent, claim.by)
    if isinstance(meant, Refusal) or known is None or known.request_digest == _asked(meant):
        return meant
    detail = f"operation {known.name} was begun with another request"
    return refuse(definition, task, claim.by, "idempotency_conflict", detail, operation=known.id)


def _not_now(definition: Definition, task: Task, claim: Claim) -> Refusal | None:
    """Nobody owns a task that is parked, so nobody begins anything on it."""
    if refusal := not_mine(definition, task, claim):
        return refusal
    if definition.state[task.state].final:
        return refuse(definition, task, claim.by, "wrong_state", f"the task is over: it is {task.state}")
    return None


def _no_more(definition: Definition, task: Task, others: Sequence[Operation], asked: str, by: Principal) -> Refusal | None:
    """What was approved is done once: another name for the same effect of the same fields is no other operation, unless it failed."""
    if twin := next((item for item in others if item.request_digest == asked and item.status != "failed"), None):
        detail = f"effect {twin.effect} was begun with this request before, under the name {twin.name}"
        return refuse(definition, task, by, "idempotency_conflict", detail, operation=twin.id)
    if len(task.begun) >= MOST_OPEN:
        detail = f"{MOST_OPEN} operations of the task are not finished; finish one first"
        return refuse(definition, task, by, "operation_in_doubt", detail, failed=unsettled(task))
    return None


def _declared(definition: Definition, task: Task, intent: Intent, by: Principal) -> Intent | Refusal:
    """The intent as its machine declares it: the request of a declared effect is built from the task's fields, and nothing else
    is taken for it. Where every way to the task's state leads past a decision, those fields must be the ones decided on."""
    if intent.effect is None:
        return intent if intent.kind is not None else _invalid(definition, task, by, ("kind", f"must be one of {', '.join(KINDS)}"))
    effect = definition.effect.get(intent.effect)
    if effect is None:
        known = ", ".join(definition.effect) or "none"
        return _invalid(definition, task, by, ("effect", f"machine {definition.name} declares no such effect; it has {known}"))
    if task.state not in effect.during:
        detail = f"{effect.name} may happen in {', '.join(effect.during)}; the task is {task.state}"
        return refuse(definition, task, by, "wrong_state", detail)
    if not task.decisions and decided(definition, task.state):
        detail = f"the content changed since it was decided on; nobody approved {effect.name} with what it is now"
        return refuse(definition, task, by, "approvals_missing", detail)
    request = built(effect, task)
    given = (("kind", intent.kind, effect.kind), ("request", intent.request, request), ("settle_s", intent.settle, effect.settle))
    wrong = [
        (path, "is not what the machine declares; leave it out")
        for path, said, declared in given
        if said is not None and not same(said, declared)
    ]
    if wrong:
        return _invalid(definition, task, by, *wrong)
    return replace(intent, kind=effect.kind, request=request, settle=effect.settle)


def _invalid(definition: Definition, task: Task, by: Principal, *faults: tuple[str, str]) -> Refusal:
    listed = [{"path": path, "message": message} for path, message in faults]
    return refuse(definition, task, by, "invalid", "; ".join(f"{path}: {message}" for path, message in faults), failed=listed)


def _asked(intent: Intent) -> str:
    """The digest of what was asked for, its kind and what it undoes included."""
    return digest("operation request", [intent.kind, intent.effect, intent.request, intent.compensates])


def _new(task: Task, intent: Intent, new_id: str) -> Operation:
    assert intent.kind is not None, "what has no kind was refused"
    settle = intent.settle or 0
    return Operation(
        new_id,
        task.id,
        intent.name,
        intent.kind,
        intent.effect,
        intent.request,
        _asked(intent),
        settle,
        intent.compensates,
        "not_done",
        0,
        0,
        "",
        0,
        0,
    )


def _started(machine: Bound, task: Task, before: Operation, by: Principal, now: Instant, intent: Intent, answer: Standing) -> Step:
    at = max(now, task.updated_at + 1)
    operation = _begun(before, task, by, at, intent)
    begun = (*(item for item in task.begun if item.id != operation.id), Begun(operation.id, operation.name, task.epoch))
    return Step(operation, answer, _entry(machine, task, "begin", at, Step(operation, answer), begun, renews=True))


def _begun(before: Operation, task: Task, by: Principal, at: Instant, intent: Intent) -> Operation:
    """An operation as the owner's next attempt begins it."""
    timeout = TIMEOUT if intent.timeout is None else intent.timeout
    return replace(
        before,
        status="started",
        epoch=task.epoch,
        attempt=before.attempt + 1,
        begun_by=by.name,
        begun_at=at,
        deadline=at + timeout,
        settled_by=None,
        settled_at=None,
        result=None,
        note=None,
    )


# ── outcome ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def settle(machine: Bound, task: Task, operation: Operation, said: Said, claim: Claim, now: Instant) -> Step | Refuse:
    """What came of an operation: by the task's owner, or, of one to `ask` for that is in doubt, by an operator who is a person."""
    definition, by = machine.definition, claim.by
    answers = _answers(definition, task, operation, claim)
    if (refusal := not_mine(definition, task, claim)) and not answers:
        return Refuse(refusal)
    if operation.status != "started":
        return _again(machine, task, operation, said, by)
    if not answers and (refusal := _doubtful(definition, task, operation, said, claim, now)):
        return Refuse(refusal)
    at = max(now, task.updated_at + 1)
    after = replace(operation, status=said.status, settled_by=by.name, settled_at=at, result=said.result, note=said.note)
    left = tuple(item for item in task.begun if item.id != operation.id)
    return Step(after, after.status, _entry(machine, task, "settle", at, Step(after, after.status), left, renews=not answers))


def _answers(definition: Definition, task: Task, operation: Operation, claim: Claim) -> bool:
    """Whether a person says what nobody else can. An old epoch is refused whoever sends it."""
    by = claim.by
    if operation.kind != "ask" or operation.standing(task, over=definition.state[task.state].final) != "in_doubt":
        return False
    return by.kind == "person" and by.has(OPERATOR) and claim.epoch in (None, task.epoch)


def _again(machine: Bound, task: Task, operation: Operation, said: Said, by: Principal) -> Step | Refuse:
    """The same outcome said twice is one."""
    if operation.status == said.status and same(operation.result, said.result):
        return Step(operation, operation.status)
    detail = f"operation {operation.name} {operation.status.replace('_', ' ')} already"
    return Refuse(refuse(machine.definition, task, by, "wrong_state", detail, operation=operation.id))


def _doubtful(definition: Definition, task: Task, operation: Operation, said: Said, claim: Claim, now: Instant) -> Refusal | None:
    """What even the owner cannot say of an operation that another one began."""
    if operation.epoch == task.epoch:
        return None
    if operation.kind == "ask":
        detail = f"operation {operation.name} is in doubt: a person with role {OPERATOR} says what happened"
        return refuse(definition, task, claim.by, "operation_in_doubt", detail, operation=operation.id)
    if operation.kind == "lookup" and said.status == "not_done" and now < operation.settles_at:
        detail = f"operation {operation.name} may still arrive until {iso(operation.settles_at)}: look again after that"
        wait = -(-(operation.settles_at - now) // SECOND)
        return refuse(definition, task, claim.by, "operation_in_doubt", detail, operation=operation.id, retry_after_s=wait)
    return None


def _entry(machine: Bound, task: Task, kind: str, at: Instant, step: Step, begun: tuple[Begun, ...], *, renews: bool) -> Accept:
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
    """Nothing is to be done of a task that is over."""
    if definition.state[task.state].final:
        return []
    names, effects = {item.name for item in every}, {item.effect for item in every}
    again = [Pending(item.name, item.kind, "not_done", item.id) for item in every if item.status == "not_done"]
    declared = [Pending(item.name, item.kind, "declared") for item in definition.effects if task.state in item.during]
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
