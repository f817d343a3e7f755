"""Attempts: counted when a lease begins, told apart when it ends, capped; at the cap a task is parked until somebody unparks it."""

from collections.abc import Iterator

import pytest

import support
from pointsman import Event, Machine, Pointsman, Principal, Refused, Retry, State, Task, minutes, owner, seconds
from pointsman.engine.decision import CHANCE_BITS
from pointsman.kernel.task import Attempts
from pointsman.testing import FakeClock, seeded

OVER = minutes(1) + seconds(1)
REST = seconds(8)
OPERATOR = Principal("olga", kind="person", roles=frozenset({"operator"}))


class Tried(Machine, name="tried"):
    retry = Retry(tries=3, base=seconds(2), cap=REST)
    open = State(initial=True)
    work = State(lease=minutes(1))
    look = State()
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True)
    show = Event(work >> look, by=owner)
    again = Event(look >> work)
    finish = Event(work >> done, by=owner)
    drop = Event((open | look) >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Tried], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def _made(pm: Pointsman) -> Task:
    return pm.create("tried", {}, by="ann")


def _taken(pm: Pointsman) -> Task:
    task = pm.claim("tried", by=support.OWNER)
    assert task is not None
    return task


def _events(pm: Pointsman, task: Task) -> list[str]:
    return [entry.event for entry in pm.history(task.id)]


def test_an_attempt_is_lost_until_its_owner_delivers(pm: Pointsman) -> None:
    _made(pm)
    task = _taken(pm)
    assert task.attempts == Attempts(lost=1)
    shown = pm.propose(task.id, "show", by=support.OWNER, epoch=task.epoch)
    assert shown.attempts == Attempts()
    back = pm.propose(task.id, "again", by="rita")
    assert (back.attempts, back.lease is not None) == (Attempts(lost=1), True)
    assert pm.propose(task.id, "finish", by=support.OWNER, epoch=task.epoch).attempts == Attempts()


@pytest.mark.parametrize(
    ("said", "attempts"), [({}, Attempts(lost=1)), ({"counts": False}, Attempts(deferred=1)), ({"error": True}, Attempts(error=1))]
)
def test_who_gives_back_says_what_the_attempt_came_to(pm: Pointsman, clock: FakeClock, said: dict[str, bool], attempts: Attempts) -> None:
    made = _made(pm)
    task = _taken(pm)
    back = pm.release(task.id, by=support.OWNER, epoch=task.epoch, **said)
    assert (back.attempts, back.state, back.owner) == (attempts, "open", None)
    assert pm.get(made.id).attempts == attempts == pm.get(made.id, version=back.version).attempts
    if "error" in said:
        assert back.run_at is not None
        assert 0 <= back.run_at - back.updated_at <= seconds(2)
        clock.advance(seconds(3))
    else:
        assert back.run_at is None
    assert _taken(pm).attempts == Attempts(lost=attempts.lost + 1, error=attempts.error, deferred=attempts.deferred)


def test_an_error_rests_before_it_is_tried_again(url: str, clock: FakeClock) -> None:
    ids = seeded(1)
    with Pointsman(url, [Tried], clock=clock, chance=lambda bits: 2**bits - 1 if bits == CHANCE_BITS else ids(bits)) as pm:
        _made(pm)
        for rest in (seconds(2), seconds(4)):
            task = _taken(pm)
            back = pm.release(task.id, by=support.OWNER, epoch=task.epoch, error=True)
            assert back.run_at == back.updated_at + rest
            assert pm.claim("tried", by=support.OWNER) is None
            clock.advance(rest + seconds(1))


def test_giving_back_for_others_sake_is_not_capped(pm: Pointsman) -> None:
    _made(pm)
    for _ in range(10):
        task = _taken(pm)
        pm.release(task.id, by=support.OWNER, epoch=task.epoch, counts=False, reason="the provider is down")
    assert pm.get(task.id).parked is None


