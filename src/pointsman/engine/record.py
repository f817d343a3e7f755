"""Writing accepted steps, in the caller's transaction: the row, its history entry and payload, and the idempotency record.

One step by a few small statements, or many, each of another task, by a few that take arrays.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pointsman.engine import limits
from pointsman.engine.door import Call
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import FORMAT, GENESIS, Link, canonical, link_hash, payload_digest
from pointsman.kernel.decide import Accept
from pointsman.kernel.definition import Definition
from pointsman.kernel.message import Message, told
from pointsman.kernel.operation import REMEMBERED
from pointsman.kernel.task import Task
from pointsman.store import graph, history, lanes, news, outbox, requests, snapshots, tasks
from pointsman.store.database import Tx
from pointsman.store.history import Written
from pointsman.store.requests import Request
from pointsman.store.tasks import Moved, Stored

Chance = Callable[[int], int]
"""So many random bits as an integer; `Entropy` outside tests."""


@dataclass(frozen=True, slots=True)
class Step:
    """An accepted step and all that is written of it. The row moves only from `before`; a new one waits for `blockers`
    others."""

    request: Request
    definition: Definition
    before: Stored | None
    accept: Accept
    blockers: int
    entry: Written
    messages: tuple[Message, ...] = ()

    @property
    def after(self) -> Task:
        return self.accept.after

    @property
    def final(self) -> bool:
        return self.definition.state[self.after.state].final

    @property
    def moved(self) -> Moved:
        return Moved(self.before, self.after, final=self.final, head=self.entry.hash, blockers=self.blockers)

    @property
    def tells(self) -> bool:
        """Whether others may have to be told: the task is over, or was taken out of work."""
        parked = self.after.parked is not None and (self.before is None or self.before.task.parked is None)
        return self.final or parked


def step(call: Call, machine: Bound, before: Stored | None, accept: Accept, chance: Chance, blockers: int = 0) -> Step:
    nonce, body = f"{chance(128):032x}", canonical(accept.payload)
    link = _link(call, before, accept, payload_digest(nonce, body))
    entry = Written(link, link_hash(link), nonce, body)
    messages = told(machine.definition, None if before is None else before.task, accept)
    return Step(call.request, machine.definition, before, accept, blockers, entry, messages)


def write(tx: Tx, step: Step) -> bool:
    """Write one step; whether this is to be told to tasks that wait."""
    after = step.after
    key = tasks.put(tx, step.moved, _lane(tx, _lane_of(step)))
    history.append(tx, key, step.entry)
    snapshots.keep(tx, {key: after})
    if step.accept.kind != REMEMBERED:
        requests.keep(tx, step.request, after.id, after.version, after.updated_at)
    limits.keep(tx, step.definition, step.accept)
    news.note(tx, after, final=step.final)
    _tell(tx, step)
    return step.tells and graph.mark(tx, after)


def gather(tx: Tx, steps: list[Step], step: Step) -> None:
    """Write a step later, with others; what it takes of a limit counts at once, for those that are judged next."""
    limits.keep(tx, step.definition, step.accept)
    steps.append(step)


def write_all(tx: Tx, steps: Sequence[Step]) -> list[str]:
    """Write gathered steps; the tasks whose end is to be told to others."""
    keys = _rows(tx, steps)
    history.append_all(tx, {keys[step.after.id]: step.entry for step in steps})
    snapshots.keep(tx, {keys[step.after.id]: step.after for step in steps})
    requests.keep_all(tx, [(step.request, step.after) for step in steps])
    for step in steps:
        news.note(tx, step.after, final=step.final)
        _tell(tx, step)
    return graph.mark_all(tx, [step.after for step in steps if step.tells])


def _tell(tx: Tx, step: Step) -> None:
    """Most steps tell the outside nothing, and ask nothing."""
    if step.messages:
        outbox.write(tx, step.definition.name, step.messages)


def _rows(tx: Tx, steps: Sequence[Step]) -> Mapping[str, int]:
    """Write the rows; their keys by task."""
    texts = {step.after.id: _lane_of(step) for step in steps}
    numbers = _lanes(tx, texts.values())
    return tasks.put_all(tx, [(step.moved, numbers[texts[step.after.id]]) for step in steps])


def _lane_of(step: Step) -> str | None:
    return lanes.text(step.definition, None if step.before is None else step.before.task, step.after)


def _lanes(tx: Tx, texts: Iterable[str | None]) -> Mapping[str | None, int | None]:
    return {text: _lane(tx, text) for text in dict.fromkeys(texts)}


def _lane(tx: Tx, text: str | None) -> int | None:
    """The number of a lane; None for a task that stays in its own."""
    return None if text is None else lanes.interned(tx, text)


def _link(call: Call, before: Stored | None, accept: Accept, payload: str) -> Link:
    after = accept.after
    return Link(
        task=after.id,
        version=after.version,
        at=after.updated_at,
        kind=accept.kind,
        event=accept.event,
        from_state=accept.from_state,
        to_state=after.state,
        by=call.by.name,
        session=call.session,
        door=call.door.name,
        auth=call.by.auth,
        epoch=after.epoch,
        payload_digest=payload,
        request_key=call.request.key,
        request_digest=call.request.digest,
        format=FORMAT,
        previous=GENESIS if before is None else before.head,
    )
