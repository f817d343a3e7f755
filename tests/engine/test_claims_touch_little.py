"""A claim that is refused leaves a lapsed owner alone, and one that may have nothing does not walk the queue."""

from collections.abc import Iterator

import pytest

from pointsman import Event, Machine, Pointsman, Principal, Refused, State, Verdict, check, minutes, owner, role, seconds
from pointsman.testing import FakeClock

NOBODY = Principal("nobody", roles=frozenset())


def said_no(title: str) -> Verdict:
    return Verdict(title == "fine", "no")


def refuses(task: object, principal: Principal) -> bool:
    return principal.name != "refused"


class Checked(Machine, name="checked"):
    """Taking a task takes a check that is slow enough to run outside."""

    title: str = "x"
    open = State(initial=True)
    work = State(lease=minutes(1))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    fits = check(said_no)
    take = Event(open >> work, acquires=True, requires=fits)
    grab = Event(open >> work, acquires=True)
    finish = Event(work >> done, by=owner)
    drop = Event(open >> failed)


class Guarded(Machine, name="guarded"):
    open = State(initial=True)
    work = State(lease=minutes(1))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    take = Event(open >> work, by=role("worker"), acquires=True, when=refuses)
    finish = Event(work >> done, by=owner)
    drop = Event(open >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Checked, Guarded], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def test_a_claim_whose_check_fails_leaves_the_lapsed_owner_alone(pm: Pointsman, clock: FakeClock) -> None:
    made = pm.create("checked", {}, by="ann")
    held = pm.propose(made.id, "grab", by="a")
    clock.advance(minutes(2))
    with pytest.raises(Refused) as refused:
        pm.propose(made.id, "take", by="b")
    assert (refused.value.code, refused.value.recorded) == ("evidence_failed", False)
    left = pm.get(made.id)
    assert (left.version, left.owner, left.state, left.lapsed) == (held.version, "a", "work", True)
    assert pm.propose(made.id, "finish", by="a", epoch=held.epoch).state == "done"


def test_a_claim_whose_check_passes_takes_a_lapsed_task_over(pm: Pointsman, clock: FakeClock) -> None:
    made = pm.create("checked", {"title": "fine"}, by="ann")
    held = pm.propose(made.id, "grab", by="a")
    clock.advance(minutes(2))
    taken = pm.propose(made.id, "take", by="b", expect_version=held.version)
    assert (taken.owner, taken.epoch, taken.attempts.lost) == ("b", 2, 2)
    assert [entry.event for entry in pm.history(made.id)] == ["create", "grab", "lapse", "take"]


def test_an_owner_who_comes_back_while_the_check_runs_keeps_the_task(url: str, clock: FakeClock) -> None:
    back: list[object] = []

    def meanwhile(title: str) -> Verdict:
        back.append(pm.renew(made.id, by="a", epoch=held.epoch))
        return Verdict(True)

    class Meanwhile(Machine, name="meanwhile"):
        title: str = "x"
        open = State(initial=True)
        work = State(lease=minutes(1))
        failed = State(final=True, outcome="failed")
        fits = check(meanwhile)
        take = Event(open >> work, acquires=True, requires=fits)
        grab = Event(open >> work, acquires=True)
        drop = Event((open | work) >> failed)

    with Pointsman(url, [Meanwhile], clock=clock) as pm:
        made = pm.create("meanwhile", {}, by="ann")
        held = pm.propose(made.id, "grab", by="a")
        clock.advance(minutes(2))
        with pytest.raises(Refused) as refused:
            pm.propose(made.id, "take", by="b")
        assert (refused.value.code, len(back)) == ("already_claimed", 1)
        assert (pm.get(made.id).owner, pm.get(made.id).version) == ("a", held.version)


def _statements(pm: Pointsman, seen: list[str], by: Principal) -> int:
    seen.clear()
    with pytest.raises(Refused) as refused:
        pm.claim("guarded", by=by)
    assert refused.value.code in ("role_missing", "guard_failed")
    return seen.count("before:next_in_lane") + seen.count("before:next_in_lane_at_last")


def test_who_may_take_nothing_looks_at_one_task_only(url: str, clock: FakeClock) -> None:
    seen = list[str]()
    with Pointsman(url, [Guarded], clock=clock, probe=seen.append) as pm:
        for _ in range(10):
            pm.create("guarded", {}, by="ann")
        assert _statements(pm, seen, NOBODY) <= 4


def test_many_refused_tasks_are_passed_over_in_several_units(url: str, clock: FakeClock) -> None:
    """And what stands behind them is found."""
    seen = list[str]()
    with Pointsman(url, [Guarded], clock=clock, probe=seen.append) as pm:
        pm.create_batch([{"fields": {}} for _ in range(450)], by="ann", machine="guarded")
        refused = Principal("refused", roles=frozenset({"worker"}))
        assert _statements(pm, seen, refused) >= 900
        units = [point for point in seen if point in ("unit.begun", "unit.done")]
        assert len(units) >= 2 * 5, "three looks past all of them, and as many again that wait"
        clock.advance(seconds(1))
        assert pm.claim("guarded", by=Principal("w", roles=frozenset({"worker"}))) is not None
