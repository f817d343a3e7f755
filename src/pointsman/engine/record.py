"""Writing an accepted step: the row, its history entry and payload, and the idempotency record, in the caller's transaction."""

from collections.abc import Callable

from pointsman.engine.door import Call
from pointsman.kernel.bound import Bound
from pointsman.kernel.chain import FORMAT, GENESIS, Link, canonical, link_hash, payload_digest
from pointsman.kernel.decide import Accept
from pointsman.kernel.task import Task
from pointsman.store import graph, history, news, requests, snapshots, tasks
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
    if before is None:
        key = tasks.add(tx, after, final=final, head=head, blockers=blockers)
    else:
        key = before.key
        tasks.advance(tx, before, after, final=final, head=head)
    history.append(tx, key, link, head, nonce, body)
    snapshots.keep(tx, key, after)
    requests.keep(tx, call.request, after.id, after.version, after.updated_at)
    news.note(tx, after, final=final)
    return (final or _parked(before, after)) and graph.mark(tx, after)


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
