"""No task waits for itself.

    parent ── joins ──▶ child ── blocked by ──▶ … ──▶ parent

A circle closes only where a parent begins to join its children, or is given one more while it joins them. There this looks
where their waiting leads, before anything is written; one such look is taken at a time.
"""

from collections import deque
from collections.abc import Mapping

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.task import Task
from pointsman.store import graph
from pointsman.store.database import Tx

MOST_WALKED = 1_000
"""Tasks that one look goes through."""


def refuse(tx: Tx, parent: Task, upstreams: Mapping[str, str], *, begins: bool) -> None:
    """Refuse what would make a parent wait for itself. `upstreams` are what its new children wait for, each with the path
    under which it was asked for; where a join `begins`, the open children that were there count too."""
    if not (upstreams or begins):
        return
    graph.lock_joins(tx)
    if parent.id not in upstreams and not graph.is_awaited(tx, parent.id):
        return
    paths = {**(_children(tx, parent) if begins else {}), **upstreams}
    chain = _chain(tx, parent, [*paths])
    if chain:
        words = f"waits for the parent that waits for it: {' → '.join(chain)}; leave this out, or create without a join"
        raise invalid((paths[chain[0]], words))


def _children(tx: Tx, parent: Task) -> dict[str, str]:
    return dict.fromkeys(graph.waits_of(tx, parent.id, MOST_WALKED, joins=True), "join")


def _chain(tx: Tx, parent: Task, starts: list[str]) -> list[str]:
    """From one of these tasks to the parent, each waiting for the next; empty when none leads there."""
    before, ahead = dict[str, str | None](dict.fromkeys(starts)), deque(starts)
    while ahead and parent.id not in before:
        task = ahead.popleft()
        found = [other for other in graph.waits_of(tx, task, MOST_WALKED) if other not in before]
        before |= dict.fromkeys(found, task)
        ahead.extend(found)
        if len(before) > MOST_WALKED and parent.id not in before:
            raise _too_far(parent)
    return _back(before, parent.id) if parent.id in before else []


def _back(before: Mapping[str, str | None], task: str | None) -> list[str]:
    chain = list[str]()
    while task is not None:
        chain.insert(0, task)
        task = before[task]
    return chain


def _too_far(parent: Task) -> Refused:
    detail = f"what the children wait for leads through more than {MOST_WALKED} tasks; let them wait for fewer, or create without a join"
    return Refused(Refusal("limit_reached", detail, task=parent.id, state=parent.state, version=parent.version))