def test_a_task_that_was_lost_too_often_is_parked_by_who_comes_next(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        _taken(pm)
        clock.advance(OVER)
    other = _made(pm)
    assert _taken(pm).id == other.id
    parked = pm.get(made.id)
    assert parked.parked is not None
    assert parked.parked.reason == "tried 3 times without a result: 3 lost, 0 in error"
    assert _events(pm, made)[-2:] == ["lapse", "park"]


def test_when_only_such_a_task_waits_nothing_does(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        _taken(pm)
        clock.advance(OVER)
    assert pm.claim("tried", by=support.OTHER) is None
    assert pm.get(made.id).parked is not None
    assert pm.claim("tried", by=support.OTHER) is None
    assert _events(pm, made).count("park") == 1


def test_who_claims_such_a_task_by_id_is_told(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        _taken(pm)
        clock.advance(OVER)
    with pytest.raises(Refused) as refused:
        pm.claim("tried", by=support.OTHER, id=made.id)
    assert (refused.value.code, refused.value.recorded, refused.value.version) == ("parked", True, pm.get(made.id).version)
    with pytest.raises(Refused) as again:
        pm.propose(made.id, "take", by=support.OTHER)
    assert (again.value.code, again.value.recorded, again.value.allowed) == ("parked", False, ())


def test_who_may_not_claim_parks_nothing(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        task = _taken(pm)
        clock.advance(OVER)
    with pytest.raises(Refused) as refused:
        pm.claim("tried", by=support.OTHER, id=made.id, expect_version=1)
    assert (refused.value.code, pm.get(made.id).version) == ("stale_version", task.version)


def test_an_error_at_the_cap_parks_at_once(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        task = _taken(pm)
        pm.release(task.id, by=support.OWNER, epoch=task.epoch, error=True, reason="exit status 1")
        clock.advance(REST + seconds(1))
    assert (found := pm.get(made.id).parked) is not None
    assert found.reason == "tried 3 times without a result: 0 lost, 3 in error"


def test_an_operator_puts_a_parked_task_back(pm: Pointsman, clock: FakeClock) -> None:
    made = _made(pm)
    for _ in range(3):
        task = _taken(pm)
        pm.release(task.id, by=support.OWNER, epoch=task.epoch)
    with pytest.raises(Refused) as refused:
        pm.unpark(made.id, by=Principal("worker", roles=frozenset()), reason="fixed")
    assert refused.value.code == "role_missing"
    parked = pm.get(made.id)
    with pytest.raises(Refused) as stale:
        pm.unpark(made.id, by=OPERATOR, reason="fixed", expect_version=parked.version - 1)
    assert stale.value.code == "stale_version"
    back = pm.unpark(made.id, by=OPERATOR, reason="fixed", expect_version=parked.version, idempotency_key="k")
    assert (back.parked, back.attempts, back.version) == (None, Attempts(), parked.version + 1)
    assert pm.unpark(made.id, by=OPERATOR, reason="fixed", expect_version=parked.version, idempotency_key="k").replayed
    assert pm.history(made.id)[-1].reason == "fixed"
    with pytest.raises(Refused) as twice:
        pm.unpark(made.id, by=OPERATOR, reason="again")
    assert twice.value.code == "wrong_state"
    assert _taken(pm).id == made.id


@pytest.mark.parametrize("reason", ["", "  ", 5, None])
def test_a_reason_is_text(pm: Pointsman, reason: object) -> None:
    made = _made(pm)
    with pytest.raises(Refused) as refused:
        pm.unpark(made.id, by=OPERATOR, reason=reason)  # pyright: ignore[reportArgumentType]
    assert refused.value.code == "invalid"


def test_an_error_counts(pm: Pointsman) -> None:
    _made(pm)
    task = _taken(pm)
    with pytest.raises(Refused) as refused:
        pm.release(task.id, by=support.OWNER, epoch=task.epoch, counts=False, error=True)
    assert refused.value.code == "invalid"
