"""P26, the part of one process: 64 checks run at once, hold no transaction, and judge each content once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from pointsman import Event, Machine, Pointsman, Refused, State, Task, Tasks, Verdict, check, minutes, owner
from pointsman.types import seconds

SUBMISSIONS = 64
PATIENCE_S = 20


class Meeting:
    """Where checks of these tests wait for one another and are counted."""

    gate: ClassVar[threading.Barrier]
    release: ClassVar[threading.Event]
    entered: ClassVar[threading.Event]
    calls: ClassVar[list[str]]

    @classmethod
    def reset(cls) -> None:
        cls.gate = threading.Barrier(SUBMISSIONS + 1)
        cls.release, cls.entered = threading.Event(), threading.Event()
        cls.calls = []


def meets(text: str) -> Verdict:
    Meeting.calls.append(text)
    Meeting.gate.wait(PATIENCE_S)
    return Verdict(True, "met")


def waits(text: str) -> Verdict:
    Meeting.calls.append(text)
    Meeting.entered.set()
    return Verdict(Meeting.release.wait(PATIENCE_S), "waited")


def raises(text: str) -> Verdict:
    Meeting.calls.append(text)
    raise RuntimeError("broken \0 judge")


def flips(text: str) -> Verdict:
    Meeting.calls.append(text)
    return Verdict(len(Meeting.calls) > 1, "the first is never good")


class Slow(Machine, name="slow"):
    text: str = ""
    extra: int | None = None
    open = State(initial=True)
    met = State(final=True)
    failed = State(final=True, outcome="failed")
    all_meet = check(meets)
    waited = check(waits, timeout=minutes(1))
    late = check(waits, timeout=seconds(0.05))
    broken = check(raises)
    flipped = check(flips)
    take = Event(open >> open, acquires=True)
    touch = Event(open >> open, sets="extra")
    write = Event(open >> open, sets="text")
    flip = Event(open >> met, by=owner, requires=flipped)
    meet = Event(open >> met, by=owner, requires=all_meet)
    wait = Event(open >> met, by=owner, requires=waited)
    hurry = Event(open >> met, by=owner, requires=late)
    break_ = Event(open >> met, by=owner, requires=broken)
    drop = Event(open >> failed)


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    Meeting.reset()
    with Pointsman(url, [Slow, Tasks]) as opened:
        yield opened
        Meeting.release.set()


def _held(pm: Pointsman, text: str = "t") -> Task:
    task = pm.claim("slow", by="w", id=pm.create("slow", {}, by="ann").id)
    assert task is not None
    return pm.propose(task.id, "write", {"text": text}, by="w")


def test_64_checks_meet_while_another_task_is_written_and_read(pm: Pointsman) -> None:
    held = [_held(pm, f"text {number}") for number in range(SUBMISSIONS)]
    with ThreadPoolExecutor(SUBMISSIONS) as pool:
        submitted = [pool.submit(pm.propose, task.id, "meet", by="w", epoch=task.epoch) for task in held]
        other = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
        claimed = pm.claim("tasks", by="w")
        assert claimed is not None
        assert pm.get(other.id).state == "claimed"
        assert not any(future.done() for future in submitted), "none is answered before all checks have met"
        Meeting.gate.wait(PATIENCE_S)
        assert {future.result().state for future in submitted} == {"met"}
    assert len(Meeting.calls) == SUBMISSIONS


def test_the_same_content_asked_for_twice_at_once_is_judged_once(pm: Pointsman) -> None:
    task = _held(pm)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(pm.propose, task.id, "wait", by="w", epoch=task.epoch) for _ in range(4)]
        assert Meeting.entered.wait(PATIENCE_S)
        Meeting.release.set()
        codes = [error.code if isinstance(error := future.exception(), Refused) else "" for future in asked]
    assert codes.count("") == 1
    assert set(codes) <= {"", "stale_content", "wrong_state"}, "the others were superseded, or came when it was done"
    assert Meeting.calls == ["t"]


def test_a_check_in_error_never_passes_and_is_asked_again(pm: Pointsman) -> None:
    task = _held(pm)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            pm.propose(task.id, "break_", by="w", epoch=task.epoch)
        assert refused.value.code == "evidence_failed"
        assert refused.value.failed[0]["status"] == "error"
        assert refused.value.failed[0]["reason"] == "check error: RuntimeError: broken � judge"
    assert len(Meeting.calls) == 2, "an error is not kept as a judgement"


def test_a_check_that_outlives_its_time_is_an_error(pm: Pointsman) -> None:
    task = _held(pm)
    with pytest.raises(Refused, match="no answer within"):
        pm.propose(task.id, "hurry", by="w", epoch=task.epoch)
    assert pm.get(task.id) == task


def test_a_verdict_counts_when_only_other_content_moved_meanwhile(pm: Pointsman) -> None:
    task = _held(pm)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pm.propose, task.id, "wait", by="w", epoch=task.epoch)
        assert Meeting.entered.wait(PATIENCE_S)
        pm.propose(task.id, "touch", {"extra": 1}, by="x", epoch=task.epoch)
        Meeting.release.set()
        assert waiting.result().state == "met"


def test_a_verdict_on_content_that_moved_meanwhile_is_not_applied(pm: Pointsman) -> None:
    task = _held(pm)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(pm.propose, task.id, "wait", by="w", epoch=task.epoch)
        assert Meeting.entered.wait(PATIENCE_S)
        moved = pm.propose(task.id, "write", {"text": "other"}, by="x")
        Meeting.release.set()
        error = waiting.exception()
    assert isinstance(error, Refused)
    assert (error.code, error.recorded) == ("stale_content", False)
    assert pm.get(task.id) == moved


def test_a_failed_judgement_stands_and_is_not_bought_again(pm: Pointsman) -> None:
    """No retry until pass: the same inputs are judged once, also for a process that starts later."""
    task = _held(pm)
    with Pointsman(pm.engine.db.url, [Slow, Tasks]) as later:
        for handle in (pm, pm, later):
            with pytest.raises(Refused) as refused:
                handle.propose(task.id, "flip", by="w", epoch=task.epoch)
            assert (refused.value.code, refused.value.failed[0]["status"]) == ("evidence_failed", "fail")
        assert Meeting.calls == ["t"]
        rewritten = later.propose(task.id, "write", {"text": "better"}, by="w")
        assert later.propose(task.id, "flip", by="w", epoch=rewritten.epoch).state == "met"
    assert Meeting.calls == ["t", "better"]
