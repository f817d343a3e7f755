"""P22: a wake-up is a hint. With all of them, whoever waits is told at once, in this process and in any other; without any,
it waits one poll interval longer."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from acceptance.board import until
from databases import KILL, PostgresServer
from pointsman import Event, Machine, Pointsman, State, Task, Tasks, Verdict, check, owner
from pointsman.engine import claim, claiming, waiting
from pointsman.engine.steps import Await, Steps
from pointsman.engine.waiting import POLL_S, QUEUE_POLL_S
from pointsman.store import postgres_relay
from pointsman.store.hints import of_queue, of_task
from support import create

CONNECTED = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pointsman-wake-ups'"
CUT = f"{KILL} AND application_name = 'pointsman-wake-ups'"
PATIENCE_S = 60
FOREVER_S = 3_600.0
JOBS = 100


def is_good(text: str) -> Verdict:
    return Verdict(text == "good", "compared")


class Slow(Machine, name="slow"):
    text: str = ""
    open = State(initial=True)
    done = State(final=True, outcome="failed")
    right = check(is_good)
    take = Event(open >> open, acquires=True)
    send = Event(open >> done, by=owner, sets="text", requires=right)


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Tasks, Slow]) as opened:
        yield opened


@pytest.fixture
def other(url: str, pm: Pointsman) -> Iterator[Pointsman]:
    """Another process, as far as its database can tell: it shares nothing but the database with the first."""
    with Pointsman(url, [Tasks, Slow]) as opened:
        yield opened


def looks_only_when_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No poll comes to the aid of a lost hint."""
    monkeypatch.setattr(claiming, "QUEUE_POLL_S", FOREVER_S)
    monkeypatch.setattr(waiting, "BEHIND_S", FOREVER_S)


def driven(pm: Pointsman, steps: Steps[Any], meanwhile: Callable[["Future[Any]"], None]) -> tuple[Any, list[float | None]]:
    """Drive a verb by hand. Where it would wait, `meanwhile` happens, and the time it would have waited is over at once;
    what it comes to, and those times."""
    waits: list[float | None] = []
    pm.engine.elapsed = lambda: sum(seconds or 0 for seconds in waits)
    answer = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as end:
            return end.value, waits
        if isinstance(step, Await):
            meanwhile(step.future)
            waits.append(step.wait_s)
            answer = None
        else:
            answer = step.run(pm.engine.db)


def case_claim(pm: Pointsman, other: Pointsman) -> tuple[Steps[Any], Callable[[], Any]]:
    return Pointsman.claim.steps(pm, "tasks", by="w", wait_s=60), lambda: create(other)


def case_wait(pm: Pointsman, other: Pointsman) -> tuple[Steps[Any], Callable[[], Any]]:
    task = create(pm)
    return Pointsman.wait.steps(pm, task.id, version=1, timeout_s=60), lambda: other.claim("tasks", by="w")


def case_feed(pm: Pointsman, other: Pointsman) -> tuple[Steps[Any], Callable[[], Any]]:
    return Pointsman.feed.steps(pm, wait_s=60), lambda: create(other)


def case_proposal(pm: Pointsman, other: Pointsman) -> tuple[Steps[Any], Callable[[], Any]]:
    """A refused one, which leaves no entry."""
    kept, settle = _pending(pm, other, "bad")
    return Pointsman.proposal.steps(pm, kept.proposal, wait_s=60), settle


def case_elsewhere(pm: Pointsman, other: Pointsman) -> tuple[Steps[Any], Callable[[], Any]]:
    """A caller who repeats its request at a process that does not work on it."""
    kept, settle = _pending(pm, other, "good")
    return Pointsman.propose.steps(pm, kept.task, "send", {"text": "good"}, by="w", epoch=1, idempotency_key="k", wait_s=60), settle


