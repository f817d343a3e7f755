"""Handlers are called with tasks; what they leave is given back, counted as they left it."""

import logging
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from pointsman import Outcome, Pointsman, Refused, Work, Worker
from pointsman.testing import FakeClock
from pointsman.worker.outcomes import Halt
from worker.jobs import Jobs, Seconds

ME = "worker-a"
PATIENCE_S = 20


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Jobs], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


@pytest.fixture
def worker(pm: Pointsman, clock: FakeClock) -> Worker:
    return Worker(pm, clock=Seconds(clock))


def made(pm: Pointsman) -> str:
    return pm.create("jobs", {}, by="ann").id


def counted(pm: Pointsman, id: str) -> tuple[int, int, int]:
    attempts = pm.get(id).attempts
    return attempts.lost, attempts.error, attempts.deferred


def test_a_handler_is_called_with_a_task_it_owns_and_moves_it(pm: Pointsman, worker: Worker) -> None:
    wanted, answers = made(pm), list[Outcome]()

    @worker.on("jobs")
    def handle(work: Work) -> Outcome:
        assert (work.task.id, work.task.state, work.task.owner) == (wanted, "doing", ME)
        answers.append(work.propose("step", {"remark": "half"}))
        assert work.task.fields["remark"] == "half"
        return work.propose("finish", idempotency_key="once")

    assert worker.run_once(ME)
    assert not worker.run_once(ME)
    assert answers[0].task.fields["remark"] == "half"
    assert [entry.event for entry in pm.history(wanted)] == ["create", "take", "step", "finish"]
    assert pm.refusals() == [], "what is not held any more is not asked to be given back"


def test_tasks_go_to_the_handler_that_suits_them(pm: Pointsman, worker: Worker) -> None:
    calls: list[tuple[str, str]] = []

    @worker.on("jobs", tags=["pictures"], capabilities=["gpu"])
    def draws(work: Work) -> Outcome:
        calls.append(("draws", work.task.id))
        return work.propose("finish")

    drawn = pm.create("jobs", {}, by="ann", tags=["pictures"], needs=["gpu"]).id
    for other in ({}, {"tags": ["pictures"], "needs": ["gpu", "big"]}, {"needs": ["gpu"]}):
        pm.create("jobs", {}, by="ann", **other)
    assert [worker.run_once(ME) for _ in range(2)] == [True, False]
    assert calls == [("draws", drawn)]


def test_tasks_of_a_state_go_to_the_handler_for_it(pm: Pointsman, worker: Worker, clock: FakeClock) -> None:
    calls: list[tuple[str, str]] = []

    @worker.on("jobs", state="sending")
    def sends(work: Work) -> Outcome:
        calls.append(("sends", work.task.id))
        return work.propose("finish")

    @worker.on("jobs")
    def begins(work: Work) -> Outcome:
        calls.append(("begins", work.task.id))
        return work.propose("send")

    one, two = made(pm), made(pm)
    assert [worker.run_once(ME) for _ in range(5)] == [True, True, True, True, False]
    assert sorted(calls) == sorted([("begins", one), ("begins", two), ("sends", one), ("sends", two)])
    assert {pm.get(id).state for id in (one, two)} == {"done"}


@pytest.mark.parametrize(
    ("handle", "state", "expected", "reason"),
    [
        (lambda work: None, "todo", (0, 0, 1), "the handler returned"),
        (lambda work: work.propose("step"), "todo", (1, 0, 0), "the handler returned"),
        (lambda work: work.propose("nothing"), "todo", (0, 1, 0), "the handler raised Refused: unknown_event"),
        (lambda work: {}["a\0b"], "todo", (0, 1, 0), "the handler raised KeyError: "),
        (lambda work: exit(3), "todo", (0, 1, 0), "the handler raised SystemExit: 3"),
    ],
)
def test_what_a_handler_leaves_is_given_back(
    pm: Pointsman, worker: Worker, handle: Callable[[Work], object], state: str, expected: tuple[int, int, int], reason: str
) -> None:
    wanted = made(pm)
    worker.on("jobs")(handle)
    assert worker.run_once(ME)
    task, entry = pm.get(wanted), pm.history(wanted)[-1]
    assert (task.state, task.owner, counted(pm, wanted)) == (state, None, expected)
    assert (entry.reason or "").startswith(reason)


