"""Backlogs of ended holds: a hold is read for as long as something waits that it held back, however long that takes.

The backlog is not counted: it is looked at, now and then, by index and no further than a page. What is not known to be gone
keeps its hold in use.
"""

from collections.abc import Mapping

from pointsman.engine import holding
from pointsman.engine.view import Engine
from pointsman.kernel import hold as kernel
from pointsman.kernel.definition import Definition
from pointsman.kernel.hold import Hold
from pointsman.store import holds, machines, tasks
from pointsman.store.database import Tx

PAGE = 1_000

Published = Mapping[tuple[str, int], Definition]


def retire(engine: Engine) -> bool:
    """Let go of every hold of whose backlog nothing is left."""
    for hold in engine.db.read(_spent):
        engine.db.run(lambda tx, hold=hold: holds.retire(tx, hold))
    return False


def _spent(tx: Tx) -> list[Hold]:
    over = holds.over(tx)
    published = {(row.name, row.version): row.definition for row in machines.every(tx)} if over else {}
    return [hold for hold in over if not _waited_for(tx, published, hold)]


def _waited_for(tx: Tx, published: Published, hold: Hold) -> bool:
    """Whether a task may wait that the hold kept back."""
    assert hold.ends is not None, "who asks has seen that it ended"
    if hold.ends <= hold.begins:
        return False
    meant = [item for item in published.values() if hold.match.machine in (None, item.name)]
    states = {state.name for item in meant for state in item.states if not state.final}
    return any(_waits(tx, published, hold, state) for state in sorted(states))


def _waits(tx: Tx, published: Published, hold: Hold, state: str) -> bool:
    found = tasks.untouched(tx, state, hold.ends or 0, PAGE)
    aims = (holding.taking(published[row.machine, row.machine_version], state, row.owner, row.tags, row.updated_at) for row in found)
    return len(found) == PAGE or any(aim.event and kernel.matches(hold, aim) for aim in aims)
