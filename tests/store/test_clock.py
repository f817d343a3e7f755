"""The store's clock: it rises, follows a jump by a bound a tick, and one process at a time brings the mark on."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman.engine.chance import uptime
from pointsman.store import clock as marks
from pointsman.store.clock import BOUND, KEPT, TICK, Mark, RisingClock
from pointsman.store.connect import connect
from pointsman.store.database import Database, Tx
from pointsman.testing import FakeClock
from pointsman.types import Instant, hours, seconds

TEN_YEARS = hours(24 * 3652)


def now(tx: Tx) -> Instant:
    return tx.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(uptime=hours(7))


@pytest.fixture
def db(tmp_path: Path, clock: FakeClock) -> Iterator[Database]:
    opened = another(tmp_path, clock)
    yield opened
    opened.close()


def another(folder: Path, clock: FakeClock) -> Database:
    return connect(f"sqlite:///{folder}/work.db", clock=clock, uptime=clock.uptime)


def test_time_that_passes_is_told_as_it_is(clock: FakeClock) -> None:
    rising = RisingClock(clock, clock.uptime)
    for span in (0, 1, seconds(1), hours(9), hours(24 * 400)):
        clock.advance(span)
        assert rising() == clock.now


def test_a_jump_is_followed_by_the_bound_in_each_tick_and_told_once(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    rising = RisingClock(clock, clock.uptime)
    before = rising()
    clock.jump(TEN_YEARS)
    with caplog.at_level(logging.WARNING, "pointsman"):
        assert {rising() for _ in range(100)} == {before}
        for tick in range(1, 20):
            clock.advance(TICK)
            assert {rising() for _ in range(100)} == {before + tick * (TICK + BOUND)}
        assert len(caplog.records) == 1
        clock.jump(-TEN_YEARS)
        assert rising() == before + 19 * (TICK + BOUND)
        clock.advance(19 * BOUND)
        assert rising() == before + 19 * (TICK + BOUND)
        clock.advance(hours(1))
        assert rising() == clock.now
        assert len(caplog.records) == 1
        clock.jump(hours(1))
        clock.advance(TICK)
        rising()
        assert len(caplog.records) == 2


def test_a_small_step_is_followed_in_silence(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    rising = RisingClock(clock, clock.uptime)
    rising()
    clock.jump(BOUND)
    clock.advance(TICK)
    assert rising() == clock.now
    assert caplog.records == []


def test_a_clock_put_back_and_right_again_lost_no_time(clock: FakeClock) -> None:
    rising = RisingClock(clock, clock.uptime)
    before = rising()
    clock.jump(-hours(2))
    for _ in range(60):
        clock.advance(TICK)
        assert rising() == before
    clock.jump(hours(2))
    assert rising() == clock.now == before + 60 * TICK


def test_the_mark_is_brought_on_once_a_tick_whoever_does(db: Database, tmp_path: Path, clock: FakeClock) -> None:
    other = another(tmp_path, clock)
    assert [marks.keep(db), marks.keep(other), marks.keep(db)] == [True, False, False]
    clock.advance(TICK - 1)
    assert [marks.keep(other), marks.keep(db)] == [False, False]
    clock.advance(1)
    assert [marks.keep(other), marks.keep(db)] == [True, False]
    assert db.read(marks.find) == Mark(clock.now, clock.uptime())
    other.close()


def test_of_two_that_move_the_mark_from_one_place_one_does(db: Database, clock: FakeClock) -> None:
    assert [db.run(lambda tx: marks.move(None, 5, tx)) for _ in range(2)] == [True, False]
    found = db.read(marks.find)
    assert found is not None
    assert [db.run(lambda tx: marks.move(found, 6, tx)) for _ in range(2)] == [True, False]


def test_whoever_starts_while_the_mark_is_kept_goes_on_from_it(db: Database, tmp_path: Path, clock: FakeClock) -> None:
    marks.keep(db)
    true = clock.now
    clock.jump(TEN_YEARS)
    clock.advance(KEPT)
    late = another(tmp_path, clock)
    assert true + KEPT <= late.run(now) <= true + KEPT + BOUND
    late.close()


@pytest.mark.parametrize("since", [KEPT + 1, hours(24 * 90), -hours(1)])
def test_whoever_starts_after_a_downtime_believes_its_clock(db: Database, tmp_path: Path, clock: FakeClock, since: int) -> None:
    """Nobody kept the mark, or the machine was restarted, and its uptime began anew."""
    marks.keep(db)
    later = FakeClock(clock.now + hours(24 * 90), clock.uptime() + since)
    started = another(tmp_path, later)
    assert started.run(now) == later.now
    assert marks.keep(started)
    assert db.read(marks.find) == Mark(later.now, later.uptime())
    started.close()


def test_a_process_whose_clock_is_behind_follows_the_mark(db: Database, tmp_path: Path, clock: FakeClock) -> None:
    marks.keep(db)
    behind = FakeClock(clock.now - hours(5), clock.uptime())
    other = another(tmp_path, behind)
    for _ in range(3):
        assert other.run(now) == other.read(now) == db.run(now) == clock.now
        for each in (clock, behind):
            each.advance(TICK)
        marks.keep(db)
    other.close()


def test_several_keepers_follow_a_jump_no_faster_than_one(db: Database, tmp_path: Path, clock: FakeClock) -> None:
    keepers = [db, *(another(tmp_path, clock) for _ in range(4))]
    for keeper in keepers:
        marks.keep(keeper)
    true = clock.now
    clock.jump(TEN_YEARS)
    for step in range(50):
        clock.advance(TICK // 5)
        marks.keep(keepers[step % 5])
    assert true + 10 * TICK < db.run(now) <= true + 10 * TICK + 11 * BOUND
    for keeper in keepers[1:]:
        keeper.close()


def test_a_server_has_a_clock_of_its_own(url: str, clock: FakeClock) -> None:
    opened = connect(url, clock=clock)
    kept = marks.keep(opened)
    assert (kept, opened.clock is None) == ((False, True) if url.startswith("postgres") else (True, False))
    opened.close()


def test_the_uptime_of_the_machine_rises() -> None:
    first = uptime()
    assert 0 < first <= uptime()
