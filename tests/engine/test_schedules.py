"""Schedules: at each due moment one task, whoever makes it."""

from collections.abc import Iterator

import pytest

from pointsman import Event, Machine, Pointsman, Schedule, State, hours, minutes, seconds
from pointsman.engine.timers import Schedules
from pointsman.store import schedules
from pointsman.testing import FakeClock
from pointsman.types import instant, iso

START = instant("2026-01-01T00:30:00Z")
HOURLY = "schedule:hourly:"


def report(version: int = 1, **declared: Schedule) -> type[Machine]:
    """A machine with these schedules."""
    number = version
    body = {"hourly": Schedule("0 * * * *", fields={"title": "Report"}), **declared}

    class Report(Machine, name="report"):
        version = number
        title: str
        open = State(initial=True)
        failed = State(final=True, outcome="failed")
        drop = Event(open >> failed)
        locals().update({name: schedule for name, schedule in body.items() if schedule is not None})

    return Report


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [report()], clock=clock) as opened:
        run(opened)
        yield opened
        assert opened.verify().ok


def run(pm: Pointsman) -> None:
    assert Schedules(pm.engine).run_once() is False


def made(pm: Pointsman) -> list[str]:
    """The moments for which there is a task, to the minute."""
    return [(task.dedupe_key or "").removeprefix(HOURLY)[11:16] for task in pm.list(machine="report")]


def test_each_due_moment_makes_one_task(pm: Pointsman, clock: FakeClock) -> None:
    clock.advance(minutes(30) - 1)
    run(pm)
    assert pm.list() == []
    clock.advance(1)
    run(pm)
    run(pm)
    (task,) = pm.list()
    assert (task.fields["title"], task.created_by, task.state, task.created_at) == ("Report", "scheduler", "open", clock.now)
    assert task.dedupe_key == f"{HOURLY}{iso(clock.now)}"
    assert [(entry.kind, entry.by, entry.door) for entry in pm.history(task.id)] == [("create", "scheduler", "duty")]
    clock.advance(hours(1))
    run(pm)
    assert made(pm) == ["01:00", "02:00"]


@pytest.mark.parametrize(("misfire", "found"), [("once", ["01:00"]), ("skip", [])])
def test_after_a_downtime_one_late_or_none(url: str, clock: FakeClock, misfire: str, found: list[str]) -> None:
    hourly = Schedule("0 * * * *", fields={"title": "Report"}, misfire=misfire)  # pyright: ignore[reportArgumentType]
    with Pointsman(url, [report(hourly=hourly)], clock=clock) as pm:
        run(pm)
        clock.advance(hours(5))
        run(pm)
        run(pm)
        assert made(pm) == found
        clock.advance(minutes(30))
        run(pm)
        assert made(pm) == [*found, "06:00"]


def test_a_moment_that_is_a_little_late_is_not_missed(url: str, clock: FakeClock) -> None:
    hourly = Schedule("0 * * * *", fields={"title": "Report"}, misfire="skip")
    with Pointsman(url, [report(hourly=hourly)], clock=clock) as pm:
        run(pm)
        clock.advance(minutes(31))
        run(pm)
        assert made(pm) == ["01:00"]


def test_a_clock_put_back_makes_no_moment_twice(pm: Pointsman, url: str, clock: FakeClock) -> None:
    clock.advance(minutes(30))
    run(pm)
    clock.advance(-hours(2))
    with Pointsman(url, [report()], clock=clock) as other:
        for _ in range(24):
            clock.advance(minutes(5))
            run(other)
        assert made(pm) == ["01:00"]


def test_one_that_was_removed_stops_and_begins_anew_when_it_is_back(pm: Pointsman, url: str, clock: FakeClock) -> None:
    with Pointsman(url, [report(2, hourly=None)], clock=clock) as newer:  # type: ignore[arg-type]
        run(newer)
        assert newer.engine.db.read(lambda tx: schedules.of_machine(tx, "report")) == []
        clock.advance(hours(2))
        run(newer)
        assert newer.list() == []
    run(pm)
    assert pm.list() == []
    with Pointsman(url, [report(3)], clock=clock) as newest:
        run(newest)
        clock.advance(hours(1))
        run(newest)
        assert made(newest) == ["03:00"]


