"""The verbs of durable work: begin an operation, say what came of it or both at once, keep a checkpoint, and read what somebody needs
to resume."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from pointsman.engine import operations as units
from pointsman.engine.operations import Resumed, Shown
from pointsman.engine.proposing import Proposing, given_of
from pointsman.engine.steps import Read, Steps, Write, durable, verb
from pointsman.engine.view import By, Id, page_size, task_named, typed
from pointsman.errors import Refused, StoreError, invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.definition import KINDS, Kind
from pointsman.kernel.ingest import LISTED, Faults, faults, identifier, member
from pointsman.kernel.operation import OUTCOMES, Intent, Outcome, Planned, Said
from pointsman.store.checkpoints import Checkpoint
from pointsman.store.database import Tx
from pointsman.types import Json, seconds

LONGEST_S = 86_400.0
MOST_PLANNED = 1_000
_STALE = ("lease_lost", "not_owner")


class Ledger(Proposing):
    @verb
    def begin(
        self,
        id: Id,
        name: str,
        *,
        by: By,
        epoch: int | None = None,
        kind: Kind | None = None,
        request: Json = None,
        effect: str | None = None,
        timeout_s: float | None = None,
        settle_s: float | None = None,
        compensates: Id | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Shown]:
        """Write down, before it happens, what a task's owner is about to do. Its id stays the same for every attempt and owner.

        `kind` says what may be done when nobody can tell whether it happened: repeatable, keyed, lookup or ask. With the
        name of a declared `effect`, kind and request are the machine's, and another request is refused. `timeout_s` (60) is
        when the sender gives up, `settle_s` how long after that the remote may still come to know of it.

        A name that the task has already answers what is there: `started` while the same epoch is at it, `in_doubt` when
        another one began it, else its outcome. What is `repeatable` or `keyed` is then begun again by this call."""
        numbers = (("epoch", epoch, int | None), ("timeout_s", timeout_s, int | float | None), ("settle_s", settle_s, int | float | None))
        texts = (("kind", kind, str | None), ("effect", effect, str | None))
        typed(("name", name, str), *numbers, *texts)
        wanted = task_named(id)
        found = [*identifier(name, "name"), *faults(request, "request"), *faults(effect, "effect"), *_spans(timeout_s, settle_s)]
        if kind is not None and kind not in KINDS:
            found.append(("kind", f"must be one of {', '.join(KINDS)}"))
        if found:
            raise invalid(*found)
        timeout, settle = (None if given is None else seconds(given) for given in (timeout_s, settle_s))
        undone = None if compensates is None else task_named(compensates, "compensates")
        intent = Intent(name, kind, effect, request, timeout, settle, undone)
        more = {"kind": kind, "effect": effect, "request": request, "timeout_s": timeout_s, "settle_s": settle_s, "compensates": undone}
        asked = {"verb": "begin", "id": wanted, "name": name, **given_of(more | {"epoch": epoch, "session": session})}
        deciding = self.deciding(by, session, idempotency_key, asked)
        claim = Proposal("begin", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield from self._told(deciding, "begin", durable(partial(units.begin, deciding, wanted, intent, claim))))

    @verb
    def remember(
        self,
        id: Id,
        name: str,
        result: Json = None,
        *,
        by: By,
        epoch: int | None = None,
        request: Json = None,
        session: str | None = None,
    ) -> Steps[Shown]:
        """Write down what a task's owner has done already and what came of it, in one entry: `begin` and `finish` of something
        repeatable, which needs no intent before it.

        A name that the task has already answers what came of it then, also when this result is another."""
        typed(("name", name, str), ("epoch", epoch, int | None))
        wanted = task_named(id)
        if found := [*identifier(name, "name"), *faults(request, "request"), *faults(result, "result")]:
            raise invalid(*found)
        intent = Intent(name, "repeatable", None, request)
        deciding = self.deciding(by, session, None, {})
        claim = Proposal("remember", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield from self._told(deciding, "remember", durable(partial(units.remember, deciding, wanted, intent, result, claim))))

    @verb
    def finish(
        self,
        operation: Id,
        status: Outcome,
        result: Json = None,
        *,
        by: By,
        task: Id | None = None,
        epoch: int | None = None,
        note: str | None = None,
        session: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Shown]:
        """Say what came of an operation: succeeded, failed, or not_done, after which it may be begun again.

        Its task's owner says so. An operation to `ask` for that is in doubt is settled by a person with role operator. What
        somebody says who was replaced is refused, and kept beside it as testimony. With `task` it must be an operation of that task."""
        typed(("status", status, str), ("epoch", epoch, int | None), ("note", note, str | None))
        wanted, of = task_named(operation, "operation"), None if task is None else task_named(task, "task")
        found = [*faults(result, "result"), *faults(note, "note")]
        if status not in OUTCOMES:
            found.append(("status", f"must be one of {', '.join(OUTCOMES)}"))
        if found:
            raise invalid(*found)
        said = Said(status, result, note)
        more = {"result": result, "note": note, "epoch": epoch, "session": session}
        asked = {"verb": "finish", "operation": wanted, "status": status, **given_of(more)}
        deciding = self.deciding(by, session, idempotency_key, asked)
        claim = Proposal("finish", {}, deciding.call.by, self.door.strict, session, epoch)
        try:
            return (yield from self._told(deciding, "finish", durable(partial(units.settle, deciding, wanted, of, said, claim))))
        except Refused as refused:
            if refused.code in _STALE:
                yield from _testified(partial(units.testify, wanted, deciding.call.by, epoch, said))
            raise

    @verb
    def checkpoint(
        self,
        id: Id,
        data: Json,
        *,
        by: By,
        epoch: int | None = None,
        plan: Sequence[Mapping[str, Any] | Planned] = (),
        progress: Json = None,
        expect: int | None = None,
        session: str | None = None,
    ) -> Steps[Checkpoint]:
        """Keep an owner's own word on how far it is, in place of the last one; its number rises by one.

        `plan` names operations to be begun after it, each `{"name": …, "kind": …}`. With `expect` it is refused unless the
        last one has that number (0: there is none)."""
        typed(("epoch", epoch, int | None), ("expect", expect, int | None))
        wanted = task_named(id)
        planned, found = _planned(plan)
        if found := [*faults(data, "data"), *faults(progress, "progress"), *found]:
            raise invalid(*found)
        deciding = self.deciding(by, session, None, {})
        claim = Proposal("checkpoint", {}, deciding.call.by, self.door.strict, session, epoch)
        return (yield Write(partial(units.checkpoint, deciding, wanted, data, planned, progress, expect, claim)))

    @verb
    def resume(self, id: Id, *, by: By | None = None, session: str | None = None) -> Steps[Resumed]:
        """All that is known of how far a task is: what is finished, in doubt and to be done, and the last checkpoint."""
        wanted = task_named(id)
        found = yield Read(partial(units.resume, self.engine.registry, wanted))
        return found if by is None else replace(found, task=self.opened(found.task, by, session))

    @verb
    def operations(self, id: Id, *, limit: int | None = None, after: str | None = None) -> Steps[list[Shown]]:
        """A page of a task's operations by id, which is the order in which they were first begun to the millisecond, beyond `after`."""
        wanted, count = task_named(id), page_size(limit)
        beyond = "" if after is None else task_named(after, "after")
        return (yield Read(partial(units.shown, self.engine.registry, wanted, beyond, count)))


