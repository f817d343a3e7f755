"""Schedules: when a cron expression is due where clocks are put forward and back, in real zones."""

import pytest

from pointsman import Event, Machine, Schedule, State
from pointsman.kernel.chain import digest
from pointsman.kernel.definition import Definition
from pointsman.kernel.definition import Schedule as Form
from pointsman.kernel.exported import export, restore
from pointsman.kernel.schedule import dedupe_key, faults, following, missed, spec
from pointsman.types import instant, iso, minutes


def _form(cron: str, tz: str = "UTC", **members: object) -> Form:
    return Form("nightly", cron, tz, {}, "scheduler", **({"misfire": "once"} | members))  # type: ignore[arg-type]


def _moments(cron: str, tz: str, after: str, count: int) -> list[str]:
    """The next moments in UTC, to the minute."""
    found, at = list[str](), instant(after)
    for _ in range(count):
        at = following(_form(cron, tz), at)
        found.append(iso(at)[5:16])
    return found


SAVING = [
    ("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", ["03-28T01:30", "03-29T01:00", "03-30T00:30"], "skipped: right after the gap"),
    ("30 2 * * *", "Europe/Berlin", "2026-10-24T00:00:00Z", ["10-24T00:30", "10-25T00:30", "10-26T01:30"], "doubled: the first"),
    ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", ["03-29T01:00", "03-30T00:00", "03-30T00:30"], "skipped twice: once"),
    ("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", ["03-08T07:00", "03-09T06:30"], "skipped, westward"),
    ("15 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", ["11-01T05:15", "11-02T06:15"], "doubled, westward"),
    ("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", ["10-03T15:30", "10-04T15:15"], "half an hour skipped"),
    ("45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z", ["04-04T14:45", "04-05T15:15"], "half an hour doubled"),
    ("0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z", ["10-25T00:00", "10-25T01:00", "10-25T02:00"], "every hour that passes"),
    ("0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z", ["03-29T00:00", "03-29T01:00", "03-29T02:00"], "and in spring"),
    ("*/30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", ["10-25T00:00", "10-25T00:30", "10-25T01:00", "10-25T01:30"], "shown twice"),
    ("*/30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", ["03-30T00:00", "03-30T00:30"], "not shown at all"),
]


@pytest.mark.parametrize(("cron", "tz", "after", "due", "why"), SAVING)
def test_when_the_clocks_are_put_forward_and_back(cron: str, tz: str, after: str, due: list[str], why: str) -> None:
    assert _moments(cron, tz, after, len(due)) == due, why


@pytest.mark.parametrize("after", ["2026-10-25T00:30:00Z", "2026-10-25T00:59:00Z", "2026-10-25T01:10:00Z", "2026-10-25T01:29:59Z"])
def test_within_a_doubled_hour_time_goes_on(after: str) -> None:
    assert _moments("30 2 * * *", "Europe/Berlin", after, 1) == ["10-26T01:30"]


def test_a_due_moment_lies_behind_the_instant_asked_about() -> None:
    due = instant("2026-01-02T03:00:00Z")
    assert [following(_form("0 3 * * *"), at) for at in (due - 1, due - 999_999)] == [due, due]
    assert following(_form("0 3 * * *"), due) == instant("2026-01-03T03:00:00Z")


BAD = ["", "0 3 * *", "* * * * * *", "61 * * * *", "0 0 30 2 *", "@daily", "0 3 * * *\0", "٣ 3 * * *", "*/0 * * * *", 5, None]


@pytest.mark.parametrize("cron", BAD)
def test_an_expression_that_cannot_be_read_is_a_fault(cron: object) -> None:
    assert len(faults(_form(cron))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize("tz", ["", "Europe", "Europe/Nowhere", "../etc/localtime", "a\0b", 5, None])
def test_a_zone_that_nobody_knows_is_a_fault(tz: object) -> None:
    assert len(faults(_form("0 3 * * *", tz))) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(("members", "said"), [({"misfire": "later"}, "misfire"), ({"by": " "}, "by"), ({"by": "Anonymous"}, "by")])
def test_the_rest_is_judged_too(members: dict[str, str], said: str) -> None:
    form = Form(**{"name": "n", "cron": "0 3 * * *", "tz": "UTC", "fields": {}, "by": "b", "misfire": "once"} | members)  # type: ignore[arg-type]
    assert [text.startswith(said) for text in faults(form)] == [True]


def test_a_moment_is_missed_when_it_comes_late_and_is_to_be_left_out() -> None:
    once, skip = _form("0 3 * * *"), _form("0 3 * * *", misfire="skip")
    assert [missed(form, 0, minutes(1) + late) for form in (once, skip) for late in (0, 1)] == [False, False, False, True]


def test_the_task_of_a_moment_has_a_name() -> None:
    assert dedupe_key("nightly", 0) == "schedule:nightly:1970-01-01T00:00:00.000000Z"


def _machine(*, scheduled: bool) -> Definition:
    class Plain(Machine, name="plain"):
        title: str
        open = State(initial=True)
        failed = State(final=True, outcome="failed")
        drop = Event(open >> failed)

    class Scheduled(Machine, name="plain"):
        title: str
        open = State(initial=True)
        failed = State(final=True, outcome="failed")
        drop = Event(open >> failed)
        nightly = Schedule("0 3 * * *", tz="Europe/Berlin", fields={"title": "t"}, misfire="skip")

    return (Scheduled if scheduled else Plain).definition


def test_a_schedule_is_stored_and_read_back() -> None:
    form = export(_machine(scheduled=True))
    assert export(restore(form)) == form
    said = {"name": "nightly", "cron": "0 3 * * *", "tz": "Europe/Berlin", "fields": {"title": "t"}, "by": "scheduler", "misfire": "skip"}
    assert form["schedules"] == [said]


def test_a_machine_without_one_has_the_form_it_always_had() -> None:
    with_one, without = export(_machine(scheduled=True)), export(_machine(scheduled=False))
    assert "schedules" not in without
    assert digest("machine", without) == digest("machine", {name: value for name, value in with_one.items() if name != "schedules"})


def test_another_spelling_is_another_schedule() -> None:
    assert len({spec(_form(*said)) for said in (("0 3 * * *",), ("0 4 * * *",), ("0 3 * * *", "Europe/Berlin"))}) == 3
