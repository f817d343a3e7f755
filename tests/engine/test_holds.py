"""Holds: an operator stops what matches, for a while and a reason; what waited is let go at a rate."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Signal
from threading import Thread
from typing import Any

import psycopg
import pytest

from pointsman import Event, Machine, Pointsman, Principal, Refused, State, Task, hours, minutes, owner, seconds
from pointsman.engine import backlogs
from pointsman.engine.claim import REFUSED_AT_ONCE
from pointsman.errors import StoreError
from pointsman.kernel.hold import Hold
from pointsman.store import holds, tasks
from pointsman.store.database import Tx
from pointsman.testing import FakeClock
from pointsman.types import SECOND, iso

OPERATOR = Principal("olga", kind="person", roles=frozenset({"operator"}))


def is_open(task: Task) -> bool:
    return bool(task.fields["open"])


class Job(Machine, name="job"):
    open = State(initial=True)
    work = State(lease=minutes(1))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True)
    finish = Event(work >> done, by=owner)
    drop = Event((open | work) >> failed)


class Other(Machine, name="other"):
    open = State(initial=True)
    work = State(lease=minutes(1))
    failed = State(final=True, outcome="failed")
    take = Event(open >> work, acquires=True)
    drop = Event((open | work) >> failed)


class Doors(Machine, name="doors"):
    open: bool = True
    waiting = State(initial=True)
    work = State(lease=minutes(1))
    failed = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, when=is_open)
    drop = Event((waiting | work) >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Job, Other, Doors], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def made(pm: Pointsman, *tags: str, machine: str = "job") -> Task:
    return pm.create(machine, {}, by="ann", tags=tags)


def held(pm: Pointsman, match: dict[str, str], **said: object) -> Hold:
    return pm.hold(match, by=OPERATOR, reason="the provider is down", **said)  # pyright: ignore[reportArgumentType]


def refusal(pm: Pointsman, task: Task, event: str = "take", **members: object) -> Refused:
    with pytest.raises(Refused) as refused:
        pm.propose(task.id, event, by="w", **members)  # pyright: ignore[reportArgumentType]
    return refused.value


MATCHES = [
    {"machine": "job"},
    {"event": "take"},
    {"state": "open"},
    {"tag": "gpu"},
    {"machine": "job", "event": "take", "state": "open", "tag": "gpu"},
]


@pytest.mark.parametrize("match", MATCHES)
def test_a_hold_stops_what_fits_all_its_members(pm: Pointsman, match: dict[str, str]) -> None:
    task = made(pm, "gpu")
    hold = held(pm, match)
    no = refusal(pm, task)
    assert (no.code, no.recorded, no.version) == ("held", False, 1)
    assert no.refusal.extra == {"hold": hold.id, "reason": "the provider is down", "until": None}
    with pytest.raises(Refused, match="held until an operator lifts it: the provider is down"):
        pm.claim("job", by="w", id=task.id)
    with pytest.raises(Refused, match="held"):
        pm.propose(task.id, "take", by="w", dry_run=True)
    assert pm.claim("job", by="w") is None
    assert pm.get(task.id) == task


@pytest.mark.parametrize(
    "match", [{"machine": "other"}, {"event": "finish"}, {"state": "work"}, {"tag": "gp"}, {"machine": "job", "tag": "cpu"}]
)
def test_and_nothing_else(pm: Pointsman, match: dict[str, str]) -> None:
    task = made(pm, "gpu")
    held(pm, match)
    assert pm.propose(task.id, "take", by="w").state == "work"


def test_it_stops_only_events(pm: Pointsman) -> None:
    task = made(pm)
    task = pm.propose(task.id, "take", by="w")
    held(pm, {"machine": "job"})
    assert refusal(pm, task, "finish", epoch=task.epoch).code == "held"
    pm.renew(task.id, by="w", epoch=task.epoch)
    assert pm.release(task.id, by="w", epoch=task.epoch).state == "open"


def test_rights_and_state_speak_first_and_guards_after(pm: Pointsman) -> None:
    task = made(pm)
    held(pm, {"machine": "job"})
    assert refusal(pm, task, "finish", epoch=0).code == "wrong_state"


def test_a_hold_has_its_time(pm: Pointsman, clock: FakeClock) -> None:
    task = made(pm)
    hold = held(pm, {"machine": "job"}, start=clock.now + minutes(10), until=clock.now + minutes(20))
    pm.propose(task.id, "take", by="w", dry_run=True)
    clock.advance(minutes(10))
    no = refusal(pm, task)
    assert hold.until is not None
    assert (no.refusal.extra["until"], no.refusal.extra["retry_after_s"]) == (iso(hold.until), 600)
    clock.advance(minutes(10))
    assert pm.propose(task.id, "take", by="w").state == "work"


def test_of_several_the_longest_is_told(pm: Pointsman, clock: FakeClock) -> None:
    task = made(pm)
    held(pm, {"machine": "job"}, until=clock.now + minutes(1))
    longest = held(pm, {"event": "take"})
    held(pm, {"state": "open"}, until=clock.now + minutes(5))
    assert refusal(pm, task).refusal.extra["hold"] == longest.id


def test_claim_next_passes_over_what_is_held(pm: Pointsman, clock: FakeClock) -> None:
    for _ in range(3):
        made(pm, "gpu")
    free, lapsing = made(pm), made(pm, "gpu")
    pm.claim("job", by="x", id=lapsing.id)
    held(pm, {"tag": "gpu"})
    clock.advance(minutes(2))
    task = pm.claim("job", by="w")
    assert task is not None
    assert task.id == free.id
    assert pm.claim("job", by="w") is None
    assert pm.get(lapsing.id).owner == "x"
    other = made(pm, machine="other")
    taken = pm.claim("other", by="w")
    assert taken is not None
    assert taken.id == other.id


@pytest.mark.parametrize("state", ["open", "work"])
def test_a_lapsed_task_is_held_where_it_is_and_where_it_goes(pm: Pointsman, clock: FakeClock, state: str) -> None:
    task = pm.propose(made(pm).id, "take", by="x")
    clock.advance(minutes(2))
    held(pm, {"state": state})
    assert pm.claim("job", by="w") is None
    with pytest.raises(Refused, match="held"):
        pm.claim("job", by="w", id=task.id)
    assert [entry.event for entry in pm.history(task.id)] == ["create", "take"]


def test_lifting_needs_an_operator_and_is_done_once(pm: Pointsman, clock: FakeClock) -> None:
    worker = Principal("w", roles=frozenset())
    with pytest.raises(Refused) as refused:
        pm.hold({"machine": "job"}, by=worker, reason="mine")
    assert refused.value.code == "role_missing"
    hold = held(pm, {"machine": "job"})
    with pytest.raises(Refused) as refused:
        pm.lift(hold.id, by=worker)
    assert refused.value.code == "role_missing"
    clock.advance(minutes(1))
    lifted = pm.lift(hold.id, by=OPERATOR)
    assert (lifted.lifted_by, lifted.lifted_at, lifted.placed_by) == ("olga", clock.now, "olga")
    clock.advance(minutes(1))
    assert pm.lift(hold.id, by=OPERATOR) == lifted
    assert pm.holds() == [lifted]
    for unknown in ("01890000-0000-7000-8000-000000000000", "x"):
        with pytest.raises(Refused) as refused:
            pm.lift(unknown, by=OPERATOR)
        assert refused.value.code == "unknown_hold"


def test_the_same_hold_is_placed_once_while_it_stands(pm: Pointsman, clock: FakeClock) -> None:
    first = held(pm, {"machine": "job"})
    clock.advance(SECOND)
    assert held(pm, {"machine": "job"}) == first
    later = clock.now + hours(1)
    said = [
        {"start": later},
        {"until": later},
        {"release_per_s": 3},
        {"reason": "another"},
        {"by": "otto"},
        {"match": {"machine": "other"}},
    ]
    usual = {"match": {"machine": "job"}, "by": OPERATOR, "reason": "the provider is down"}
    others = [pm.hold(**{**usual, **words}) for words in said]  # pyright: ignore[reportArgumentType]
    assert [pm.hold(**{**usual, **words}) for words in said] == others  # pyright: ignore[reportArgumentType]
    assert len({hold.id for hold in (first, *others)}) == 7
    pm.lift(first.id, by=OPERATOR)
    assert held(pm, {"machine": "job"}).id != first.id


@pytest.mark.parametrize("verb", ["place", "lift"])
def test_an_unknown_commit_is_settled_by_asking_again(pm: Pointsman, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    hold, honest, left = held(pm, {"event": "drop"}), pm.engine.db.run, [1]

    def lost(unit: Callable[[Tx], Any]) -> Any:
        answer = honest(unit)
        if left.pop() if left else 0:
            raise StoreError("store_unavailable", "the answer of COMMIT was lost", "unknown")
        return answer

    monkeypatch.setattr(pm.engine.db, "run", lost)
    made = held(pm, {"machine": "job"}) if verb == "place" else pm.lift(hold.id, by=OPERATOR)
    assert not left
    assert {item.id: item for item in pm.holds()} == {hold.id: hold, made.id: made}


def test_many_holds_at_once_wait_for_one_another_in_turn(url: str) -> None:
    with Pointsman(url, [Job]) as pm, ThreadPoolExecutor(8) as pool:
        placing = [pool.submit(held, pm, {"machine": "job"}, release_per_s=1 + number // 2) for number in range(8)]
        assert {item.result(30).id for item in placing} == {hold.id for hold in pm.holds()}
        assert len(pm.holds()) == 4


BAD = [
    ({"match": {}}, "match"),
    ({"match": {"machine": "job", "owner": "w"}}, "match"),
    ({"match": {"machine": 5}}, "match.machine"),
    ({"match": {"event": "fly"}}, "match.event"),
    ({"match": {"machine": "other", "event": "finish"}}, "match.event"),
    ({"match": {"state": "opne"}}, "match.state"),
    ({"match": {"tag": " "}}, "match.tag"),
    ({"match": {"tag": "a\0b"}}, "match.tag"),
    ({"match": []}, "match"),
    ({"reason": " "}, "reason"),
    ({"reason": "x" * 1_001}, "reason"),
    ({"reason": "a\0"}, "reason"),
    ({"reason": "\ud800"}, "reason"),
    ({"until": 5}, "until"),
    ({"until": True}, "until"),
    ({"start": -1}, "from"),
    ({"start": 2**62, "until": 2**62}, "from"),
    ({"release_per_s": 0}, "release_per_s"),
    ({"release_per_s": 10_001}, "release_per_s"),
    ({"release_per_s": 2.5}, "release_per_s"),
]


@pytest.mark.parametrize(("said", "path"), BAD)
def test_what_does_not_fit_places_no_hold(pm: Pointsman, said: dict[str, object], path: str) -> None:
    asked = {"match": {"machine": "job"}, "reason": "because", **said}
    with pytest.raises(Refused) as refused:
        pm.hold(asked.pop("match"), by=OPERATOR, **asked)  # pyright: ignore[reportArgumentType]
    assert refused.value.code == "invalid"
    assert path in [item["path"] for item in refused.value.failed]
    assert pm.holds() == []


def test_a_hold_on_an_unknown_machine_is_no_hold(pm: Pointsman) -> None:
    with pytest.raises(Refused) as refused:
        held(pm, {"machine": "jobs"})
    assert refused.value.code == "unknown_machine"


# ── what waited is let go at a rate ──────────────────────────────────────────────────────────────────────────────


def test_a_backlog_is_let_go_one_by_one(pm: Pointsman, clock: FakeClock) -> None:
    """Who came later waits behind it, unless it is asked for by its id."""
    waiting = [made(pm) for _ in range(4)]
    hold = held(pm, {"event": "take"}, release_per_s=4)
    clock.advance(hours(1))
    pm.lift(hold.id, by=OPERATOR)
    clock.advance(1)
    younger, other = made(pm), made(pm)
    assert _claimed(pm) == waiting[0].id
    assert _claimed(pm) is None
    assert pm.claim("job", by="w", id=younger.id) is not None
    no = refusal(pm, waiting[1])
    assert (no.code, no.refusal.extra["hold"], no.refusal.extra["retry_after_s"]) == ("held", hold.id, 1)
    assert "at most 4 a second" in no.detail
    clock.advance(SECOND // 4 - 1)
    assert _claimed(pm) is None
    clock.advance(1)
    assert pm.claim("job", by="w", id=waiting[2].id) is not None
    assert refusal(pm, waiting[1]).code == "held"
    assert pm.propose(waiting[1].id, "drop", by="w").state == "failed"
    for task in (waiting[3], other):
        clock.advance(SECOND // 4)
        assert _claimed(pm) == task.id


def _claimed(pm: Pointsman) -> str | None:
    task = pm.claim("job", by="w")
    return None if task is None else task.id


def test_a_look_that_goes_on_behind_a_backlog_does_not_overtake_it(pm: Pointsman, clock: FakeClock) -> None:
    """It goes on behind all those it was refused, here one more than it looks at together; the backlog began before them."""
    waiting = [made(pm, machine="doors") for _ in range(2)]
    hold = held(pm, {"machine": "doors"}, release_per_s=1)
    clock.advance(1)
    pm.lift(hold.id, by=OPERATOR)
    clock.advance(1)
    pm.create_batch([{"fields": {"open": False}, "needs": ["gpu"]}] * (REFUSED_AT_ONCE + 1), by="ann", machine="doors")
    made(pm, machine="doors")
    assert (first := pm.claim("doors", by="w")) is not None
    assert first.id == waiting[0].id
    with pytest.raises(Refused, match="guard_failed"):
        pm.claim("doors", by="w", capabilities=["gpu"])
    clock.advance(seconds(1))
    assert (second := pm.claim("doors", by="w", capabilities=["gpu"])) is not None
    assert second.id == waiting[1].id


def test_what_came_from_a_backlog_goes_on_at_once(pm: Pointsman, clock: FakeClock) -> None:
    made(pm)
    hold = held(pm, {"machine": "job"}, release_per_s=1)
    clock.advance(1)
    pm.lift(hold.id, by=OPERATOR)
    task = pm.claim("job", by="w")
    assert task is not None
    back = pm.release(task.id, by="w", epoch=task.epoch)
    again = pm.claim("job", by="w", id=back.id)
    assert again is not None
    assert pm.propose(again.id, "finish", by="w", epoch=again.epoch).state == "done"


def test_a_hold_that_never_began_lets_go_of_nothing(pm: Pointsman, clock: FakeClock) -> None:
    for _ in range(2):
        made(pm)
    pm.lift(held(pm, {"machine": "job"}, start=clock.now + hours(1), release_per_s=1).id, by=OPERATOR)
    assert _claimed(pm)
    assert _claimed(pm)


def test_a_lapsed_task_of_the_backlog_waits_for_its_turn(pm: Pointsman, clock: FakeClock) -> None:
    for _ in range(2):
        pm.propose(made(pm).id, "take", by="x")
    hold = held(pm, {"machine": "job"}, release_per_s=1)
    clock.advance(minutes(2))
    pm.lift(hold.id, by=OPERATOR)
    assert _claimed(pm)
    assert _claimed(pm) is None
    clock.advance(seconds(2))
    assert _claimed(pm)


def _in_use(pm: Pointsman) -> int:
    backlogs.retire(pm.engine)
    return len(pm.engine.db.read(holds.in_use))


def test_a_backlog_is_let_go_at_its_rate_however_late_somebody_comes(pm: Pointsman, clock: FakeClock) -> None:
    """A hold is read for as long as something waits that it held back, and no longer."""
    for _ in range(3):
        made(pm)
    hold = held(pm, {"event": "take"}, release_per_s=1)
    clock.advance(1)
    pm.lift(hold.id, by=OPERATOR)
    for left in (3, 2, 1):
        clock.advance(hours(20))
        assert _in_use(pm) == 1, f"{left} wait"
        task = pm.claim("job", by="w")
        assert task is not None
        assert _claimed(pm) is None
        pm.propose(task.id, "finish", by="w", epoch=task.epoch)
    clock.advance(SECOND)
    assert _in_use(pm) == 0
    assert len(pm.holds()) == 1
    assert pm.verify().ok


def test_an_ended_hold_that_nobody_needs_is_not_read(pm: Pointsman, clock: FakeClock) -> None:
    """What it does not match, and what is done, does not need it."""
    made(pm)
    other = pm.propose(made(pm, "gpu").id, "take", by="x")
    spans = [held(pm, {"tag": "gpu"}), held(pm, {"event": "drop"}), held(pm, {"machine": "job"}, start=clock.now + hours(1))]
    clock.advance(1)
    for hold in spans:
        pm.lift(hold.id, by=OPERATOR)
    assert _in_use(pm) == 3, "whoever decides may have read the clock a minute ago"
    clock.advance(minutes(1))
    assert _in_use(pm) == 1, "the lease of what is held may run out"
    pm.propose(other.id, "finish", by="x", epoch=other.epoch)
    assert _in_use(pm) == 0
    pm.lift(spans[0].id, by=OPERATOR)
    assert pm.verify().ok


def test_more_than_a_look_takes_in_keeps_a_hold_in_use(pm: Pointsman, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlogs, "PAGE", 2)
    for _ in range(2):
        made(pm)
    hold = held(pm, {"tag": "gpu"})
    clock.advance(1)
    pm.lift(hold.id, by=OPERATOR)
    clock.advance(hours(1))
    assert _in_use(pm) == 1
    assert _claimed(pm)
    assert _in_use(pm) == 0


def test_the_rate_is_a_setting(url: str, clock: FakeClock) -> None:
    with Pointsman(url, [Job], clock=clock, release_per_s=7) as pm:
        assert held(pm, {"machine": "job"}).release_per_s == 7
    with pytest.raises(Refused):
        Pointsman(url, [Job], clock=clock, release_per_s=0)


def test_one_that_somebody_decides_on_is_waited_for_when_all_else_is_held(request: pytest.FixtureRequest, clock: FakeClock) -> None:
    """On PostgreSQL rows are locked one by one: who holds one may yet give it back."""
    url = request.getfixturevalue("postgres").empty()
    locked, go, taken = Signal(), Signal(), list[Task | None]()

    def probe(point: str) -> None:
        if point == "before:next_in_lane_at_last" and locked.is_set():
            go.set()

    with Pointsman(url, [Job], clock=clock, probe=probe) as pm:
        made(pm, "gpu")
        free = made(pm)
        held(pm, {"tag": "gpu"})

        def unit(tx: Tx) -> None:
            tasks.find(tx, free.id)
            locked.set()
            go.wait(30)
            raise ValueError("given back")

        rival = pm.engine.db.submit(unit)
        locked.wait(30)
        claimer = Thread(target=lambda: taken.append(pm.claim("job", by="w")))
        claimer.start()
        claimer.join(30)
        assert isinstance(rival.exception(30), ValueError)
        assert [task and task.id for task in taken] == [free.id]


LOCKED = """
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND (classid, objid) = (1347373391, 3) AND mode = 'ShareLock' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@pytest.mark.parametrize("many", [1, 3])
def test_whoever_sees_that_nothing_is_held_makes_the_next_one_wait(request: pytest.FixtureRequest, clock: FakeClock, many: int) -> None:
    """At every look of a claim: also at one that follows what was woken, or goes on behind many refusals."""
    url = request.getfixturevalue("postgres").empty()
    seen = list[int]()

    def probe(point: str) -> None:
        if point == "after:holds_in_use":
            seen.append(onlooker.execute(LOCKED).fetchone()[0])  # pyright: ignore[reportOptionalSubscript]

    with psycopg.connect(url, autocommit=True) as onlooker, Pointsman(url, [Doors], clock=clock, probe=probe) as pm:
        pm.create_many("doors", [{"open": False}] * (REFUSED_AT_ONCE + 50), by="ann")
        pm.create_many("doors", [{"open": True}] * 5, by="ann", run_at=clock() + SECOND)
        clock.advance(minutes(1))
        seen.clear()
        claimed = pm.claim_many("doors", many, by="w") if many > 1 else pm.claim("doors", by="w")
        assert claimed
    assert len(seen) >= 2
    assert set(seen) == {1}
