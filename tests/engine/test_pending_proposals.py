"""Proposals whose checks outlive their callers: one pending per task, decided again at the end, told once and for all."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest

from pointsman import Event, Machine, Pointsman, Principal, Refused, State, Task, Verdict, check, owner, role
from pointsman.engine.chance import wall_clock
from pointsman.engine.checks import Checks
from pointsman.engine.service import Service
from pointsman.kernel.bound import Bound, Judgement
from pointsman.testing import FakeClock
from pointsman.types import seconds

PATIENCE_S = 20


class Gate:
    """Holds every running check until it is opened."""

    open: ClassVar[threading.Event]
    entered: ClassVar[threading.Semaphore]
    judged: ClassVar[list[str]]

    @classmethod
    def reset(cls) -> None:
        cls.open, cls.entered, cls.judged = threading.Event(), threading.Semaphore(0), []

    @classmethod
    def wait_until_entered(cls) -> None:
        assert cls.entered.acquire(timeout=PATIENCE_S)


def slow(text: str) -> Verdict:
    Gate.judged.append(text)
    Gate.entered.release()
    return Verdict(Gate.open.wait(PATIENCE_S) and text != "bad", "compared")


class Slow(Machine, name="slow"):
    text: str = ""
    open = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    right = check(slow)
    take = Event(open >> open, acquires=True)
    send = Event(open >> done, by=owner | role("editor"), sets="text", requires=right, otherwise=open)
    drop = Event(open >> failed, by=role("operator"))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    Gate.reset()
    with Pointsman(url, [Slow]) as opened:
        yield opened
        Gate.open.set()


def _held(pm: Pointsman) -> Task:
    task = pm.claim("slow", by="w", id=pm.create("slow", {}, by="ann").id)
    assert task is not None
    return task


def _left(pm: Pointsman, task: Task, text: str, key: str | None = None) -> str:
    """Send, and do not wait for the check; the id of the pending proposal."""
    with pytest.raises(Refused) as refused:
        pm.propose(task.id, "send", {"text": text}, by="w", epoch=task.epoch, idempotency_key=key, wait_s=0)
    assert refused.value.code == "evidence_pending"
    return str(refused.value.refusal.extra["proposal"])


def test_a_proposal_goes_on_without_its_caller(pm: Pointsman) -> None:
    task = _held(pm)
    proposal = _left(pm, task, "good")
    assert (pm.proposal(proposal).status, pm.get(task.id)) == ("pending", task)
    Gate.open.set()
    assert pm.wait(task.id, states=["done"], timeout_s=PATIENCE_S).fields["text"] == "good"
    settled = pm.proposal(proposal)
    assert (settled.status, settled.version, settled.refusal) == ("accepted", task.version + 1, None)


def test_a_refused_outcome_is_kept_with_its_reasons(pm: Pointsman) -> None:
    task = _held(pm)
    proposal = _left(pm, task, "good")
    Gate.wait_until_entered()
    pm.propose(task.id, "drop", by="x")
    Gate.open.set()
    with pytest.raises(Refused, match="wrong_state"):
        pm.propose(task.id, "send", {"text": "good"}, by="w", epoch=task.epoch)
    settled = _settled(pm, proposal)
    assert (settled.status, settled.refusal and settled.refusal["code"]) == ("refused", "wrong_state")


def _settled(pm: Pointsman, proposal: str):
    for _ in range(200):
        if (seen := pm.proposal(proposal)).status != "pending":
            return seen
        threading.Event().wait(0.05)
    raise AssertionError("still pending")


def test_an_otherwise_branch_is_an_accepted_outcome(pm: Pointsman) -> None:
    task = _held(pm)
    proposal = _left(pm, task, "bad", key="k")
    Gate.open.set()
    settled = _settled(pm, proposal)
    assert (settled.status, settled.version) == ("accepted", task.version + 1)
    with pytest.raises(Refused) as refused:
        pm.propose(task.id, "send", {"text": "bad"}, by="w", epoch=task.epoch, idempotency_key="k")
    assert (refused.value.code, refused.value.recorded, refused.value.version) == ("evidence_failed", True, task.version + 1)


def test_a_newer_proposal_supersedes_the_pending_one(pm: Pointsman) -> None:
    task = _held(pm)
    first, second = _left(pm, task, "one"), _left(pm, task, "two")
    assert (pm.proposal(first).status, pm.proposal(second).status) == ("superseded", "pending")
    Gate.open.set()
    assert _settled(pm, second).status == "accepted"
    assert pm.proposal(first).status == "superseded"
    assert pm.get(task.id).fields["text"] == "two"


def test_the_superseded_caller_is_told(pm: Pointsman) -> None:
    task = _held(pm)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(pm.propose, task.id, "send", {"text": "one"}, by="w", epoch=task.epoch)
        Gate.wait_until_entered()
        second = _left(pm, task, "two")
        Gate.open.set()
        error = first.exception()
    assert isinstance(error, Refused)
    assert (error.code, "superseded" in error.detail) == ("stale_content", True)
    assert _settled(pm, second).status == "accepted"


def test_the_key_is_taken_with_the_proposal(pm: Pointsman) -> None:
    task = _held(pm)
    first = _left(pm, task, "good", key="k")
    assert _left(pm, task, "good", key="k") == first, "a retry joins the pending proposal"
    with pytest.raises(Refused, match="idempotency_conflict"):
        pm.propose(task.id, "send", {"text": "other"}, by="w", epoch=task.epoch, idempotency_key="k", wait_s=0)
    Gate.open.set()
    done = pm.propose(task.id, "send", {"text": "good"}, by="w", epoch=task.epoch, idempotency_key="k")
    assert (done.state, done.version) == ("done", task.version + 1)
    assert Gate.judged == ["good"]


def test_rights_are_judged_again_at_the_end(pm: Pointsman) -> None:
    """Who had a role when proposing, and only owned the task through an epoch that has passed, is refused at the end."""
    task = _held(pm)
    editor = Principal("ed", roles=frozenset({"editor"}))
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(pm.propose, task.id, "send", {"text": "good"}, by=editor, expect_version=task.version)
        Gate.wait_until_entered()
        pm.propose(task.id, "drop", by="x")
        Gate.open.set()
        error = sent.exception()
    assert isinstance(error, Refused)
    assert (error.code, error.state) == ("stale_version", "failed")


def test_another_process_takes_over_what_nobody_works_on(url: str, pm: Pointsman) -> None:
    """The first process has begun and then says nothing more; its time runs out for the second, whose clock is ahead."""
    task = _held(pm)
    steps = Pointsman.propose.steps(pm, task.id, "send", {"text": "good"}, by="w", epoch=task.epoch)
    pending = pm.engine.db.run(next(steps).unit)
    Gate.open.set()
    with Pointsman(url, [Slow]) as present:
        assert present.engine.settling.take_over() == 0, "its time has not run out"
    with Pointsman(url, [Slow], clock=FakeClock(wall_clock() + seconds(60))) as later:
        assert later.engine.settling.take_over() == 1
        assert _settled(later, pending.proposal).status == "accepted"
        assert later.engine.settling.take_over() == 0
    assert pm.get(task.id).state == "done"
    assert Gate.judged == ["good"]


def test_a_process_that_lacks_the_check_leaves_the_proposal_to_others(url: str, pm: Pointsman) -> None:
    task = _held(pm)
    steps = Pointsman.propose.steps(pm, task.id, "send", {"text": "good"}, by="w", epoch=task.epoch)
    pending = pm.engine.db.run(next(steps).unit)
    with Pointsman(url, [], clock=FakeClock(wall_clock() + seconds(60))) as stranger:
        stranger.engine.settling.take_over()
    assert pm.proposal(pending.proposal).status == "pending"


@pytest.mark.parametrize("name", ["01a22877-5573-7f83-ad0b-abae4ab3849b", "nonsense"])
def test_an_unknown_proposal_is_refused(pm: Pointsman, name: str) -> None:
    with pytest.raises(Refused, match="unknown_proposal"):
        pm.proposal(name)


def test_awaiting_is_the_same_as_blocking(pm: Pointsman) -> None:
    import asyncio

    async def run(task: Task) -> tuple[str, Task]:
        try:
            await pm.aio.propose(task.id, "send", {"text": "good"}, by="w", epoch=task.epoch, wait_s=0.01)
        except Refused as refused:
            pending = str(refused.refusal.extra["proposal"])
        Gate.open.set()
        return (await pm.aio.proposal(pending)).task, await pm.aio.wait(task.id, states=["done"], timeout_s=PATIENCE_S)

    task = _held(pm)
    of, done = asyncio.run(run(task))
    assert (of, done.state) == (task.id, "done")


def test_the_key_of_a_pending_proposal_is_taken_for_every_verb(pm: Pointsman) -> None:
    task = _held(pm)
    proposal = _left(pm, task, "good", key="k")
    for other in (
        lambda: pm.create("slow", {}, by="w", idempotency_key="k"),
        lambda: pm.claim("slow", by="w", idempotency_key="k"),
        lambda: pm.propose(task.id, "drop", by="w", idempotency_key="k"),
    ):
        with pytest.raises(Refused, match="idempotency_conflict"):
            other()
    Gate.open.set()
    assert _settled(pm, proposal).status == "accepted"


def test_a_caller_who_asks_again_takes_over_from_a_process_that_died(url: str, pm: Pointsman) -> None:
    """No duties run here: the repeated proposal itself finds that nobody works on it."""
    task = _held(pm)
    asked = {"by": "w", "epoch": task.epoch, "idempotency_key": "k"}
    pm.engine.db.run(next(Pointsman.propose.steps(pm, task.id, "send", {"text": "good"}, **asked)).unit)
    Gate.open.set()
    with Pointsman(url, [Slow], clock=FakeClock(wall_clock() + seconds(60))) as later:
        assert later.propose(task.id, "send", {"text": "good"}, **asked).state == "done"


def test_hung_checks_do_not_stop_those_behind_them() -> None:
    release = threading.Event()
    pool = Checks(size=1)

    def hangs(expired: object) -> Judgement:
        release.wait(PATIENCE_S)
        return Judgement("pass", "late")

    hung = [pool.start(number, hangs, seconds(0.05)) for number in range(3)]
    good = pool.start("good", lambda expired: Judgement("pass", "in time"), seconds(PATIENCE_S))
    assert good.result(PATIENCE_S).reason == "in time"
    assert {future.result(0).status for future in hung} == {"error"}
    release.set()
    pool.close()


def test_a_check_that_asks_to_exit_is_an_error() -> None:
    def leaves(text: str) -> Verdict:
        raise SystemExit(1)

    bound = Bound(Slow.definition, {("check", "slow", 1): leaves})
    assert bound.judge(Slow.definition.check["right"], {"text": "t"}).status == "error"


def test_a_duty_outlives_whatever_goes_wrong(caplog: pytest.LogCaptureFixture) -> None:
    turns = threading.Semaphore(0)

    def fails() -> bool:
        turns.release()
        raise KeyError("unexpected")

    service = Service("failing", fails, period_s=0.01)
    service.start()
    for _ in range(3):
        assert turns.acquire(timeout=PATIENCE_S)
    service.stop()
    assert "failing failed" in caplog.text
