"""P15: time as the store sees it never runs backwards, whatever the clocks of those who write; safety never depends on a clock."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import IO

import pytest

import support
from pointsman import Pointsman, Refused, hours, minutes
from pointsman.engine import duties
from pointsman.engine.chance import wall_clock
from pointsman.testing import FakeClock
from pointsman.types import SECOND, Duration
from promises import skewed as program
from promises.skewed import Timed

AHEAD, BEHIND = hours(3), -hours(5)


@pytest.fixture
def skewed(url: str) -> Iterator[list[Pointsman]]:
    """Three servers on one database: one by the time, one ahead of it, one behind."""
    with ExitStack() as stack:
        clocks = [FakeClock(FakeClock().now + skew) for skew in (0, AHEAD, BEHIND)]
        yield [stack.enter_context(Pointsman(url, clock=clock)) for clock in clocks]


def test_the_history_of_a_task_and_the_feed_never_run_backwards(skewed: list[Pointsman]) -> None:
    here, ahead, behind = skewed
    task = support.create(here)
    for pm in (ahead, behind, here, behind):
        claimed = pm.claim("tasks", by="w", id=task.id)
        assert claimed is not None
        pm.release(task.id, by="w", epoch=claimed.epoch, counts=False)
        support.create(pm)
    times = [entry.at for entry in here.history(task.id)]
    assert times == sorted(set(times))
    numbered = [entry.at for entry in here.feed(limit=1_000)]
    assert len(numbered) == len(times) + 4
    assert [entry.seq for entry in here.feed(limit=1_000)] == list(range(1, len(numbered) + 1))
    boards = [[item.id for item in here.list(at=f"#{seq}")] for seq in range(1, len(numbered) + 1)]
    assert all(set(earlier) <= set(later) for earlier, later in pairwise(boards))
    assert here.verify().ok


@pytest.mark.parametrize("skew", [AHEAD, BEHIND, 0])
def test_a_replaced_owner_writes_nothing_whatever_the_clocks_say(url: str, skew: Duration) -> None:
    """A thief whose clock runs ahead takes the task early: that costs work, and no more."""
    clock, other = FakeClock(), FakeClock(FakeClock().now + AHEAD)
    with Pointsman(url, clock=clock) as pm, Pointsman(url, clock=other) as thief:
        task = support.drafting(pm)
        taken = thief.claim("tasks", by=support.OTHER, id=task.id)
        assert taken is not None
        assert taken.epoch == task.epoch + 1
        clock.advance(skew)
        before = pm.get(task.id)
        mine = {"by": support.OWNER, "epoch": task.epoch}
        for verb in (
            lambda: pm.propose(task.id, "start_draft", **mine),
            lambda: pm.renew(task.id, **mine),
            lambda: pm.release(task.id, **mine),
        ):
            with pytest.raises(Refused) as refused:
                verb()
            assert refused.value.code == "lease_lost"
        assert pm.get(task.id) == before
        epochs = [entry.epoch for entry in pm.history(task.id)]
        assert epochs == sorted(epochs)


def test_an_owner_goes_on_though_the_clock_was_put_back(url: str) -> None:
    clock = FakeClock()
    with Pointsman(url, clock=clock) as pm:
        task = support.drafting(pm)
        clock.advance(-hours(1))
        renewed = pm.renew(task.id, by=support.OWNER, epoch=task.epoch)
        assert renewed.lease is not None
        clock.advance(minutes(10))
        sent = pm.propose(task.id, "request_approval", {"draft": support.GOOD}, by=support.OWNER, epoch=task.epoch)
        assert sent.updated_at > task.updated_at
        assert pm.verify().ok


def _asked(process: "subprocess.Popen[str]", skew: Duration) -> int:
    """One round of a process whose clock is so wrong: by how many seconds the store's time is."""
    told, answer = process.stdin, process.stdout
    assert told is not None
    assert answer is not None
    return _line(told, answer, skew // SECOND)


def _line(told: IO[str], answer: IO[str], skew_s: int) -> int:
    told.write(f"{skew_s}\n")
    told.flush()
    return int(answer.readline())


def test_processes_whose_clocks_are_wrong_share_the_time(url: str) -> None:
    """One begins ten years ahead and one an hour behind, beside a server that keeps the time, and both are moved about."""
    far, slack_s = hours(24 * 3652), 600
    with Pointsman(url, [Timed]) as pm, ExitStack() as stack:
        duties.keep_time(pm.engine)
        due = pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann")
        processes = [
            stack.enter_context(
                subprocess.Popen([sys.executable, program.__file__, url, str(skew // SECOND)], stdin=-1, stdout=-1, text=True)
            )
            for skew in (far, -hours(1))
        ]
        for skews in ((far, -hours(1)), (0, far), (-far, 0), (far, far)):
            off_s = [_asked(process, skew) for process, skew in zip(processes, skews, strict=True)]
            assert all(abs(off) < slack_s for off in off_s), skews
            duties.keep_time(pm.engine)
            assert abs(pm.engine.db.run(lambda tx: tx.now) - wall_clock()) < slack_s * SECOND
        for process in processes:
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(60) == 0
        found = pm.get(due.id)
        assert (found.version, found.deadline) == (due.version, due.deadline)
        times = [entry.at for entry in pm.history(n=1_000)]
        assert sorted(times) == sorted(set(times))
        assert pm.verify().ok
