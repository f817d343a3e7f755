"""Writing an accepted step: the row, its history entry and payload, and the idempotency record, in the caller's transaction."""

from collections.abc import Callable

from pointsman.engine import limits
from pointsman.engine.door import Call
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import FORMAT, GENESIS, Link, canonical, link_hash, payload_digest
from pointsman.kernel.decide import Accept
from pointsman.kernel.definition import Definition
from pointsman.kernel.task import Task
from pointsman.store import graph, history, lanes, news, requests, snapshots, tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored

Chance = Callable[[int], int]
"""So many random bits as an integer; `Entropy` outside tests."""


def record(tx: Tx, call: Call, machine: Bound, before: Stored | None, accept: Accept, chance: Chance, blockers: int = 0) -> bool:
    """Everything an accepted step writes. The row moves only from the version and epoch that were judged; a new one waits
    for `blockers` others. Whether this is to be told to tasks that wait."""
    after = accept.after
    nonce, body = f"{chance(128):032x}", canonical(accept.payload)
    link = _link(call, before, accept, payload_digest(nonce, body))
    head = link_hash(link)
    final = machine.definition.state[after.state].final
    key = _row(tx, machine.definition, before, after, head, final=final, blockers=blockers)
    history.append(tx, key, link, head, nonce, body)
    snapshots.keep(tx, key, after)
    requests.keep(tx, call.request, after.id, after.version, after.updated_at)
    limits.keep(tx, machine.definition, accept)
    news.note(tx, after, final=final)
    return (final or _parked(before, after)) and graph.mark(tx, after)


def _row(tx: Tx, definition: Definition, before: Stored | None, after: Task, head: str, *, final: bool, blockers: int) -> int:
    """Write the task's row; its key."""
    if before is None:
        return tasks.add(tx, after, final=final, head=head, lane=lanes.of_new(tx, definition, after), blockers=blockers)
    tasks.advance(tx, before, after, final=final, head=head, lane=lanes.of_step(tx, definition, before.task, after))
    return before.key


def _parked(before: Stored | None, after: Task) -> bool:
    return after.parked is not None and (before is None or before.task.parked is None)


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