def _pending(pm: Pointsman, other: Pointsman, text: str) -> tuple[Any, Callable[[], Any]]:
    """A proposal that `other` has begun, and what ends it."""
    task = other.create("slow", {}, by="ann")
    other.claim("slow", by="w", id=task.id)
    asked = {"by": "w", "epoch": 1, "idempotency_key": "k"}
    kept = other.engine.db.run(next(Pointsman.propose.steps(other, task.id, "send", {"text": text}, **asked)).unit)
    return kept, lambda: other.engine.settling.outcome(kept).result(PATIENCE_S)


CASES = [case_claim, case_wait, case_feed, case_proposal, case_elsewhere]


@pytest.mark.parametrize("case", CASES)
def test_without_any_hint_it_is_found_after_one_poll_interval(
    pm: Pointsman, other: Pointsman, monkeypatch: pytest.MonkeyPatch, case: Callable[..., Any]
) -> None:
    monkeypatch.setattr(pm.engine.db.hints, "tell", lambda topics: None)
    steps, happens = case(pm, other)
    found, waits = driven(pm, steps, lambda hint: happens())
    assert found
    assert waits == [QUEUE_POLL_S if case is case_claim else POLL_S]


@pytest.mark.parametrize("case", CASES)
def test_whoever_waits_is_told_once_it_is_committed(pm: Pointsman, case: Callable[..., Any]) -> None:
    """In one process: the hint is there before the caller who made the change is answered."""
    steps, happens = case(pm, pm)
    told: list[bool] = []

    def meanwhile(hint: "Future[Any]") -> None:
        if not hint.done():  # else a listener that has just begun says: look
            happens()
            told.append(hint.done())

    found, _ = driven(pm, steps, meanwhile)
    assert found
    assert told == [True]


def test_what_is_committed_while_somebody_looks_is_heard(pm: Pointsman) -> None:
    """The look has found nothing, and whoever looked does not know it yet."""
    steps = Pointsman.claim.steps(pm, "tasks", by="w", wait_s=60)
    assert next(steps).run(pm.engine.db) is None
    create(pm)
    wait = steps.send(None)
    assert isinstance(wait, Await)
    assert wait.future.done()
    steps.close()
    assert not pm.engine.db.hints.anybody()


@pytest.mark.parametrize("case", [case_claim, case_wait, case_feed, case_elsewhere])
def test_whoever_waits_in_another_process_is_told(pm: Pointsman, other: Pointsman, case: Callable[..., Any]) -> None:
    """On a SQLite file by looking at it, on PostgreSQL by a message: nothing else ends the wait here."""
    steps, happens = case(pm, other)
    hints: list[Future[Any]] = []

    def told(hint: "Future[Any]") -> None:
        hints or happens()
        hints.append(hint)
        hint.result(PATIENCE_S)

    found, _ = driven(pm, steps, told)
    assert found
    assert 1 <= len(hints) <= 3, "the first hint of a process that has just begun to listen may be for nothing"


def test_nothing_came_and_the_time_is_over(pm: Pointsman) -> None:
    task, waits = driven(pm, Pointsman.claim.steps(pm, "tasks", by="w", wait_s=1.25), lambda hint: None)
    assert (task, waits) == (None, [QUEUE_POLL_S, QUEUE_POLL_S, 0.25])
    assert not pm.engine.db.hints.anybody()


def test_who_does_not_wait_takes_no_place(pm: Pointsman) -> None:
    task, waits = driven(pm, Pointsman.claim.steps(pm, "tasks", by="w"), lambda hint: None)
    assert (task, waits) == (None, [])


def test_who_waits_while_the_store_is_closed_is_told_so(pm: Pointsman, monkeypatch: pytest.MonkeyPatch) -> None:
    looks_only_when_told(monkeypatch)
    looks, whole = threading.Semaphore(0), claim.claim_next

    def looked(*asked: Any) -> Any:
        looks.release()
        return whole(*asked)

    monkeypatch.setattr(claim, "claim_next", looked)
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(pm.claim, "tasks", by="w", wait_s=PATIENCE_S) for _ in range(3)]
        for _ in range(3):
            assert looks.acquire(timeout=PATIENCE_S)
        pm.engine.db.close()
        assert {getattr(each.exception(PATIENCE_S), "code", None) for each in waiting} == {"store_unavailable"}