def test_what_waits_for_somebody_else_is_left_alone(pm: Pointsman, worker: Worker) -> None:
    wanted = made(pm)

    @worker.on("jobs")
    def handle(work: Work) -> Outcome:
        return work.propose("submit")

    assert worker.run_once(ME)
    assert (pm.get(wanted).state, pm.get(wanted).owner) == ("in_review", ME)


def test_a_handler_that_was_replaced_is_told_and_writes_nothing(
    pm: Pointsman, worker: Worker, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = made(pm)

    @worker.on("jobs")
    def handle(work: Work) -> Outcome:
        clock.advance(4_000_000)
        assert pm.claim("jobs", by="worker-b", id=wanted) is not None
        assert worker.keeper is not None
        worker.keeper.run_once()
        assert work.lost is not None
        assert work.lost.code == "lease_lost"
        try:
            return work.propose("finish")
        finally:
            ended.append(sys.exc_info()[0])

    ended = list[object]()
    with caplog.at_level(logging.CRITICAL, "pointsman"):
        assert worker.run_once(ME)
    task = pm.get(wanted)
    assert ended == [Halt]
    assert (task.owner, task.state, counted(pm, wanted)[1]) == ("worker-b", "doing", 0)


def test_stopping_waits_for_what_is_in_work_and_gives_back_the_rest(url: str) -> None:
    begun, leave, over = threading.Semaphore(0), threading.Event(), threading.Event()

    with Pointsman(url, [Jobs]) as pm:
        worker, ids = Worker(pm), [made(pm) for _ in range(3)]

        @worker.on("jobs")
        def handle(work: Work) -> None:
            begun.release()
            if work.task.id == ids[0]:
                assert leave.wait(PATIENCE_S)
                work.propose("finish")
            else:
                assert over.wait(PATIENCE_S)
                with pytest.raises(Halt):
                    work.propose("finish")

        worker.start(ME, concurrency=2)
        for _ in range(2):
            assert begun.acquire(timeout=PATIENCE_S)
        leave.set()
        worker.stop(grace_s=2)
        states = [pm.get(id).state for id in ids]
        assert (states[0], states[1], pm.history(ids[1])[-1].reason) == ("done", "todo", "the worker was told to stop")
        assert (counted(pm, ids[1]), states[2]) == ((0, 0, 1), "todo")
        over.set()
        for thread in threading.enumerate():
            if thread.name.startswith("pointsman-worker"):
                thread.join(PATIENCE_S)
        assert pm.get(ids[1]).state == "todo"


def test_several_tasks_are_in_work_at_once_and_one_thread_looks_for_more(url: str) -> None:
    together = threading.Barrier(4)
    with Pointsman(url, [Jobs]) as pm:
        worker, ids = Worker(pm), [made(pm) for _ in range(8)]

        @worker.on("jobs")
        def handle(work: Work) -> Outcome:
            together.wait(PATIENCE_S)
            return work.propose("finish")

        worker.start(ME, concurrency=4)
        for id in ids:
            assert pm.wait(id, states=["done"], timeout_s=PATIENCE_S).state == "done"
        worker.stop()


def test_what_a_worker_lacks_is_told_at_the_start(pm: Pointsman) -> None:
    with pytest.raises(Refused, match="has no database"):
        Worker().run_once(ME)
    worker = Worker(pm)
    worker.on("articles")(lambda work: None)
    worker.on("jobs", state="going")(lambda work: None)
    with pytest.raises(Refused) as refused:
        worker.start(ME)
    assert [item["path"] for item in refused.value.failed] == ["@worker.on('articles')", "@worker.on('jobs')"]
