"""Who is told that a task ended, by whom and when: a caller tells so many, a duty the rest, and nobody waits for a poll."""

import threading
from collections.abc import Iterable, Iterator
from typing import ClassVar

import pytest

from databases import PostgresServer
from engine.graph_world import Parts, batch, fail, make, states, take
from pointsman import Event, Machine, Pointsman, Refused, State, Verdict, check, hours, seconds
from pointsman.engine import ends
from pointsman.engine.timers import Deadlines
from pointsman.store.database import Topic
from pointsman.store.hints import of_queue
from pointsman.testing import FakeClock

PATIENCE_S = 20


class Gate:
    """Holds the running check until it is opened."""

    open: ClassVar[threading.Event]


def slow(text: str) -> Verdict:
    return Verdict(Gate.open.wait(PATIENCE_S) and text == "good", "compared")


class Due(Machine, name="due"):
    """Its tasks end by their deadline, or once a check has spoken."""

    text: str = "good"
    open = State(initial=True, deadline=hours(1), on_deadline="expire")
    gone = State(final=True)
    failed = State(final=True, outcome="failed")
    right = check(slow)
    expire = Event(open >> gone)
    send = Event(open >> gone, requires=right)
    fail = Event(open >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    Gate.open = threading.Event()
    with Pointsman(url, [Parts, Due], clock=clock) as opened:
        yield opened
        Gate.open.set()
        assert opened.verify().faults == ()
        assert opened.doctor() == []


# ── how many are told before the answer ──────────────────────────────────────────────────────────────────────────────


def test_a_caller_tells_so_many_and_a_duty_the_rest(pm: Pointsman, clock: FakeClock) -> None:
    first = make(pm)
    many = batch(pm, None, *[{"blocked_by": [{"task": first.id, "on_failure": "cancel"}]}] * (ends.MOST_TOLD + 10))
    fail(pm, first)
    assert states(pm, *many).count("dropped") == ends.MOST_TOLD
    assert pm.doctor() == []
    clock.advance(ends.PATIENCE + seconds(1))
    ends.take_over(pm.engine)
    assert set(states(pm, *many)) == {"dropped"}


def test_a_chain_of_ends_counts_as_what_it_tells(pm: Pointsman) -> None:
    """Each end of it takes a unit, which tells one."""
    chain = [make(pm)]
    for _ in range(20):
        chain.append(make(pm, "", (chain[-1], "cancel")))
    fail(pm, chain[0])
    assert set(states(pm, *chain[1:])) == {"dropped"}


# ── whoever waits for work ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def told(pm: Pointsman, monkeypatch: pytest.MonkeyPatch) -> set[Topic]:
    """What whoever waits in this process was told of."""
    topics, tell = set[Topic](), pm.engine.db.hints.tell

    def heard(news: Iterable[Topic] | None) -> None:
        topics.update(news or ())
        tell(news)

    monkeypatch.setattr(pm.engine.db.hints, "tell", heard)
    return topics


def test_whoever_waits_for_work_is_told_that_the_last_dependency_is_settled(pm: Pointsman, told: set[Topic]) -> None:
    """Also where what ended is of another machine."""
    one, other = pm.create("due", {}, by="ann"), pm.create("due", {}, by="ann")
    waits = make(pm, "", (one, "continue"), (other, "continue"))
    told.clear()
    pm.propose(one.id, "fail", by="ann")
    assert of_queue("parts") not in told, "it still waits for one"
    pm.propose(other.id, "fail", by="ann")
    assert of_queue("parts") in told
    assert take(pm, waits).state == "work"


def test_in_another_process(postgres: PostgresServer) -> None:
    url = postgres.empty()
    with Pointsman(url, [Parts, Due]) as pm, Pointsman(url, [Parts, Due]) as other:
        upstream = pm.create("due", {}, by="ann")
        waits = make(pm, "", (upstream, "continue"))
        with other.engine.db.hints.waiting(of_queue("parts")) as place:
            place.listen().result(PATIENCE_S)  # whoever begins to listen is told once
            hint = place.listen()
            pm.propose(upstream.id, "fail", by="ann")
            hint.result(PATIENCE_S)
        assert take(other, waits).state == "work"


# ── ends that nobody asked for ───────────────────────────────────────────────────────────────────────────────────────


def test_an_end_by_a_deadline_is_told_at_once(pm: Pointsman, clock: FakeClock) -> None:
    upstream = pm.create("due", {}, by="ann")
    waits = make(pm, "", upstream)
    clock.advance(hours(1) + 1)
    Deadlines(pm.engine).run_once()
    assert (pm.get(upstream.id).state, take(pm, waits).state) == ("gone", "work")


def test_an_end_by_a_proposal_whose_caller_has_gone_is_told_at_once(pm: Pointsman) -> None:
    upstream = pm.create("due", {}, by="ann")
    waits = make(pm, "", upstream)
    with pytest.raises(Refused, match="evidence_pending"):
        pm.propose(upstream.id, "send", by="ann", wait_s=0)
    Gate.open.set()
    taken = pm.claim("parts", by="worker-a", wait_s=PATIENCE_S)
    assert taken is not None
    assert taken.id == waits.id