def taken_by(pm: Pointsman, count: int) -> list[Task | None]:
    """What so many callers got who waited, while as many tasks were made by somebody else."""
    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(pm.claim, "tasks", by=f"w{number}", wait_s=PATIENCE_S) for number in range(count)]
        return [each.result(2 * PATIENCE_S) for each in waiting]


@pytest.mark.parametrize("maker", ["pm", "other"])
def test_of_many_who_wait_for_as_many_tasks_each_gets_one(
    request: pytest.FixtureRequest, pm: Pointsman, monkeypatch: pytest.MonkeyPatch, maker: str
) -> None:
    looks_only_when_told(monkeypatch)
    count = 24
    making = request.getfixturevalue(maker)
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: [create(making).id for _ in range(count)])
        taken = taken_by(pm, count)
    assert {task.id for task in taken if task} == set(made.result())
    assert len({task.owner for task in taken if task}) == count


def test_of_many_who_are_never_told_each_gets_one(pm: Pointsman, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first in line looks by itself, and whoever leaves the line tells the next: that is no message, and is not lost."""
    monkeypatch.setattr(pm.engine.db.hints, "tell", lambda topics: None)
    monkeypatch.setattr(claiming, "QUEUE_POLL_S", 0.01)
    count = 24
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: [create(pm).id for _ in range(count)])
        taken = taken_by(pm, count)
    assert {task.id for task in taken if task} == set(made.result())


def test_a_thousand_who_wait_for_work_cost_one_look(pm: Pointsman, other: Pointsman, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also no thread each. Whoever gives up, in whatever way, leaves nothing behind and is no gap in the line."""
    looks_only_when_told(monkeypatch)
    count, looks, whole = 1_000, list[str](), claim.claim_next

    def counted(deciding: Any, *rest: Any) -> Any:
        looks.append(deciding.call.by.name)
        return whole(deciding, *rest)

    monkeypatch.setattr(claim, "claim_next", counted)

    async def scenario() -> None:
        before = threading.active_count()
        waiting = [asyncio.create_task(pm.aio.claim("tasks", by=f"w{number}", wait_s=PATIENCE_S)) for number in range(count)]
        while len(looks) < count:
            await asyncio.sleep(0)
        assert threading.active_count() <= before + 24, "pools of the store and one listener"
        for cancelled in waiting[:3]:
            cancelled.cancel()
        await asyncio.wait(waiting[:3])
        for _ in range(3):
            await asyncio.to_thread(create, other)
            done, _ = await asyncio.wait([each for each in waiting if not each.done()], return_when=asyncio.FIRST_COMPLETED)
            assert all(each.result() for each in done)
        got = [each for each in waiting if each.done() and not each.cancelled()]
        while len(got) < 3:
            await asyncio.wait([each for each in waiting if not each.done()], return_when=asyncio.FIRST_COMPLETED)
            got = [each for each in waiting if each.done() and not each.cancelled()]
        assert len({each.result().id for each in got if each.result()}) == 3
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)

    asyncio.run(scenario())
    assert count + 3 <= len(looks) <= 2 * count + 20
    assert not pm.engine.db.hints.anybody()


def test_who_listens_on_a_connection_that_is_cut_is_told_again_when_it_is_back(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_relay, "AGAIN_S", 0.05)
    url = postgres.empty()
    with Pointsman(url) as pm, Pointsman(url) as other, pm.engine.db.hints.waiting(of_queue("tasks")) as place:
        until_told(place, lambda: create(other))
        hint = place.listen()
        postgres.execute(CUT, url)
        hint.result(PATIENCE_S)  # whoever comes back says: look
        until_told(place, lambda: create(other))


