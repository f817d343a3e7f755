"""What claim-next gives: the first by place among all that is eligible, whatever lanes, lapses and times stand before it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import support
from pointsman import Event, Machine, Pointsman, Principal, Refused, State, Task, hours, minutes, owner, seconds
from pointsman.engine import duties
from pointsman.engine import propose as units
from pointsman.kernel.case import Proposal
from pointsman.kernel.terms import Terms
from pointsman.store import lanes, tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import PRIORITY_STEP, WOKEN
from pointsman.testing import FakeClock
from pointsman.types import iso


def is_open(task: Task) -> bool:
    return task.fields["open"] is True


class Queue(Machine, name="queue"):
    open: bool = True
    waiting = State(initial=True)
    work = State(lease=minutes(10))
    rest = State()
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, rest >> work, acquires=True, when=is_open)
    stay = Event(work >> rest, by=owner)
    finish = Event((waiting | work | rest) >> done)


def is_a(principal: Principal) -> bool:
    return principal.name == "a"


class Fickle(Machine, name="fickle"):
    waiting = State(initial=True)
    work = State(lease=minutes(1))
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, when=is_a)
    finish = Event(work >> done, by=owner)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Queue, Fickle], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def _add(pm: Pointsman, **terms: Any) -> Task:
    fields = {"open": terms.pop("open", True)}
    return pm.create("queue", fields, by="ann", **terms)


def _order(pm: Pointsman, **wanted: Any) -> list[str]:
    """Everything that claim-next gives, in turn."""
    found = list[str]()
    while task := pm.claim("queue", by=support.OWNER, **wanted):
        found.append(task.id)
    return found


def test_a_step_of_priority_is_worth_a_minute_of_waiting(pm: Pointsman, clock: FakeClock) -> None:
    old = _add(pm)
    clock.advance(2 * PRIORITY_STEP - seconds(1))
    higher, later, lower = _add(pm, priority=1), _add(pm), _add(pm, priority=-1)
    highest = _add(pm, priority=2)
    assert _order(pm) == [task.id for task in (highest, old, higher, later, lower)]


def test_a_task_is_not_given_out_before_its_time(pm: Pointsman, clock: FakeClock) -> None:
    late = _add(pm, run_at=iso(clock.now + hours(1)))
    past = _add(pm, run_at=clock.now - hours(1))
    now = _add(pm)
    assert _order(pm) == [past.id, now.id]
    for task in (past, now):
        pm.propose(task.id, "finish", by=support.OWNER)
    clock.advance(hours(1))
    assert _order(pm) == [late.id]


def test_what_a_claimer_is_able_to_do_decides_what_it_is_given(pm: Pointsman) -> None:
    gpu, both, plain = _add(pm, needs=["gpu"]), _add(pm, needs=["gpu", "git"]), _add(pm)
    assert _order(pm) == [plain.id]
    assert _order(pm, capabilities=["gpu"]) == [gpu.id]
    assert _order(pm, capabilities={"git", "gpu", "more"}) == [both.id]


def test_a_claimer_may_ask_for_tags_and_states(pm: Pointsman) -> None:
    red, blue, both = _add(pm, tags=["red"]), _add(pm, tags=["blue"]), _add(pm, tags=["red", "blue", "red"])
    assert both.tags == ("blue", "red")
    assert _order(pm, tags=["red", "blue"]) == [both.id]
    assert _order(pm, tags=["red"]) == [red.id]
    pm.propose(red.id, "stay", by=support.OWNER, epoch=1)
    assert _order(pm, states=["work"]) == []
    assert _order(pm, states=["waiting", "rest"]) == [blue.id], "what somebody owns without a lease is not given away"


def test_a_claim_looks_at_all_lanes_only_when_nothing_at_the_beginning_suits(url: str) -> None:
    """However many there are: here one for each need."""
    ran: list[str] = []
    with Pointsman(url, [Queue], clock=FakeClock(), probe=ran.append) as pm:
        for number in range(lanes.NEAR):
            pm.create("queue", {}, by="ann", needs=[f"tool-{number}"])
        last = pm.create("queue", {}, by="ann").id
        for capabilities, whole, expected in (([], True, last), (["tool-3"], False, None)):
            ran.clear()
            task = pm.claim("queue", by="bob", capabilities=capabilities)
            assert task is not None
            assert expected in (None, task.id)
            assert ("before:lanes_with_work" in ran) == whole
        assert pm.claim("queue", by="bob") is None


def test_a_state_that_no_version_has_is_said_so(pm: Pointsman) -> None:
    """Nothing would ever wait there, and its claimer would wait for ever."""
    pm.create("queue", {}, by="ann")
    for claim in (
        lambda states: pm.claim("queue", by="bob", states=states),
        lambda states: pm.claim_many("queue", 2, by="bob", states=states),
    ):
        with pytest.raises(Refused) as refused:
            claim(["waiting", "nope", "rest", ""])
        assert (refused.value.code, [fault["path"] for fault in refused.value.failed]) == ("invalid", ["states[1]", "states[3]"])
        with pytest.raises(Refused, match="wrong type"):
            claim([["waiting"]])
        with pytest.raises(Refused) as none:
            claim([])
        assert (none.value.code, [fault["path"] for fault in none.value.failed]) == ("invalid", ["states"])


def test_what_a_guard_keeps_back_is_passed_over(pm: Pointsman) -> None:
    closed = [_add(pm, open=False, priority=9) for _ in range(3)]
    opened = _add(pm)
    assert _order_of_one(pm) == opened.id
    with pytest.raises(Refused, match="guard_failed"):
        pm.claim("queue", by=support.OWNER)
    assert [pm.get(task.id).version for task in closed] == [1, 1, 1]


def _order_of_one(pm: Pointsman) -> str | None:
    task = pm.claim("queue", by=support.OWNER)
    return task and task.id


def test_a_lapsed_task_that_a_guard_keeps_back_keeps_owner_and_history(pm: Pointsman, clock: FakeClock) -> None:
    pm.create("fickle", {}, by="ann")
    taken = pm.claim("fickle", by="a")
    assert taken is not None
    clock.advance(minutes(2))
    with pytest.raises(Refused, match="guard_failed"):
        pm.claim("fickle", by="b")
    assert pm.get(taken.id) == taken


def test_a_renewal_takes_a_lapsed_task_out_of_the_line(pm: Pointsman, clock: FakeClock) -> None:
    _add(pm)
    task = pm.claim("queue", by=support.OWNER)
    assert task is not None
    clock.advance(minutes(11))
    assert not duties.wake(pm.engine), "one is no full batch"
    pm.renew(task.id, by=support.OWNER, epoch=task.epoch)
    assert pm.claim("queue", by=support.OTHER) is None
    clock.advance(minutes(11))
    taken = pm.claim("queue", by=support.OTHER)
    assert (taken and taken.id, taken and taken.epoch) == (task.id, 2)


def test_more_than_one_batch_whose_time_has_come_hides_nothing(pm: Pointsman, clock: FakeClock) -> None:
    """The one that suits comes last of all that were woken."""
    soon = clock.now + seconds(1)
    pm.engine.db.run(lambda tx: [_put(pm, tx, needs=("gpu",), run_at=soon) for _ in range(WOKEN + 1)])
    wanted = _add(pm, run_at=soon + 1, priority=-5)
    clock.advance(seconds(2))
    assert _order_of_one(pm) == wanted.id


def _put(pm: Pointsman, tx: Tx, **terms: Any) -> None:
    deciding = pm.deciding("ann", None, None, {})
    units.create(deciding, "queue", {"open": True}, Terms(**terms), Proposal("create", {}, deciding.call.by), tx, False)


def test_a_batch_at_a_time_is_woken_beside_other_work(pm: Pointsman, clock: FakeClock) -> None:
    soon = clock.now + seconds(1)
    pm.engine.db.run(lambda tx: [_put(pm, tx, run_at=soon) for _ in range(WOKEN + 1)])
    assert not duties.wake(pm.engine)
    clock.advance(seconds(2))
    assert (duties.wake(pm.engine), duties.wake(pm.engine)) == (True, False)
    assert not pm.engine.db.read(lambda tx: tasks.can_wake(tx, "queue"))


BAD_TERMS = [
    ({"tags": "red"}, "tags"),
    ({"tags": [""]}, "tags[0]"),
    ({"tags": ["a", "\N{CYRILLIC SMALL LETTER A}"]}, "tags[1]"),
    ({"tags": [1]}, "tags[0]"),
    ({"needs": [f"n{n}" for n in range(17)]}, "needs"),
    ({"needs": ["x" * 129]}, "needs[0]"),
    ({"run_at": "2026-01-01"}, "run_at"),
    ({"run_at": "2026-01-01T00:00:00"}, "run_at"),
    ({"run_at": -1}, "run_at"),
    ({"run_at": 10**18}, "run_at"),
    ({"run_at": True}, "run_at"),
    ({"run_at": 1.5}, "run_at"),
    ({"priority": 1_001}, "priority"),
    ({"priority": True}, "priority"),
    ({"epoch": 1}, "epoch"),
]


@pytest.mark.parametrize(("terms", "path"), BAD_TERMS)
def test_terms_that_do_not_fit_are_named_and_nothing_is_made(pm: Pointsman, terms: dict[str, Any], path: str) -> None:
    with pytest.raises(Refused) as refused:
        _add(pm, **terms)
    assert (refused.value.code, [item["path"] for item in refused.value.failed]) == ("invalid", [path])
    assert pm.list() == []


def test_terms_are_part_of_the_request(pm: Pointsman) -> None:
    made = _add(pm, tags=["b", "a"], idempotency_key="k")
    assert _add(pm, tags=["a", "b", "a"], idempotency_key="k").id == made.id
    with pytest.raises(Refused, match="idempotency_conflict"):
        _add(pm, tags=["a"], idempotency_key="k")


# ── any mix, against a model ─────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Modelled:
    """A task as a plain look over all of them sees it."""

    task: Task
    free_at: int
    gone: bool = False

    @property
    def rank(self) -> tuple[int, int]:
        at = self.task.created_at if self.task.run_at is None else self.task.run_at
        return at - self.task.priority * PRIORITY_STEP, self.number

    number: int = 0


STEPS = st.one_of(
    st.tuples(
        st.just("add"),
        st.integers(-3, 3),
        st.sets(st.sampled_from(["gpu", "git"])),
        st.sets(st.sampled_from(["red", "blue"])),
        st.sampled_from([None, -60, 30, 700]),
    ),
    st.tuples(st.just("claim"), st.sets(st.sampled_from(["gpu", "git"])), st.sets(st.sampled_from(["red", "blue"]), max_size=1)),
    st.tuples(
        st.just("claim many"),
        st.integers(1, 6),
        st.sets(st.sampled_from(["gpu", "git"])),
        st.sets(st.sampled_from(["red", "blue"]), max_size=1),
    ),
    st.tuples(st.just("wait"), st.sampled_from([20, 61, 601])),
    st.tuples(st.just("finish"), st.integers(0, 9)),
    st.tuples(st.just("renew"), st.integers(0, 9)),
    st.tuples(st.just("wake")),
)
_numbers = count()


@contextmanager
def _opened(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    """A machine of its own for each example, so that one database serves them all."""

    class Mixed(Machine, name=f"mixed{next(_numbers)}"):
        waiting = State(initial=True)
        work = State(lease=minutes(10))
        done = State(final=True, outcome="failed")
        take = Event(waiting >> work, acquires=True)
        finish = Event((waiting | work) >> done)

    with Pointsman(url, [Mixed], clock=clock) as pm:
        yield pm


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=st.lists(STEPS, max_size=25), near=st.sampled_from([1, 2, lanes.NEAR]))
def test_what_is_given_is_the_first_of_all_that_is_eligible(shared_url: str, steps: list[tuple[Any, ...]], near: int) -> None:
    """However much of the line is looked at before all its lanes are."""
    clock, made = FakeClock(), list[Modelled]()
    with pytest.MonkeyPatch.context() as patch, _opened(shared_url, clock) as pm:
        patch.setattr(lanes, "NEAR", near)
        for step in steps:
            _step(pm, clock, made, step)
        for capabilities in ({"gpu", "git"}, {"gpu", "git"}):
            while _claimed(pm, clock, made, capabilities, set()):
                pass


def _step(pm: Pointsman, clock: FakeClock, made: list[Modelled], step: tuple[Any, ...]) -> None:
    (machine,) = pm.machines
    match step:
        case ("add", int(priority), set(needs), set(tags), after):
            run_at = None if after is None else clock.now + seconds(after)
            task = pm.create(machine, {}, by="ann", priority=priority, needs=needs, tags=tags, run_at=run_at)
            made.append(Modelled(task, 0 if run_at is None else run_at, number=len(made)))
        case ("claim", set(capabilities), set(tags)):
            _claimed(pm, clock, made, capabilities, tags)
        case ("claim many", int(number), set(capabilities), set(tags)):
            _claimed_many(pm, clock, made, number, capabilities, tags)
        case ("wait", int(span)):
            clock.advance(seconds(span))
        case ("wake",):
            duties.wake(pm.engine)
        case ("finish", int(number)) if number < len(made) and not made[number].gone:
            pm.propose(made[number].task.id, "finish", by=support.OWNER)
            made[number].gone = True
        case ("renew", int(number)) if number < len(made) and not made[number].gone and made[number].task.owner:
            renewed = pm.renew(made[number].task.id, by=support.OWNER, epoch=pm.get(made[number].task.id).epoch)
            assert renewed.lease is not None
            made[number].free_at = renewed.lease.expires_at
        case _:
            pass


def _claimed(pm: Pointsman, clock: FakeClock, made: list[Modelled], capabilities: set[str], tags: set[str]) -> bool:
    """One claim, here and in the model."""
    (machine,) = pm.machines
    first = _line(clock, made, capabilities, tags)[:1]
    task = pm.claim(machine, by=support.OWNER, capabilities=capabilities, tags=tags)
    _taken(pm, first, [] if task is None else [task])
    return task is not None


def _claimed_many(pm: Pointsman, clock: FakeClock, made: list[Modelled], number: int, capabilities: set[str], tags: set[str]) -> None:
    (machine,) = pm.machines
    first = _line(clock, made, capabilities, tags)[:number]
    _taken(pm, first, pm.claim_many(machine, number, by=support.OWNER, capabilities=capabilities, tags=tags))


def _line(clock: FakeClock, made: list[Modelled], capabilities: set[str], tags: set[str]) -> list[Modelled]:
    """All that is eligible, in order."""
    now = clock.now
    eligible = [
        one for one in made if not one.gone and one.free_at <= now and set(one.task.needs) <= capabilities and tags <= set(one.task.tags)
    ]
    return sorted(eligible, key=lambda one: one.rank)


def _taken(pm: Pointsman, first: list[Modelled], tasks: list[Task]) -> None:
    assert [task.id for task in tasks] == [one.task.id for one in first]
    for one, task in zip(first, tasks, strict=True):
        assert task.lease is not None
        one.task, one.free_at = task, task.lease.expires_at
        if task.attempts.counted >= 4:
            pm.propose(task.id, "finish", by=support.OWNER)
            one.gone = True
