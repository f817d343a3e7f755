"""P1: one owner per task and epoch, and while something waits nobody is told there is nothing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import support
from databases import PostgresServer
from pausing import PATIENCE_S, Pausing
from pointsman import Pointsman, Refused, Task

RACERS = 24
ROUNDS = 3


def _race(views: list[Pointsman], call: Callable[[Pointsman, int], Task | None]) -> list[Task | None]:
    """Everybody at once, from two handles as if from two processes."""
    gate = Barrier(RACERS)

    def one(number: int) -> Task | None:
        gate.wait(PATIENCE_S)
        return call(views[number % len(views)], number)

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(one, range(RACERS)))


def _claim(pm: Pointsman, number: int) -> Task | None:
    return pm.claim("tasks", by=f"racer-{number}")


def _check(pm: Pointsman) -> None:
    """One owner per epoch, and epochs that only rise, in every history."""
    for task in pm.list(limit=1000):
        entries = pm.history(task.id)
        epochs = [entry.epoch for entry in entries]
        assert epochs == sorted(epochs)
        claims = [(entry.epoch, entry.by) for entry in entries if entry.event == "claim"]
        assert len({epoch for epoch, _ in claims}) == len(claims)
    assert pm.verify().ok


def test_one_task_has_one_winner(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other:
        for _ in range(ROUNDS):
            task = support.create(one)
            won = [answer for answer in _race([one, other], _claim) if answer is not None]
            assert [answer.id for answer in won] == [task.id]
            assert won[0].owner == one.get(task.id).owner
        _check(one)


def test_one_task_claimed_by_its_id_has_one_winner(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other:
        task = support.create(one)
        codes: list[str] = []

        def call(pm: Pointsman, number: int) -> Task | None:
            try:
                return pm.claim("tasks", by=f"racer-{number}", id=task.id)
            except Refused as refused:
                codes.append(refused.code)
                return None

        won = [answer for answer in _race([one, other], call) if answer is not None]
        assert [answer.id for answer in won] == [task.id]
        assert codes == ["already_claimed"] * (RACERS - 1)
        _check(one)


def test_as_many_tasks_as_claimers_are_all_claimed(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other:
        for _ in range(ROUNDS):
            tasks = {support.create(one).id for _ in range(RACERS)}
            won = _race([one, other], _claim)
            assert {answer and answer.id for answer in won} == tasks
        _check(one)


@pytest.mark.parametrize("ending", ["unit.done", "commit.before"])
def test_a_queue_whose_last_task_somebody_decides_on_is_not_called_empty(postgres: PostgresServer, ending: str) -> None:
    """Rows that others hold are passed over; when nothing else is there, whoever asks waits to see how that ends."""
    url, pausing = postgres.empty(), Pausing(ending)
    with Pointsman(url, probe=pausing) as slow, Pointsman(url) as quick, ThreadPoolExecutor(2) as pool:
        task = support.create(quick)
        pausing.arm()
        holding = pool.submit(slow.claim, "tasks", by="slow")
        assert pausing.passed.wait(PATIENCE_S)
        asking = pool.submit(quick.claim, "tasks", by="quick")
        while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()", url):
            assert not asking.done()
        pausing.leave.set()
        answer = asking.result(PATIENCE_S)
        if ending == "unit.done":
            assert isinstance(holding.exception(PATIENCE_S), ZeroDivisionError)
            assert answer is not None
            assert (answer.id, answer.owner, answer.epoch) == (task.id, "quick", 1)
        else:
            held = holding.result(PATIENCE_S)
            assert held is not None
            assert (held.owner, answer) == ("slow", None)
        assert quick.verify().ok


def test_a_task_that_is_held_hides_no_other(postgres: PostgresServer) -> None:
    """A claimer does not wait for the first in line while a second one is free."""
    url, pausing = postgres.empty(), Pausing("commit.before")
    with Pointsman(url, probe=pausing) as slow, Pointsman(url) as quick, ThreadPoolExecutor(1) as pool:
        first, second = support.create(quick), support.create(quick)
        pausing.arm()
        holding = pool.submit(slow.claim, "tasks", by="slow")
        assert pausing.passed.wait(PATIENCE_S)
        answer = quick.claim("tasks", by="quick")
        pausing.leave.set()
        held = holding.result(PATIENCE_S)
        assert held is not None
        assert answer is not None
        assert (held.id, answer.id) == (first.id, second.id)
