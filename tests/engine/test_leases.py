"""Leases: a lapse is claimability and nothing more; the epoch, not the clock, keeps a replaced owner out."""

from collections.abc import Callable, Iterator

import pytest

import support
from pointsman import Event, Machine, Pointsman, Refused, State, Task, hours, minutes, owner
from pointsman.testing import FakeClock
from pointsman.types import seconds

QUARTER = minutes(15)
OVER = QUARTER + seconds(1)
"""Long enough: the store's clock also moves a little with every unit of work."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Held(Machine, name="held"):
    open = State(initial=True)
    work = State(lease=minutes(1), max_hold=minutes(3))
    stay = State(lease=minutes(1), on_lapse="same")
    aside = State()
    away = State(lease=minutes(1), on_lapse="aside")
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    take = Event(open >> work, stay >> stay, acquires=True)
    keep = Event(work >> stay, by=owner)
    leave = Event(work >> away, by=owner)
    poke = Event(work >> work, stay >> stay)
    finish = Event((work | stay | away) >> done, by=owner)
    drop = Event((open | aside) >> failed)


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    from pointsman import Tasks

    with Pointsman(url, [Tasks, Held], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def _left(task: Task, clock: FakeClock) -> int:
    """Whole seconds of a lease."""
    assert task.lease is not None
    return round((task.lease.expires_at - clock.now) / seconds(1))


def _taken(pm: Pointsman, task_id: str, by: str = support.OTHER) -> Task:
    task = pm.claim("tasks", by=by, id=task_id)
    assert task is not None
    return task


def test_a_claim_holds_for_the_states_time_and_every_owner_call_renews(pm: Pointsman, clock: FakeClock) -> None:
    task = support.claimed(pm)
    assert (_left(task, clock), task.lease and task.lease.live) == (900, True)
    clock.advance(minutes(10))
    task = pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch)
    assert _left(task, clock) == 900


def test_a_live_lease_cannot_be_taken(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(QUARTER - seconds(1))
    with pytest.raises(Refused, match="already_claimed"):
        pm.claim("tasks", by=support.OTHER, id=task.id)
    assert pm.claim("tasks", by=support.OTHER) is None


def test_until_somebody_takes_it_the_owner_goes_on_as_if_nothing_had_happened(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(hours(5))
    seen = pm.get(task.id)
    assert (seen.lease and seen.lease.live, seen.owner, seen.state, seen.version) == (False, support.OWNER, "drafting", task.version)
    sent = pm.propose(task.id, "request_approval", {"draft": support.GOOD}, by=support.OWNER, epoch=task.epoch)
    assert sent.version == task.version + 1


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "next"])
def test_a_takeover_records_lapse_and_claim_together_and_keeps_all_fields(pm: Pointsman, clock: FakeClock, by_id: bool) -> None:
    task = support.drafting(pm)
    with pytest.raises(Refused):
        pm.propose(task.id, "request_approval", {"draft": support.BAD}, by=support.OWNER, epoch=task.epoch)
    before = pm.get(task.id)
    clock.advance(OVER)
    after = pm.claim("tasks", by=support.OTHER, id=task.id if by_id else None)
    assert after is not None
    assert (after.id, after.owner, after.epoch, after.state, after.version) == (
        task.id,
        support.OTHER,
        task.epoch + 1,
        "claimed",
        before.version + 2,
    )
    assert (after.fields, after.digest) == (before.fields, before.digest)
    lapse, claim = pm.history(task.id)[-2:]
    assert (lapse.kind, lapse.from_state, lapse.to_state, lapse.by, lapse.epoch) == ("lapse", "drafting", "queued", "pointsman", task.epoch)
    assert (claim.kind, claim.from_state, claim.to_state, claim.by, claim.epoch) == (
        "acquire",
        "queued",
        "claimed",
        support.OTHER,
        after.epoch,
    )
    assert set(after.contributors) == {support.OWNER, support.OTHER}


OWNER_CALLS: list[Callable[[Pointsman, Task, int | None], object]] = [
    lambda pm, task, epoch: pm.propose(task.id, "start_draft", by=support.OWNER, epoch=epoch),
    lambda pm, task, epoch: pm.renew(task.id, by=support.OWNER, epoch=epoch),
    lambda pm, task, epoch: pm.release(task.id, by=support.OWNER, epoch=epoch),
]


@pytest.mark.parametrize("call", OWNER_CALLS, ids=["propose", "renew", "release"])
def test_a_replaced_owner_writes_nothing(pm: Pointsman, clock: FakeClock, call: Callable[[Pointsman, Task, int | None], object]) -> None:
    """P3, in one process: also when the same name claims again under a new epoch."""
    task = support.drafting(pm)
    clock.advance(OVER)
    for by in (support.OTHER, support.OWNER):
        taken = _taken(pm, task.id, by)
        history = pm.history(task.id)
        with pytest.raises(Refused, match="lease_lost"):
            call(pm, task, task.epoch)
        assert (pm.get(task.id), pm.history(task.id)) == (taken, history)
        clock.advance(OVER)


def test_the_lapsed_are_served_in_line_with_the_queued(pm: Pointsman, clock: FakeClock) -> None:
    first = support.drafting(pm)
    clock.advance(seconds(1))
    second = support.create(pm)
    clock.advance(OVER)
    got = [pm.claim("tasks", by=support.OTHER) for _ in range(3)]
    assert [task and task.id for task in got] == [first.id, second.id, None]


def test_approved_work_is_not_served_to_whoever_comes_next(pm: Pointsman, clock: FakeClock) -> None:
    task = support.approved(pm)
    clock.advance(hours(25))
    assert pm.claim("tasks", by=support.OTHER) is None
    taken = pm.claim("tasks", by=support.OTHER, states=["approved"])
    assert taken is not None
    assert (taken.id, taken.state, taken.epoch) == (task.id, "approved", task.epoch + 1)


def test_waiting_for_a_person_holds_no_lease_and_cannot_be_stolen(pm: Pointsman, clock: FakeClock) -> None:
    task = support.submitted(pm)
    assert task.lease is None
    clock.advance(hours(1000))
    with pytest.raises(Refused, match="already_claimed"):
        pm.claim("tasks", by=support.OTHER, id=task.id)
    back = pm.propose(task.id, "reject", by=support.REVIEWER, digest=task.digest)
    assert (back.owner, _left(back, clock)) == (support.OWNER, 900)


def test_a_renewal_leaves_no_entry_and_no_new_version(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(minutes(14))
    renewed = pm.renew(task.id, by=support.OWNER, epoch=task.epoch, lease_s=60)
    assert (_left(renewed, clock), renewed.version, len(pm.history(task.id))) == (60, task.version, task.version)
    assert renewed == task


@pytest.mark.parametrize("lease_s", [0, 0.5, 86_401, -1, float("nan"), True, "60"])
def test_a_lease_that_is_none_is_refused(pm: Pointsman, lease_s: float) -> None:
    task = support.drafting(pm)
    with pytest.raises(Refused, match="invalid"):
        pm.renew(task.id, by=support.OWNER, epoch=task.epoch, lease_s=lease_s)
    with pytest.raises(Refused, match="invalid"):
        pm.claim("tasks", by=support.OWNER, lease_s=lease_s)


def test_a_claim_can_ask_for_its_own_time(pm: Pointsman, clock: FakeClock) -> None:
    task = support.create(pm)
    held = pm.claim("tasks", by=support.OWNER, id=task.id, lease_s=5)
    assert held is not None
    assert _left(held, clock) == 5


def test_silent_renewal_is_capped_and_a_call_starts_anew(pm: Pointsman, clock: FakeClock) -> None:
    task = pm.claim("held", by="w", id=pm.create("held", {}, by="ann").id)
    assert task is not None
    for _ in range(3):
        clock.advance(seconds(50))
        renewed = pm.renew(task.id, by="w", epoch=task.epoch)
    assert _left(renewed, clock) == 30, "three minutes after the claim, whatever was asked"
    poked = pm.propose(task.id, "poke", by="w", epoch=task.epoch)
    assert _left(poked, clock) == 60


def test_nobody_asks_for_more_than_a_state_allows(pm: Pointsman, clock: FakeClock) -> None:
    """Three minutes of silence, whatever a claim or a renewal wishes; and what is over is not live."""
    task = pm.claim("held", by="w", id=pm.create("held", {}, by="ann").id, lease_s=86_400)
    assert task is not None
    assert _left(task, clock) == 180
    clock.advance(seconds(100))
    assert _left(pm.renew(task.id, by="w", epoch=task.epoch, lease_s=86_400), clock) == 80
    clock.advance(seconds(100))
    late = pm.renew(task.id, by="w", epoch=task.epoch)
    assert late.lease == pm.get(task.id).lease
    assert late.lease is not None
    assert not late.lease.live


def test_somebody_elses_call_does_not_renew(pm: Pointsman, clock: FakeClock) -> None:
    task = pm.claim("held", by="w", id=pm.create("held", {}, by="ann").id)
    assert task is not None
    clock.advance(seconds(30))
    assert pm.propose(task.id, "poke", by="x").lease == task.lease


def test_a_release_moves_as_a_lapse_does(pm: Pointsman) -> None:
    task = support.drafting(pm)
    free = pm.release(task.id, by=support.OWNER, epoch=task.epoch, reason="the provider is down")
    assert (free.state, free.owner, free.lease, free.epoch, free.version) == ("queued", None, None, task.epoch, task.version + 1)
    entry = pm.history(task.id)[-1]
    assert (entry.kind, entry.by, entry.reason) == ("release", support.OWNER, "the provider is down")
    again = _taken(pm, task.id)
    assert again.epoch == task.epoch + 1


@pytest.mark.parametrize(("event", "state"), [(None, "open"), ("keep", "stay"), ("leave", "aside")])
def test_where_a_lapse_leads_is_declared(pm: Pointsman, clock: FakeClock, event: str | None, state: str) -> None:
    task = pm.claim("held", by="w", id=pm.create("held", {}, by="ann").id)
    assert task is not None
    if event is not None:
        task = pm.propose(task.id, event, by="w", epoch=task.epoch)
    assert pm.release(task.id, by="w", epoch=task.epoch).state == state


def test_a_lapse_that_leads_where_nobody_can_claim_is_no_way_in(pm: Pointsman, clock: FakeClock) -> None:
    """The lapse would stand alone, so it is rolled back with the refused claim."""
    task = pm.claim("held", by="w", id=pm.create("held", {}, by="ann").id)
    assert task is not None
    task = pm.propose(task.id, "leave", by="w", epoch=task.epoch)
    clock.advance(hours(1))
    with pytest.raises(Refused, match="wrong_state"):
        pm.claim("held", by="x", id=task.id)
    assert pm.get(task.id) == task


@pytest.mark.parametrize(
    ("state", "said"),
    [("awaiting_approval", "a task that is awaiting_approval is held without a lease"), ("done", "the task is over: it is done")],
)
def test_what_is_held_without_a_lease_is_neither_renewed_nor_released(pm: Pointsman, state: str, said: str) -> None:
    task = support.submitted(pm) if state == "awaiting_approval" else support.approved(pm)
    if state == "done":
        task = pm.propose(task.id, "complete", by=support.OWNER, epoch=task.epoch)
    for call in (pm.renew, pm.release):
        with pytest.raises(Refused, match=f"wrong_state: {said}"):
            call(task.id, by=support.OWNER, epoch=task.epoch)
    assert pm.get(task.id) == task


def test_an_expected_version_holds_over_the_lapse(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(OVER)
    with pytest.raises(Refused, match="stale_version"):
        pm.claim("tasks", by=support.OTHER, id=task.id, expect_version=task.version - 1)
    taken = pm.claim("tasks", by=support.OTHER, id=task.id, expect_version=task.version)
    assert taken is not None
    assert taken.version == task.version + 2


def test_a_dry_run_of_a_takeover_writes_nothing(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(OVER)
    would = pm.propose(task.id, "claim", by=support.OTHER, dry_run=True)
    assert (would.state, would.owner, would.epoch) == ("claimed", support.OTHER, task.epoch + 1)
    assert pm.get(task.id) == task


def test_a_stranger_is_told_that_it_can_be_claimed(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(OVER)
    with pytest.raises(Refused, match="claim it by id") as refused:
        pm.propose(task.id, "start_draft", by=support.OTHER, epoch=task.epoch)
    assert refused.value.code == "not_owner"
    assert pm.get(task.id, by=support.OTHER).allowed == ("fail",)


def test_a_replayed_claim_answers_the_first_though_it_took_over(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    clock.advance(OVER)
    first = pm.claim("tasks", by=support.OTHER, idempotency_key="k")
    again = pm.claim("tasks", by=support.OTHER, idempotency_key="k")
    assert first == again
    assert first is not None
    assert len(pm.history(task.id)) == first.version


def test_the_past_and_verification_do_not_know_leases(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    seen = pm.get(task.id)
    clock.advance(hours(2))
    assert pm.get(task.id, version=task.version) == seen
    assert pm.verify().ok