def until_told(place: Any, move: Callable[[], Any]) -> None:
    """Again until the word of it arrives: the other side too may have to come back."""
    for _ in range(200):
        hint = place.listen()
        move()
        try:
            return hint.result(1)
        except TimeoutError:
            continue
    raise AssertionError("never told")


def test_while_connections_are_cut_a_waiting_caller_gets_its_task(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither side comes back within the test."""
    url = postgres.empty()
    with Pointsman(url) as pm, Pointsman(url) as other, ThreadPoolExecutor(1) as pool:
        with pm.engine.db.hints.waiting(of_queue("slow")) as place:
            until_told(place, lambda: other.engine.db.run(lambda tx: tx.news.add(of_queue("slow"))))
        monkeypatch.setattr(postgres_relay, "AGAIN_S", PATIENCE_S)
        until("both have a session", lambda: len(postgres.execute(CONNECTED, url)) == 2)
        assert len(postgres.execute(CUT, url)) == 2
        waiting = pool.submit(pm.claim, "tasks", by="w", wait_s=PATIENCE_S)
        made = create(other)
        taken = waiting.result(PATIENCE_S)
        assert taken is not None
        assert taken.id == made.id


def test_a_message_that_is_too_long_says_look_whatever_you_wait_for(postgres: PostgresServer) -> None:
    url = postgres.empty()
    with Pointsman(url) as pm, Pointsman(url) as other:
        task = create(pm)
        with pm.engine.db.hints.waiting("what nobody names") as place:
            until_told_of_anything(
                place, lambda: other.engine.db.run(lambda tx: tx.news.update(of_task(task.id) + str(n) for n in range(500)))
            )


def until_told_of_anything(place: Any, tell: Callable[[], Any]) -> None:
    for _ in range(200):
        hint = place.listen()
        tell()
        try:
            return hint.result(1)
        except TimeoutError:
            continue
    raise AssertionError("never told")


MAKER = """
import json, sys, time
from pointsman import Pointsman
with Pointsman(sys.argv[1]) as pm:
    print("ready", flush=True)
    for _ in sys.stdin:
        task = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
        print(json.dumps([task.id, time.monotonic()]), flush=True)
"""


def one_after_the_other(url: str, pm: Pointsman, count: int) -> list[float]:
    """Jobs that another process makes one by one while this one waits for each; how long each was under way, in seconds."""
    took: list[float] = []
    path = {"PYTHONPATH": ":".join(each for each in sys.path if each)}
    command = [sys.executable, "-c", MAKER, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=path) as maker:
        assert maker.stdin
        assert maker.stdout
        assert maker.stdout.readline() == "ready\n"
        for number in range(count):
            maker.stdin.write("\n")
            maker.stdin.flush()
            task = pm.claim("tasks", by="w", wait_s=PATIENCE_S)
            told = time.monotonic()
            made, at = json.loads(maker.stdout.readline())
            assert task is not None, f"the wake-up for job {number} was lost"
            assert task.id == made
            took.append(told - at)
        maker.stdin.close()
    return took


def test_no_wake_up_is_lost_between_processes(url: str, pm: Pointsman, monkeypatch: pytest.MonkeyPatch) -> None:
    looks_only_when_told(monkeypatch)
    assert len(one_after_the_other(url, pm, JOBS)) == JOBS


@pytest.mark.long
def test_no_wake_up_is_lost_in_ten_thousand_jobs(
    url: str, pm: Pointsman, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    looks_only_when_told(monkeypatch)
    took = sorted(one_after_the_other(url, pm, 10_000))
    with capsys.disabled():
        middle, late = took[len(took) // 2], took[len(took) * 99 // 100]
        print(f"\n{url.partition(':')[0]}: 10,000 jobs, made to taken: p50 {1000 * middle:.1f} ms, p99 {1000 * late:.1f} ms")
