"""P14: a timer never fires early, is never lost, fires once per due moment; after downtime late, once."""

import subprocess
import sys
from collections import Counter
from functools import partial
from threading import Barrier, Thread

import pytest

import support
from pointsman import Pointsman, Refused, Tasks, hours, minutes, seconds
from pointsman.engine import duties
from pointsman.engine.timers import Deadlines, Schedules
from pointsman.kernel.deadline import KIND
from pointsman.testing import FakeClock
from promises import firing
from promises.firing import HOUR, START, Timed


def _fired(pm: Pointsman) -> Counter[str]:
    """How often each deadline has fired, by task."""
    return Counter(entry.task for entry in pm.history(n=1_000) if entry.kind == KIND)


def _moments(pm: Pointsman) -> list[str]:
    """The due moments for which there is a task."""
    return sorted(key for task in pm.list(limit=1_000) if (key := task.dedupe_key))


def test_servers_killed_at_each_point_and_two_that_come_after(url: str) -> None:
    Pointsman(url, [Timed], clock=FakeClock(START)).close()
    done = subprocess.run([sys.executable, firing.__file__, url], capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    passed = done.stdout.splitlines()
    assert {"before:advance_task", "before:move_schedule", "commit.before", "commit.after"} <= set(passed)
    with Pointsman(url, [Timed], clock=FakeClock(START)) as pm:
        assert pm.verify().ok
        tasks = pm.list(limit=1_000)
        due = [task.id for task in tasks if task.state == "due"]
        assert len(due) == len(passed) + 1
        assert _fired(pm) == Counter(due)
        moments = _moments(pm)
        assert len(moments) == len(set(moments)) == len(passed) + 1
        assert all(entry.at >= START + HOUR for entry in pm.history(n=1_000) if entry.kind == KIND)


TEN_YEARS = hours(24 * 3652)
AROUND: list[tuple[str, int]] = [
    ("forward and back", hours(3)),
    ("back", -hours(6)),
    ("back and forward", hours(9)),
]


def test_a_clock_moved_both_ways_fires_nothing_twice(url: str) -> None:
    clock = FakeClock(START)
    with Pointsman(url, [Timed], clock=clock) as pm:
        Schedules(pm.engine).run_once()
        task = pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann")
        for _, by in AROUND:
            clock.advance(by)
            with Pointsman(url, [Timed], clock=clock) as other:
                for duty in (Deadlines(other.engine), Schedules(other.engine), Deadlines(pm.engine), Schedules(pm.engine)):
                    duty.run_once()
        assert _fired(pm) == Counter([task.id])
        assert _moments(pm) == [f"schedule:hourly:2026-01-01T0{hour}:00:00.000000Z" for hour in (1, 4)]


def _round(pm: Pointsman) -> None:
    duties.keep_time(pm.engine)
    duties.wake(pm.engine)
    Deadlines(pm.engine).run_once()
    Schedules(pm.engine).run_once()


def test_a_clock_set_ten_years_ahead_and_back_ends_nothing_and_time_that_passes_does(url: str) -> None:
    clock = FakeClock(START, uptime=hours(5))
    with Pointsman(url, [Tasks, Timed], clock=clock, uptime=clock.uptime) as pm:
        _round(pm)
        due = pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann")
        held = support.drafting(pm)
        later = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", run_at=clock.now + minutes(20))
        before = pm.list(limit=100)
        for jump in (TEN_YEARS, -TEN_YEARS, TEN_YEARS, -TEN_YEARS, -hours(1), hours(1)):
            clock.jump(jump)
            for _ in range(30):
                clock.advance(seconds(1))
                _round(pm)
                assert pm.claim("tasks", by="thief") is None
        assert pm.list(limit=100) == before
        with pytest.raises(Refused) as refused:
            pm.claim("tasks", by="thief", id=held.id)
        assert refused.value.code == "already_claimed"
        assert (_fired(pm), _moments(pm)) == (Counter(), [])
        clock.advance(HOUR)
        _round(pm)
        assert _fired(pm) == Counter([due.id])
        assert _moments(pm) == ["schedule:hourly:2026-01-01T01:00:00.000000Z"]
        assert {task.id for _ in range(2) if (task := pm.claim("tasks", by="thief"))} == {held.id, later.id}
        assert pm.verify().ok


def test_nothing_fires_early_by_the_clock_of_whoever_fires(url: str) -> None:
    """A server whose clock runs ahead sees the task due; one whose clock does not leaves it."""
    with Pointsman(url, [Timed], clock=FakeClock(START)) as pm:
        Schedules(pm.engine).run_once()
        pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann")
        for short, expected in ((1, 0), (0, 0), (-2, 1)):
            with Pointsman(url, [Timed], clock=FakeClock(START + minutes(30) - short)) as other:
                Deadlines(other.engine).run_once()
                assert sum(_fired(pm).values()) == expected
        assert _moments(pm) == []


@pytest.mark.parametrize("duty", [Deadlines, Schedules])
def test_many_servers_at_one_moment(url: str, duty: type[Deadlines] | type[Schedules]) -> None:
    clock, servers = FakeClock(START), 4
    with Pointsman(url, [Timed], clock=clock) as pm:
        Schedules(pm.engine).run_once()
        due = [pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann").id for _ in range(5)]
        clock.advance(HOUR)
        barrier, failed = Barrier(servers), list[BaseException]()
        threads = [Thread(target=partial(_at_once, url, clock, duty, barrier, failed)) for _ in range(servers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert (_fired(pm), _moments(pm)) == (
            (Counter(due), []) if duty is Deadlines else (Counter(), ["schedule:hourly:2026-01-01T01:00:00.000000Z"])
        )


def _at_once(url: str, clock: FakeClock, duty: type[Deadlines] | type[Schedules], barrier: Barrier, failed: list[BaseException]) -> None:
    try:
        with Pointsman(url, [Timed], clock=clock) as server:
            barrier.wait(30)
            duty(server.engine).run_once()
    except BaseException as error:  # noqa: BLE001 - told to the test
        failed.append(error)
