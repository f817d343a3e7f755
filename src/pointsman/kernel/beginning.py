"""A step is written down before it happens: begun by its task's owner, or, where it was done already and may be done twice, remembered."""

from collections.abc import Sequence
from dataclasses import replace

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import digest, same
from pointsman.kernel.definition import KINDS, Definition
from pointsman.kernel.effect import built
from pointsman.kernel.flow import decided
from pointsman.kernel.lease import Claim, not_mine
from pointsman.kernel.operation import AGAIN, REMEMBERED, Intent, Operation, Standing, Step, entry, unsettled
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Refuse
from pointsman.kernel.task import Begun, Task
from pointsman.types import SECOND, Duration, Instant, Json

TIMEOUT: Duration = 60 * SECOND
"""When a sender gives up, unless the operation says otherwise."""
MOST_OPEN = 100
"""How many operations of a task may be started and not finished."""


def begin(
    machine: Bound,
    task: Task,
    known: Operation | None,
    others: Sequence[Operation],
    undone: Operation | None,
    intent: Intent,
    claim: Claim,
    now: Instant,
    new_id: str,
) -> Step | Refuse:
    """The owner is about to do something. `known` is what the task has under this name already, `others` are those of the same
    declared effect and those that undo the same operation, `undone` is that operation."""
    definition = machine.definition
    meant = _meant(definition, task, known, intent, claim)
    if isinstance(meant, Refusal):
        return Refuse(meant)
    if known is None:
        if meant.compensates is not None and (why := _undoes_nothing(definition, task, undone, meant)):
            return Refuse(_invalid(definition, task, claim.by, ("compensates", why)))
        if refusal := _no_more(definition, task, others, meant, claim.by):
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
    return Step(after, "succeeded", entry(machine, task, REMEMBERED, begun.begun_at, Step(after, "succeeded"), left, renews=True))


def was_remembered(known: Operation, intent: Intent, result: Json, claim: Claim) -> bool:
    """Whether what a task has under this name is what this very call would have written."""
    said = (claim.by.name, "succeeded", _asked(intent))
    same_call = (known.begun_by, known.status, known.request_digest) == said and claim.epoch in (None, known.epoch)
    return same_call and same(known.result, result)


def _meant(definition: Definition, task: Task, known: Operation | None, intent: Intent, claim: Claim) -> Intent | Refusal:
    """The intent as it is declared, if its owner may have it now and its name does not stand for another."""
    if refusal := not_now(definition, task, claim):
        return refusal
    meant = _declared(definition, task, intent, claim.by)
    if isinstance(meant, Refusal) or known is None or known.request_digest == _asked(meant):
        return meant
    detail = f"operation {known.name} was begun with another request"
    return refuse(definition, task, claim.by, "idempotency_conflict", detail, operation=known.id)


def not_now(definition: Definition, task: Task, claim: Claim) -> Refusal | None:
    """Why the owner may write nothing about its work now. Nobody owns a task that is parked, so nobody begins anything on it."""
    if refusal := not_mine(definition, task, claim):
        return refusal
    if definition.state[task.state].final:
        return refuse(definition, task, claim.by, "wrong_state", f"the task is over: it is {task.state}")
    return None


def _no_more(definition: Definition, task: Task, others: Sequence[Operation], meant: Intent, by: Principal) -> Refusal | None:
    """What was approved is done once, and undone once: another name for the same is no other operation, unless it failed."""
    if twin := next((item for item in others if item.status != "failed" and _twins(item, meant)), None):
        detail = f"operation {twin.name} is the same under another name"
        return refuse(definition, task, by, "idempotency_conflict", detail, operation=twin.id)
    if len(task.begun) >= MOST_OPEN:
        detail = f"{MOST_OPEN} operations of the task are not finished; finish one first"
        return refuse(definition, task, by, "operation_in_doubt", detail, failed=unsettled(task))
    return None


def _twins(item: Operation, meant: Intent) -> bool:
    """Whether two operations that are alike are the same in all but name. Where each undoes another, their requests say nothing."""
    if None in (item.compensates, meant.compensates):
        return same(item.request, meant.request)
    return item.compensates == meant.compensates


def _undoes_nothing(definition: Definition, task: Task, undone: Operation | None, intent: Intent) -> str | None:
    """Why an operation is not what undoes another one: an effect is undone by the one that its machine declares for that, anything
    else by what is no effect."""
    if undone is None or undone.task != task.id or undone.status != "succeeded":
        return "is no operation of this task that has succeeded"
    if undone.compensates is not None:
        return "undoes another one itself"
    if undone.effect is None:
        return None if intent.effect is None else f"is no effect, and {intent.effect} is one"
    effect = definition.effect.get(undone.effect)
    if intent.effect is None or effect is None or effect.undo != intent.effect:
        return f"is an effect that {(effect and effect.undo) or 'nothing'} undoes"
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
    return Step(operation, answer, entry(machine, task, "begin", at, Step(operation, answer), begun, renews=True))


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