def test_one_that_was_changed_begins_anew(pm: Pointsman, url: str, clock: FakeClock) -> None:
    with Pointsman(url, [report(2, hourly=Schedule("15 * * * *", fields={"title": "Other"}))], clock=clock) as newer:
        clock.advance(minutes(20))
        run(newer)
        run(newer)
        assert newer.list() == []
        clock.advance(minutes(25))
        run(newer)
        (task,) = newer.list()
        assert (task.fields["title"], task.machine_version) == ("Other", 2)


@pytest.mark.parametrize("cron", ["0 * * * *", "15 * * * *"])
def test_what_was_due_before_it_was_changed_is_not_lost(pm: Pointsman, url: str, clock: FakeClock, cron: str) -> None:
    with Pointsman(url, [report(2, hourly=Schedule(cron, fields={"title": "Other"}))], clock=clock) as newer:
        clock.advance(hours(1))
        run(newer)
        run(newer)
        (task,) = newer.list()
        assert (task.fields["title"], task.dedupe_key) == ("Other", "schedule:hourly:2026-01-01T01:00:00.000000Z")


def test_what_was_due_before_it_was_changed_may_be_too_late(pm: Pointsman, url: str, clock: FakeClock) -> None:
    with Pointsman(url, [report(2, hourly=Schedule("0 * * * *", fields={"title": "Other"}, misfire="skip"))], clock=clock) as newer:
        clock.advance(hours(1))
        run(newer)
        assert newer.list() == []


def test_the_same_schedule_in_a_new_version_goes_on(pm: Pointsman, url: str, clock: FakeClock) -> None:
    with Pointsman(url, [report(2)], clock=clock) as newer:
        clock.advance(minutes(30))
        run(newer)
        assert made(newer) == ["01:00"]


def test_it_keeps_the_time_of_its_zone(url: str, clock: FakeClock) -> None:
    clock.now = instant("2026-03-28T00:00:00Z")
    nightly = Schedule("30 2 * * *", tz="Europe/Berlin", fields={"title": "t"})
    with Pointsman(url, [report(hourly=nightly)], clock=clock) as pm:
        run(pm)
        for _ in range(3 * 24 * 4):
            clock.advance(minutes(15))
            run(pm)
        assert [iso(task.created_at)[5:16] for task in pm.list()] == ["03-28T01:30", "03-29T01:00", "03-30T00:30"]


def test_a_machine_that_is_not_served_here_is_left_to_others(pm: Pointsman, url: str, clock: FakeClock) -> None:
    clock.advance(minutes(30))
    with Pointsman(url, clock=clock) as other:
        run(other)
        assert other.list(machine=None) == []


def test_a_task_that_somebody_made_under_that_name_is_the_one(pm: Pointsman, clock: FakeClock) -> None:
    clock.advance(minutes(30) - seconds(1))
    engine = pm.engine
    row = engine.db.read(lambda tx: schedules.find(tx, "report", "hourly"))
    assert row is not None
    clock.advance(seconds(1))
    run(pm)
    behind = schedules.Kept(row.machine, row.name, row.spec, row.next_at)
    now = engine.db.read(lambda tx: schedules.find(tx, "report", "hourly"))
    assert now is not None
    assert engine.db.run(lambda tx: schedules.move(tx, now, behind))
    run(pm)
    assert made(pm) == ["01:00"]


def test_of_two_that_move_a_schedule_one_does(pm: Pointsman) -> None:
    row = pm.engine.db.read(lambda tx: schedules.find(tx, "report", "hourly"))
    assert row is not None
    onward = schedules.Kept(row.machine, row.name, row.spec, row.next_at + 1)
    assert [pm.engine.db.run(lambda tx: schedules.move(tx, row, onward)) for _ in range(2)] == [True, False]
    assert pm.engine.db.run(lambda tx: schedules.add(tx, onward)) is False
    assert [pm.engine.db.run(lambda tx: schedules.end(tx, row)) for _ in range(2)] == [True, False]
