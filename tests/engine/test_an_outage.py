"""A provider's outage: a thousand tasks are given back while it lasts, none is parked, and none rushes back when it is over."""

from collections.abc import Iterator

import pytest

from pointsman import Event, Machine, Pointsman, Retry, State, Task, minutes, owner
from pointsman.engine import backlogs
from pointsman.engine import propose as units
from pointsman.engine.decision import Done
from pointsman.kernel.case import Proposal
from pointsman.kernel.terms import Terms
from pointsman.store import holds
from pointsman.store.database import Tx
from pointsman.testing import FakeClock
from pointsman.types import SECOND

MANY, RATE = 1_000, 20
WORKERS = ("w1", "w2", "w3", "w4")


class Asking(Machine, name="asking"):
    retry = Retry(tries=2)
    open = State(initial=True)
    work = State(lease=minutes(10))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    claim = Event(open >> work, acquires=True)
    finish = Event(work >> done, by=owner)
    drop = Event(work >> failed, by=owner)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Asking], clock=clock) as opened:
        yield opened


def _made(pm: Pointsman, count: int, *tags: str) -> list[str]:
    """Many tasks in one unit."""
    askings = [pm.deciding("ann", None, None, {}) for _ in range(count)]

    def unit(tx: Tx) -> list[Done]:
        return [
            units.create(deciding, "asking", {}, Terms(tags=tags), Proposal("create", {}, deciding.call.by), tx, False)
            for deciding in askings
        ]

    return [done.task.id for done in pm.engine.db.run(unit)]


def _given_back(pm: Pointsman, task: Task) -> None:
    pm.release(task.id, by=task.owner or "", epoch=task.epoch, counts=False, reason="503 from the provider")


def _next(pm: Pointsman, by: str) -> Task | None:
    return pm.claim("asking", by=by)


def test_a_thousand_tasks_outlast_it_and_come_back_one_by_one(pm: Pointsman, clock: FakeClock) -> None:
    ids = _made(pm, MANY, "openai")
    held = [task for number in range(MANY) if (task := _next(pm, WORKERS[number % len(WORKERS)]))]
    assert sorted(task.id for task in held) == sorted(ids)
    for task in held:
        clock.advance(SECOND // 10)
        _given_back(pm, task)
    hold = pm.hold({"event": "claim", "tag": "openai"}, by="olga", reason="the provider is down", release_per_s=RATE)
    for minute in range(120):
        clock.advance(minutes(1))
        if minute % 24 == 0:
            elsewhere = _made(pm, 1)
            task = _next(pm, WORKERS[0])
            assert task is not None
            assert task.id in elsewhere
            pm.propose(task.id, "finish", by=WORKERS[0], epoch=task.epoch)
        elif minute % 24 == 1:
            assert _next(pm, WORKERS[1]) is None
    pm.lift(hold.id, by="olga")
    waiting = pm.list(machine="asking", state="open", limit=MANY)
    assert len(waiting) == MANY
    assert [task.id for task in waiting if task.parked is not None or task.attempts.counted] == []
    assert {task.attempts.deferred for task in waiting} == {1}
    taken = _drained(pm, clock, 3 * RATE)
    clock.advance(minutes(90))
    backlogs.retire(pm.engine)
    taken += _drained(pm, clock, MANY - len(taken))
    assert all(later - at >= SECOND for at, later in zip(taken, taken[RATE:], strict=False))
    assert pm.list(machine="asking", state="open") == []
    backlogs.retire(pm.engine)
    assert pm.engine.db.read(holds.in_use) == ()


def _drained(pm: Pointsman, clock: FakeClock, count: int) -> list[int]:
    """Workers that take what they can; when each of so many was taken."""
    taken = list[int]()
    while len(taken) < count:
        if task := _next(pm, WORKERS[len(taken) % len(WORKERS)]):
            taken.append(clock.now)
            pm.propose(task.id, "finish", by=task.owner or "", epoch=task.epoch)
        else:
            clock.advance(SECOND // RATE // 2)
    return taken
