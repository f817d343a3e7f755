"""P1: one owner per task and epoch, and while something waits nobody is told there is nothing."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import cycle
from threading import Barrier

import pytest

import support
from databases import PostgresServer
from pausing import PATIENCE_S, Pausing
from pointsman import Event as Named
from pointsman import Limit, Machine, Pointsman, Refused, State, Task, field, hours, minutes
from pointsman.engine.duties import wake
from pointsman.testing import FakeClock

FIELDS = {"title": "t", "brief": "b"}
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


def test_two_hundred_claimers_of_one_task_have_one_winner(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other, ThreadPoolExecutor(RACERS) as pool:
        task = support.create(one)
        won = list(pool.map(lambda number: _claim((one, other)[number % 2], number), range(200)))
        assert [answer.id for answer in won if answer] == [task.id]
        _check(one)


class Lanes(Machine, name="lanes"):
    """Tasks of many lanes: by what they need, by tags, by the limit that each uses, and by whether they lapsed."""

    shelf: str
    waiting = State(initial=True)
    work = State(lease=minutes(1))
    done = State(final=True, outcome="failed")
    take = Named(waiting >> work, acquires=True, limits=Limit("shelf", key=field.shelf, per=hours(9), max=2 * RACERS))
    finish = Named(work >> done)


def test_as_many_tasks_in_several_lanes_as_claimers_are_all_claimed(url: str) -> None:
    """A third of them lapsed, a third not due before now."""
    clock = FakeClock()
    with Pointsman(url, [Lanes], clock=clock) as one, Pointsman(url, [Lanes], clock=clock) as other:
        kinds = cycle([{"needs": ["gpu"]}, {"tags": ["red"]}, {"tags": ["red"], "needs": ["git"]}, {}])
        for _ in range(RACERS // 3):
            one.create("lanes", {"shelf": "lapsed"}, by="ann", **next(kinds))
            assert one.claim("lanes", by="gone", capabilities=["gpu", "git"]) is not None
        for number in range(RACERS // 3, RACERS):
            run_at = clock.now + minutes(1) if number % 2 else None
            one.create("lanes", {"shelf": f"{number % 5}"}, by="ann", run_at=run_at, **next(kinds))
        clock.advance(minutes(2))
        won = _race([one, other], lambda pm, number: pm.claim("lanes", by=f"racer-{number}", capabilities=["gpu", "git"]))
        assert {answer and answer.id for answer in won} == {task.id for task in one.list(limit=RACERS)}
        assert one.verify().ok


def _several(pm: Pointsman, number: int) -> list[Task]:
    """As many as are given, some at a time."""
    found: list[Task] = []
    while taken := pm.claim_many("tasks", 7, by=f"racer-{number}"):
        found += taken
    return found


def test_of_those_who_take_many_each_task_has_one_and_none_is_missed(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other, ThreadPoolExecutor(RACERS) as pool:
        made = one.create_many("tasks", [FIELDS] * 5 * RACERS, by="ann")
        gate = Barrier(RACERS)

        def racer(number: int) -> list[Task]:
            gate.wait(PATIENCE_S)
            return _several((one, other)[number % 2], number)

        won = [task for taken in pool.map(racer, range(RACERS)) for task in taken]
        assert sorted(task.id for task in won) == sorted(task.id for task in made)
        _check(one)


def test_those_who_finish_the_same_many_do_not_wait_for_one_another(url: str) -> None:
    """In whatever order they name them: each is finished once, and nobody is told to try again."""
    with Pointsman(url) as one, Pointsman(url) as other, ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS):
            one.create_many("tasks", [FIELDS] * RACERS, by="ann")
            parts = [(task.id, task.epoch, {}) for task in one.claim_many("tasks", RACERS, by="racer")]
            asked = [pool.submit(pm.finish_many, "fail", list(order), by="racer") for pm, order in ((one, parts), (other, reversed(parts)))]
            answers = [answer for future in asked for answer in future.result(PATIENCE_S)]
            assert sum(isinstance(answer, Task) for answer in answers) == RACERS
            assert {answer.code for answer in answers if not isinstance(answer, Task)} == {"wrong_state"}
        _check(one)


def _one_of_many(pm: Pointsman, by: str) -> Task | None:
    return next(iter(pm.claim_many("tasks", 5, by=by)), None)


def _one_alone(pm: Pointsman, by: str) -> Task | None:
    return pm.claim("tasks", by=by)


@pytest.mark.parametrize("take", [_one_alone, _one_of_many])
@pytest.mark.parametrize("ending", ["unit.done", "commit.before"])
def test_a_queue_whose_last_task_somebody_decides_on_is_not_called_empty(
    postgres: PostgresServer, ending: str, take: Callable[[Pointsman, str], Task | None]
) -> None:
    """Rows that others hold are passed over; when nothing else is there, whoever asks waits to see how that ends."""
    url, pausing = postgres.empty(), Pausing(ending)
    with Pointsman(url, probe=pausing) as slow, Pointsman(url) as quick, ThreadPoolExecutor(2) as pool:
        task = support.create(quick)
        pausing.arm()
        holding = pool.submit(take, slow, "slow")
        assert pausing.passed.wait(PATIENCE_S)
        asking = pool.submit(take, quick, "quick")
        _until_somebody_waits(postgres, url, asking)
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


def _until_somebody_waits(postgres: PostgresServer, url: str, asking: Future[Task | None]) -> None:
    while not postgres.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()", url):
        assert not asking.done()


@pytest.mark.parametrize("ending", ["unit.done", "commit.before"])
def test_a_lapsed_task_that_its_owner_is_acting_on_is_waited_for(postgres: PostgresServer, ending: str) -> None:
    """It is among the tasks to be woken, not yet in the line. When its owner's call comes to nothing it is taken over; when
    it is accepted it has a new lease, judged by a time read after the wait."""
    url, pausing, clock = postgres.empty(), Pausing(ending), FakeClock()
    with (
        Pointsman(url, probe=pausing, clock=clock) as slow,
        Pointsman(url, clock=clock) as quick,
        ThreadPoolExecutor(2) as pool,
    ):
        task = support.drafting(quick, "slow")
        clock.advance(minutes(20))
        pausing.arm()
        acting = pool.submit(slow.propose, task.id, "start_draft", by="slow", epoch=task.epoch)
        assert pausing.passed.wait(PATIENCE_S)
        asking = pool.submit(quick.claim, "tasks", by="quick")
        _until_somebody_waits(postgres, url, asking)
        pausing.leave.set()
        answer = asking.result(PATIENCE_S)
        if ending == "unit.done":
            assert isinstance(acting.exception(PATIENCE_S), ZeroDivisionError)
            assert (answer and answer.id, answer and answer.epoch) == (task.id, 2)
        else:
            assert acting.result(PATIENCE_S).owner == "slow"
            assert answer is None
        assert quick.verify().ok


def test_whoever_waited_for_a_task_judges_by_a_time_read_after_the_wait(postgres: PostgresServer) -> None:
    """The lease of the task is live when the claimer begins to wait, and has run out when the wait is over."""
    url, pausing, clock = postgres.empty(), Pausing("unit.done"), FakeClock()
    with (
        Pointsman(url, probe=pausing, clock=clock) as slow,
        Pointsman(url, clock=clock) as quick,
        ThreadPoolExecutor(2) as pool,
    ):
        task = support.create(quick)
        pausing.arm()
        holding = pool.submit(slow.claim, "tasks", by="slow")
        assert pausing.passed.wait(PATIENCE_S)
        asking = pool.submit(quick.claim, "tasks", by="quick")
        _until_somebody_waits(postgres, url, asking)
        clock.advance(minutes(20))
        pausing.leave.set()
        answer = asking.result(PATIENCE_S)
        assert isinstance(holding.exception(PATIENCE_S), ZeroDivisionError)
        assert answer is not None
        assert answer.lease is not None
        assert (answer.id, answer.updated_at, answer.lease.expires_at) == (task.id, clock.now, clock.now + minutes(15))


@pytest.mark.parametrize("change", ["given back", "made"])
def test_what_joins_the_line_while_the_last_look_waits_is_found(postgres: PostgresServer, change: str) -> None:
    """A task that is eligible throughout moves to another place in the line, or comes while another one is waited for."""
    url, pausing, clock = postgres.empty(), Pausing("commit.before"), FakeClock()
    with Pointsman(url, probe=pausing, clock=clock) as slow, Pointsman(url, clock=clock) as quick, ThreadPoolExecutor(2) as pool:
        first = support.claimed(quick) if change == "given back" else support.create(quick)
        if change == "given back":
            quick.propose(first.id, "start_draft", by=support.OWNER, epoch=first.epoch)
            clock.advance(minutes(16))
            wake(quick.engine)
        pausing.arm()
        if change == "given back":
            holding = pool.submit(lambda: slow.release(first.id, by=support.OWNER, epoch=first.epoch))
        else:
            holding = pool.submit(lambda: slow.claim("tasks", by=support.OWNER))
        assert pausing.passed.wait(PATIENCE_S)
        asking = pool.submit(lambda: quick.claim("tasks", by=support.OTHER))
        _until_somebody_waits(postgres, url, asking)
        wanted = first if change == "given back" else support.create(quick)
        pausing.leave.set()
        assert holding.result(PATIENCE_S) is not None
        found = asking.result(PATIENCE_S)
        assert found is not None
        assert found.id == wanted.id