def _testified(unit: Callable[[Tx], bool]) -> Steps[None]:
    """Kept if it can be: what its caller is told is the refusal."""
    with suppress(StoreError):
        yield Write(unit)


def _spans(timeout_s: float | None, settle_s: float | None) -> Faults:
    given = (("timeout_s", timeout_s, 1), ("settle_s", settle_s, 0))
    return [
        (path, f"must be from {least} to {LONGEST_S:g} seconds")
        for path, value, least in given
        if value is not None and not least <= value <= LONGEST_S
    ]


def _planned(plan: Any) -> tuple[tuple[Planned, ...], Faults]:
    if not isinstance(plan, list | tuple):
        return (), [("plan", "must be a list")]
    if len(plan) > MOST_PLANNED:  # pyright: ignore[reportUnknownArgumentType]
        return (), [("plan", f"must have at most {MOST_PLANNED} items")]
    read = [_plan(item, f"plan[{index}]") for index, item in enumerate(cast(Sequence[Any], plan))]
    found = [fault for _, faults in read for fault in faults]
    names = [item.name for item, _ in read]
    if not found and len({*names}) < len(names):
        found = [("plan", "names one operation twice")]
    return tuple(item for item, _ in read), found[:LISTED]


def _plan(item: Any, path: str) -> tuple[Planned, Faults]:
    if isinstance(item, Planned):
        item = {"name": item.name, "kind": item.kind}
    if not isinstance(item, Mapping):
        return Planned(""), [(path, "must be an object with a name")]
    given = cast(Mapping[str, Any], item)
    found = [(member(path, str(name)), "is not known here") for name in given if name not in ("name", "kind")]
    found += identifier(given.get("name"), f"{path}.name")
    if given.get("kind") not in (None, *KINDS):
        found.append((f"{path}.kind", f"must be one of {', '.join(KINDS)}"))
    return Planned(given.get("name", ""), given.get("kind")), found
