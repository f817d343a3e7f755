"""Deadlines: each due moment fires once, as an entry of pointsman, also when what it asks for is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from pointsman import (
    Event,
    Limit,
    Machine,
    Pointsman,
    Principal,
    Refused,
    Retry,
    State,
    Task,
    Verdict,
    check,
    field,
    guard,
    hours,
    minutes,
    owner,
    role,
    seconds,
)
from pointsman.engine.queries import Entry
from pointsman.engine.timers import BATCH, Deadlines
from pointsman.kernel.functions import computed
from pointsman.kernel.marks import optional
from pointsman.testing import FakeClock
from pointsman.types import iso

HOUR = hours(1)
OPERATOR = Principal("olga", kind="person", roles=frozenset({"operator"}))


@guard
def is_willing(task: Task) -> Verdict:
    return Verdict(task.fields["willing"] is True or task.fields["persuaded"] is True, "not willing")


def is_good(text: str) -> Verdict:
    return Verdict(text == "good", "compared")


def is_fine(text: str) -> Verdict:
    return Verdict(text == "good", "looked at")


def doubled(text: str) -> str:
    if text == "raise":
        raise ValueError("it was to raise")
    return text * 2


class Due(Machine, name="due"):
    text: str = "good"
    willing: bool = True
    persuaded: bool = False
    noted: str | None = None
    twice = computed(doubled)
    new = State(initial=True)
    reminded = State(deadline=HOUR, on_deadline="remind")
    escalated = State(deadline=HOUR, on_deadline="escalate")
    noticed = State(deadline=HOUR)
    expiring = State(deadline=HOUR, on_deadline="expire")
    guarded = State(deadline=HOUR, on_deadline="expire_willing")
    checked = State(deadline=HOUR, on_deadline="expire_good")
    unjudged = State(deadline=HOUR, on_deadline="expire_fine")
    otherwise = State(deadline=HOUR, on_deadline="expire_or_else")
    again = State(deadline=HOUR, on_deadline="stay")
    working = State(lease=minutes(5), max_hold=minutes(5), deadline=HOUR, on_deadline="expire")
    failed = State(final=True, outcome="failed")
    good = check(is_good, eager=True)
    fine = check(is_fine)
    to_reminded = Event(new >> reminded, reminded >> reminded)
    to_escalated = Event(new >> escalated)
    to_noticed = Event(new >> noticed)
    to_expiring = Event(new >> expiring)
    to_guarded = Event(new >> guarded)
    to_checked = Event(new >> checked)
    to_unjudged = Event(new >> unjudged)
    to_otherwise = Event(new >> otherwise)
    to_again = Event(new >> again)
    take = Event(new >> working, acquires=True)
    expire = Event((expiring | working) >> failed, by=role("nobody"), sets=optional("noted", "expired"))
    expire_willing = Event(guarded >> failed, when=is_willing)
    expire_good = Event(checked >> failed, requires=good)
    expire_fine = Event(unjudged >> failed, requires=fine)
    expire_or_else = Event(otherwise >> failed, requires=good, otherwise=new)
    stay = Event(again >> again)
    persuade = Event(guarded >> guarded, sets="persuaded")
    drop = Event((reminded | escalated | noticed | guarded | checked | unjudged | again) >> failed)


class Paying(Machine, name="paying"):
    amount: float
    text: str = "good"
    open = State(initial=True, deadline=HOUR, on_deadline="pay")
    paid = State(final=True)
    failed = State(final=True, outcome="failed")
    good = check(is_good, eager=True)
    refunds = Limit("refunds", per=hours(24), sum=field.amount, max=100)
    pay = Event(open >> paid, requires=good, limits=refunds)
    drop = Event(open >> failed)


class Tried(Machine, name="tried"):
    retry = Retry(tries=1)
    open = State(initial=True, deadline=HOUR, on_deadline="expire")
    work = State(lease=minutes(1))
    gone = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True)
    finish = Event(work >> gone, by=owner)
    expire = Event(open >> gone, by=role("nobody"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Due, Paying, Tried], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def put(pm: Pointsman, state: str, **fields: Any) -> Task:
    """A task in a state, since the very moment."""
    task = pm.create("due", fields, by="ann")
    pm.engine.clock.advance(1)
    return pm.propose(task.id, "take" if state == "working" else f"to_{state}", by="w")


def run(pm: Pointsman) -> None:
    duty = Deadlines(pm.engine)
    while duty.run_once():
        pass


def fired(pm: Pointsman, task: Task) -> list[Entry]:
    return [entry for entry in pm.history(task.id) if entry.kind == "deadline"]


@pytest.mark.parametrize(("state", "event"), [("reminded", "remind"), ("escalated", "escalate"), ("noticed", "deadline")])
def test_a_notice_is_an_entry_and_changes_nothing_else(pm: Pointsman, clock: FakeClock, state: str, event: str) -> None:
    task = put(pm, state)
    assert task.deadline == clock.now + HOUR
    clock.advance(HOUR - 1)
    run(pm)
    assert fired(pm, task) == []
    clock.advance(1)
    run(pm)
    run(pm)
    (entry,) = fired(pm, task)
    assert (entry.event, entry.by, entry.door, entry.from_state, entry.to_state) == (event, "pointsman", "duty", state, state)
    assert (entry.at, entry.changes, entry.reason) == (clock.now, {"deadline": None}, f"due at {iso(clock.now)}")
    after = pm.get(task.id)
    assert (after.state, after.version, after.revision, after.deadline, after.since) == (state, 3, 1, None, task.since)


def test_an_event_is_taken_though_nobody_has_the_right(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "expiring")
    with pytest.raises(Refused, match="role_missing"):
        pm.propose(task.id, "expire", by=Principal("w", roles=frozenset()))
    clock.advance(HOUR)
    run(pm)
    after = pm.get(task.id)
    assert (after.state, after.fields["noted"], after.deadline, after.contributors) == ("failed", "expired", None, ("pointsman",))
    (entry,) = fired(pm, task)
    assert (entry.event, entry.from_state, entry.to_state) == ("expire", "expiring", "failed")


def test_it_is_taken_from_whoever_holds_the_task(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "working")
    for _ in range(15):
        clock.advance(minutes(4))
        pm.renew(task.id, by="w", epoch=task.epoch, lease_s=300)
    run(pm)
    assert pm.get(task.id).state == "failed"
    with pytest.raises(Refused, match="wrong_state"):
        pm.propose(task.id, "expire", by="w", epoch=task.epoch)


REFUSED = [
    ("guarded", {"willing": False}, "expire_willing", "refused: guard_failed: not willing"),
    ("checked", {"text": "bad"}, "expire_good", "refused: evidence_failed: good: compared"),
    ("unjudged", {}, "expire_fine", "refused: evidence_pending: not judged before: fine"),
]


@pytest.mark.parametrize(("state", "fields", "event", "why"), REFUSED)
def test_a_refused_event_is_an_entry_that_says_why(
    pm: Pointsman, clock: FakeClock, state: str, fields: dict[str, Any], event: str, why: str
) -> None:
    task = put(pm, state, **fields)
    clock.advance(HOUR)
    run(pm)
    run(pm)
    (entry,) = fired(pm, task)
    assert entry.reason is not None
    assert (entry.event, entry.from_state, entry.to_state, entry.reason.endswith(why)) == (event, state, state, True), entry.reason
    assert (pm.get(task.id).state, pm.get(task.id).deadline) == (state, clock.now + HOUR)


def test_a_refused_event_is_asked_for_again_ever_more_seldom_and_taken_when_nothing_refuses_it(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "guarded", willing=False)
    for hour in range(1, 97):
        clock.advance(HOUR)
        run(pm)
        assert len(fired(pm, task)) == sum(due <= hour for due in (1, 2, 4, 8, 16, 32, 56, 80)), hour
    pm.propose(task.id, "persuade", {"persuaded": True}, by="w")
    clock.advance(8 * HOUR)
    run(pm)
    assert (pm.get(task.id).state, pm.get(task.id).deadline) == ("failed", None)


@pytest.mark.parametrize(("state", "fields"), [("guarded", {}), ("checked", {})])
def test_what_passes_is_taken(pm: Pointsman, clock: FakeClock, state: str, fields: dict[str, Any]) -> None:
    task = put(pm, state, **fields)
    clock.advance(HOUR)
    run(pm)
    assert pm.get(task.id).state == "failed"


def test_a_branch_for_failed_checks_is_taken(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "otherwise", text="bad")
    clock.advance(HOUR)
    run(pm)
    assert [(entry.event, entry.to_state) for entry in fired(pm, task)] == [("expire_or_else", "new")]


def test_a_parked_task_says_so_in_its_entry(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "working")
    for _ in range(5):
        back = pm.release(task.id, by="w", epoch=task.epoch)
        if back.attempts.counted < 5:
            task = pm.propose(task.id, "take", by="w")
    assert pm.get(task.id).parked is not None


def test_staying_in_a_state_keeps_its_deadline_and_firing_takes_it(pm: Pointsman, clock: FakeClock) -> None:
    task, loop = put(pm, "reminded"), put(pm, "again")
    clock.advance(minutes(30))
    assert pm.propose(task.id, "to_reminded", by="w").deadline == task.deadline
    clock.advance(minutes(30))
    run(pm)
    run(pm)
    assert [len(fired(pm, item)) for item in (task, loop)] == [1, 1]
    assert pm.get(loop.id).deadline is None


def test_leaving_in_time_is_in_time(pm: Pointsman, clock: FakeClock) -> None:
    task = put(pm, "reminded")
    pm.propose(task.id, "drop", by="w")
    clock.advance(HOUR)
    run(pm)
    assert fired(pm, task) == []


def test_what_is_held_fires_when_it_is_no_more(pm: Pointsman, clock: FakeClock) -> None:
    task, notice = put(pm, "expiring"), put(pm, "reminded")
    hold = pm.hold({"machine": "due"}, by=OPERATOR, reason="not now")
    clock.advance(HOUR)
    run(pm)
    assert [len(fired(pm, item)) for item in (task, notice)] == [0, 1]
    clock.advance(HOUR)
    pm.lift(hold.id, by=OPERATOR)
    run(pm)
    (entry,) = fired(pm, task)
    assert (entry.at, entry.to_state) == (clock.now, "failed")


def test_what_falls_due_while_its_task_is_parked_fires_when_it_is_no_more(pm: Pointsman, clock: FakeClock) -> None:
    task = pm.propose(pm.create("tried", {}, by="ann").id, "take", by="w")
    pm.release(task.id, by="w", epoch=task.epoch)
    assert pm.get(task.id).parked is not None
    clock.advance(24 * HOUR)
    run(pm)
    assert fired(pm, task) == []
    pm.unpark(task.id, by=OPERATOR, reason="another try")
    run(pm)
    run(pm)
    (entry,) = fired(pm, task)
    assert (entry.at, entry.to_state) == (clock.now + 1, "gone"), "unparked at the same moment"


def test_what_is_stopped_costs_a_look_and_no_turn_to_write(pm: Pointsman, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = [pm.create("paying", {"amount": 80.0}, by="ann") for _ in range(3)]
    held = [put(pm, "expiring") for _ in range(BATCH)]
    parked = pm.propose(pm.create("tried", {}, by="ann").id, "take", by="w")
    pm.release(parked.id, by="w", epoch=parked.epoch)
    pm.hold({"event": "expire"}, by=OPERATOR, reason="not now")
    clock.advance(HOUR)
    run(pm)
    wrote = list[object]()
    monkeypatch.setattr(pm.engine.db, "run", wrote.append)
    run(pm)
    assert wrote == []
    assert [len(fired(pm, task)) for task in (*held, parked)] == [0] * (BATCH + 1)
    assert sum(len(fired(pm, task)) for task in paid) == 1


def test_a_limit_that_is_used_up_is_waited_for(pm: Pointsman, clock: FakeClock) -> None:
    """What is fired takes of its limits as what is asked for does, and what was refused takes nothing."""
    refused = pm.create("paying", {"amount": 90.0, "text": "bad"}, by="ann")
    clock.advance(HOUR)
    run(pm)
    assert [entry.to_state for entry in fired(pm, refused)] == ["open"]
    first, second, third, asked = (pm.create("paying", {"amount": 80.0}, by="ann") for _ in range(4))
    clock.advance(HOUR)
    run(pm)
    assert sorted(pm.get(task.id).state for task in (first, second, third)) == ["open", "open", "paid"]
    with pytest.raises(Refused, match="limit_reached"):
        pm.propose(asked.id, "pay", by="x")
    for paid in (2, 3):
        clock.advance(hours(24) - 1)
        run(pm)
        assert [pm.get(task.id).state for task in (first, second, third)].count("paid") == paid - 1
        clock.advance(1)
        run(pm)
        assert [pm.get(task.id).state for task in (first, second, third)].count("paid") == paid
    assert [len(fired(pm, task)) for task in (first, second, third)] == [1, 1, 1]


def test_what_a_limit_never_lets_pass_is_refused(pm: Pointsman, clock: FakeClock) -> None:
    task = pm.create("paying", {"amount": 100.5}, by="ann")
    clock.advance(HOUR)
    run(pm)
    (entry,) = fired(pm, task)
    assert entry.reason is not None
    assert "limit_reached: limit refunds never lets so much pass" in entry.reason


def test_after_a_downtime_each_fires_late_and_once_in_batches(pm: Pointsman, clock: FakeClock) -> None:
    tasks = [put(pm, "reminded") for _ in range(BATCH + 3)]
    clock.advance(24 * HOUR)
    duty = Deadlines(pm.engine)
    assert [duty.run_once(), duty.run_once(), duty.run_once()] == [True, False, False]
    assert [len(fired(pm, task)) for task in tasks] == [1] * (BATCH + 3)


def test_what_cannot_be_fired_here_keeps_nobody_from_the_rest(url: str, clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    with Pointsman(url, [Due], clock=clock) as pm:
        first, second = put(pm, "expiring"), put(pm, "reminded")
        clock.advance(HOUR)

        class Plain(Machine, name="plain"):
            new = State(initial=True, deadline=seconds(1), on_deadline="remind")
            failed = State(final=True, outcome="failed")
            drop = Event(new >> failed, by=owner | ~owner)

        with Pointsman(url, [Plain], clock=clock) as lacking:
            other = lacking.create("plain", {}, by="ann")
            clock.advance(HOUR)
            duty = Deadlines(lacking.engine)
            assert [duty.run_once(), duty.run_once(), duty.run_once()] == [False] * 3
            assert [record.getMessage().split(":")[0] for record in caplog.records] == ["deadlines of due version 1 are not fired here"]
            assert [len(fired(pm, task)) for task in (first, second, other)] == [0, 0, 1]
        run(pm)
        assert [len(fired(pm, task)) for task in (first, second, other)] == [1, 1, 1]
