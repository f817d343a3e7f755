"""Limits across tasks: never over what is declared, whoever races; what is used is what history says was taken."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import support
from databases import PostgresServer
from pausing import Pausing
from pointsman import DefinitionError, Event, Limit, Machine, Pointsman, Refused, State, Task, field, minutes, owner, seconds
from pointsman.engine import duties
from pointsman.kernel.exported import export, restore
from pointsman.store import limits
from pointsman.testing import FakeClock

RACERS = 16
PATIENCE_S = 30


class Builds(Machine, name="builds"):
    repo: str
    waiting = State(initial=True)
    work = State(lease=minutes(5))
    done = State(final=True, outcome="failed")
    repo_alone = Limit("repo", key=field.repo, concurrent=1)
    take = Event(waiting >> work, acquires=True, limits=repo_alone)
    touch = Event(work >> work, by=owner)
    finish = Event(work >> done, by=owner)


class Calls(Machine, name="calls"):
    waiting = State(initial=True)
    work = State(lease=minutes(60))
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, limits=Limit("model", per=minutes(1), max=3))
    finish = Event(work >> done, by=owner)


class Refunds(Machine, name="refunds"):
    customer: str
    amount: float | None = None
    open = State(initial=True)
    paid = State(final=True)
    failed = State(final=True, outcome="failed")
    pay = Event(open >> paid, sets="amount", limits=Limit("refunds", key=field.customer, per=minutes(10), sum=field.amount, max=1))
    drop = Event(open >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Builds, Calls, Refunds], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def _build(pm: Pointsman, repo: str) -> Task:
    return pm.create("builds", {"repo": repo}, by="ann")


def _taken(pm: Pointsman, by: str = support.OWNER, id: str | None = None) -> Task:
    task = pm.claim("builds", by=by, id=id)
    assert task is not None
    return task


def _refused(pm: Pointsman, machine: str, task: Task) -> Refused:
    with pytest.raises(Refused, match="limit_reached") as refused:
        pm.claim(machine, by=support.OTHER, id=task.id)
    assert pm.get(task.id) == task, "a refusal changes nothing"
    return refused.value


def test_what_a_limit_keeps_back_is_passed_over(pm: Pointsman) -> None:
    first, second, other = _build(pm, "one"), _build(pm, "one"), _build(pm, "two")
    assert [_taken(pm).id, _taken(pm).id] == [first.id, other.id]
    assert pm.claim("builds", by=support.OTHER) is None
    refused = _refused(pm, "builds", second)
    assert refused.refusal.extra["retry_after_s"] == 1
    assert [item["key"] for item in refused.failed] == ["one"]


@pytest.mark.parametrize("end", ["finish", "release"])
def test_a_place_is_free_when_its_owner_has_let_go(pm: Pointsman, end: str) -> None:
    first, second = _build(pm, "one"), _build(pm, "one")
    task = _taken(pm)
    if end == "finish":
        pm.propose(first.id, "finish", by=support.OWNER, epoch=task.epoch)
        assert _taken(pm).id == second.id
    else:
        pm.release(first.id, by=support.OWNER, epoch=task.epoch)
        assert _taken(pm, id=second.id).id == second.id
        assert pm.claim("builds", by=support.OTHER) is None


def test_a_lapsed_task_keeps_its_place_until_somebody_takes_it_over(pm: Pointsman, clock: FakeClock) -> None:
    first, second = _build(pm, "one"), _build(pm, "one")
    task = _taken(pm)
    clock.advance(minutes(6))
    _refused(pm, "builds", second)
    pm.propose(first.id, "touch", by=support.OWNER, epoch=task.epoch)
    clock.advance(minutes(6))
    again = _taken(pm, support.OTHER)
    assert (again.id, again.epoch) == (first.id, 2)
    _refused(pm, "builds", second)
    clock.advance(minutes(6))
    assert _taken(pm, "third", id=first.id).epoch == 3


def test_a_window_slides(pm: Pointsman, clock: FakeClock) -> None:
    made = [pm.create("calls", {}, by="ann") for _ in range(6)]
    given = list[int]()
    for _ in range(12):
        clock.advance(seconds(10))
        if pm.claim("calls", by=support.OWNER):
            given.append(clock.now)
    assert len(given) == 6
    assert all(later - earlier >= minutes(1) for earlier, later in zip(given, given[3:], strict=False))
    assert pm.claim("calls", by=support.OWNER) is None
    assert {pm.get(task.id).state for task in made} == {"work"}


def test_a_refusal_says_when_to_ask_again(pm: Pointsman, clock: FakeClock) -> None:
    made = [pm.create("calls", {}, by="ann") for _ in range(4)]
    for task in made[:3]:
        clock.advance(seconds(1))
        pm.claim("calls", by=support.OWNER, id=task.id)
    clock.advance(seconds(1))
    refused = _refused(pm, "calls", made[3])
    assert refused.refusal.extra["retry_after_s"] == 57
    clock.advance(seconds(57))
    assert pm.claim("calls", by=support.OTHER, id=made[3].id) is not None


def test_a_sum_is_exact_and_counts_what_the_event_sets(pm: Pointsman, clock: FakeClock) -> None:
    for _ in range(10):
        task = pm.create("refunds", {"customer": "a"}, by="ann")
        pm.propose(task.id, "pay", {"amount": 0.1}, by="w")
    task = pm.create("refunds", {"customer": "a"}, by="ann")
    with pytest.raises(Refused, match="limit_reached"):
        pm.propose(task.id, "pay", {"amount": 0.000001}, by="w")
    pm.propose(task.id, "pay", {"amount": 0}, by="w", dry_run=True)
    other = pm.create("refunds", {"customer": "b"}, by="ann")
    with pytest.raises(Refused, match="never lets so much") as refused:
        pm.propose(other.id, "pay", {"amount": 1.5}, by="w")
    assert "retry_after_s" not in refused.value.refusal.extra
    pm.propose(other.id, "pay", {"amount": 1}, by="w")
    clock.advance(minutes(10) + seconds(1))
    assert pm.propose(task.id, "pay", {"amount": 1}, by="w").state == "paid"


def test_a_dry_run_takes_nothing(pm: Pointsman) -> None:
    first, second = _build(pm, "one"), _build(pm, "one")
    pm.propose(first.id, "take", by=support.OWNER, dry_run=True)
    _taken(pm, id=second.id)
    with pytest.raises(Refused, match="limit_reached"):
        pm.propose(first.id, "take", by=support.OWNER, dry_run=True)


def test_uses_are_forgotten_a_while_after_no_window_holds_them(pm: Pointsman, clock: FakeClock) -> None:
    pm.create("calls", {}, by="ann")
    assert pm.claim("calls", by=support.OWNER) is not None
    _build(pm, "one")
    _taken(pm)
    clock.advance(minutes(1) + limits.LATE - seconds(1))
    duties.wake(pm.engine)
    assert len(pm.engine.db.read(lambda tx: limits.after(tx, None, 9))) == 2
    clock.advance(seconds(2))
    duties.wake(pm.engine)
    assert [use.name for _, _, use in pm.engine.db.read(lambda tx: limits.after(tx, None, 9))] == ["repo"], "a place has no end"


def test_who_shares_a_limits_name_shares_the_limit(pm: Pointsman, clock: FakeClock) -> None:
    class More(Machine, name="more"):
        open = State(initial=True)
        done = State(final=True, outcome="failed")
        go = Event(open >> done, limits=Limit("model", per=minutes(1), max=1))

    pm.create("calls", {}, by="ann")
    assert pm.claim("calls", by=support.OWNER) is not None
    with Pointsman(pm.url, [More], clock=clock) as more:
        task = more.create("more", {}, by="ann")
        with pytest.raises(Refused, match="limit_reached"):
            more.propose(task.id, "go", by="w")


def test_a_machine_without_limits_pays_nothing_for_them(url: str) -> None:
    asked = list[str]()
    with Pointsman(url, probe=asked.append) as plain:
        asked.clear()
        task = support.drafting(plain)
        plain.release(task.id, by=support.OWNER, epoch=task.epoch)
        support.claimed(plain)
        assert plain.claim("tasks", by=support.OTHER) is not None
    statements = {point.removeprefix("before:") for point in asked if point.startswith("before:")}
    assert not statements & {"lock_limit", "uses_of_limit", "add_use", "free_places", "find_lane", "add_lane"}
    assert "advance_task" in statements


def test_many_at_once_never_go_over(url: str) -> None:
    """By id and in line, from two handles as if from two processes."""
    with Pointsman(url, [Builds, Calls]) as one, Pointsman(url, [Builds, Calls]) as other:
        repos = [f"repo-{number}" for number in range(4)]
        made = [_build(one, repo) for repo in repos for _ in range(RACERS // 2)]
        calls = [one.create("calls", {}, by="ann") for _ in range(RACERS)]
        gate = Barrier(RACERS)

        def race(number: int) -> tuple[list[Task], list[Task]]:
            pm, mine = (one, other)[number % 2], f"racer-{number}"
            gate.wait(PATIENCE_S)
            builds = [pm.claim("builds", by=mine) for _ in range(2)]
            if number % 2:
                builds.append(_perhaps(pm, "builds", made[number], mine))
            called = [pm.claim("calls", by=mine), _perhaps(pm, "calls", calls[number], mine)]
            return [task for task in builds if task], [task for task in called if task]

        with ThreadPoolExecutor(RACERS) as pool:
            won = list(pool.map(race, range(RACERS)))
        builds, called = [task for one_won, _ in won for task in one_won], [task for _, one_won in won for task in one_won]
        assert sorted(str(task.fields["repo"]) for task in builds) == repos
        assert len(called) == 3
        assert one.verify().ok


def _perhaps(pm: Pointsman, machine: str, task: Task, by: str) -> Task | None:
    try:
        return pm.claim(machine, by=by, id=task.id)
    except Refused as refused:
        assert refused.code in ("limit_reached", "already_claimed"), refused
        return None


@pytest.mark.parametrize("at", ["before:lock_limit", "before:uses_of_limit"])
def test_who_waits_while_a_window_goes_by_misses_nothing_of_it(postgres: PostgresServer, at: str) -> None:
    """Whoever waits for its turn counts by a time read after that. One that stood still after it had read the time finds the
    uses of its own window, though it is over for all others."""
    url, pausing, clock = postgres.empty(), Pausing(at), FakeClock()
    with (
        Pointsman(url, [Calls], clock=clock, probe=pausing) as slow,
        Pointsman(url, [Calls], clock=clock) as quick,
        ThreadPoolExecutor(1) as pool,
    ):
        tasks = [quick.create("calls", {}, by="ann") for _ in range(4)]
        for task in tasks[:3]:
            assert quick.claim("calls", by="quick", id=task.id) is not None
        clock.advance(seconds(30))
        pausing.arm()
        waiting = pool.submit(slow.claim, "calls", by="slow", id=tasks[3].id)
        assert pausing.passed.wait(PATIENCE_S)
        clock.advance(seconds(40))
        assert not duties.wake(quick.engine)
        pausing.leave.set()
        if at == "before:uses_of_limit":
            with pytest.raises(Refused, match="limit_reached"):
                waiting.result(PATIENCE_S)
        else:
            taken = waiting.result(PATIENCE_S)
            assert taken is not None
            assert taken.lease is not None
            assert (taken.updated_at, taken.lease.expires_at) == (clock.now, clock.now + minutes(60))
        assert quick.verify().ok


def test_a_take_over_comes_behind_the_lapse_that_it_records(pm: Pointsman, clock: FakeClock) -> None:
    _build(pm, "one")
    _taken(pm)
    clock.advance(minutes(6))
    taken = _taken(pm, support.OTHER)
    times = [entry.at for entry in pm.history(taken.id)]
    assert [entry.kind for entry in pm.history(taken.id)] == ["create", "acquire", "lapse", "acquire"]
    assert times == sorted(set(times))


def test_what_counts_is_what_history_says_was_taken(pm: Pointsman, clock: FakeClock) -> None:
    """Recomputed from the entries: every place that an owner has, and every event of a window."""
    for repo in ("one", "two", "three"):
        _build(pm, repo)
    for _ in range(4):
        pm.create("calls", {}, by="ann")
    tasks = [_taken(pm) for _ in range(3)]
    pm.propose(tasks[0].id, "finish", by=support.OWNER, epoch=1)
    pm.release(tasks[1].id, by=support.OWNER, epoch=1)
    while pm.claim("calls", by=support.OWNER):
        pass
    kept = pm.engine.db.read(lambda tx: limits.after(tx, None, 99))
    owned = [task for task in pm.list(machine="builds", open=True) if task.owner]
    called = [entry for entry in pm.history(n=99) if entry.event == "take" and pm.get(entry.task).machine == "calls"]
    expected = [(task.id, "repo", f'"{task.fields["repo"]}"') for task in owned] + [(entry.task, "model", "") for entry in called]
    assert sorted((task, use.name, use.subject) for task, _, use in kept) == sorted(expected)


# ── the declaration ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_limit_stands_in_the_form_only_where_there_is_one() -> None:
    form = export(Builds.definition)
    events: list[dict[str, object]] = form["events"]  # pyright: ignore[reportAssignmentType]
    assert [event["name"] for event in events if "limits" in event] == ["take"]
    assert (export(restore(form)), restore(form).limits) == (form, Builds.definition.limits)


WRONG = {
    "no such field": (Limit("x", key=field.nothing, concurrent=1), "unknown_field"),
    "no number": (Limit("x", per=minutes(1), sum=field.repo, max=1), "bad_limit"),
    "nothing may pass": (Limit("x", per=minutes(1), max=0), "bad_limit"),
    "part of an event": (Limit("x", per=minutes(1), max=1.5), "bad_limit"),
    "no time": (Limit("x", per=0, max=1), "bad_time"),
    "no window": (Limit("x", max=1), "bad_limit"),
    "both": (Limit("x", per=minutes(1), max=1, concurrent=1), "bad_limit"),
    "no name": (Limit("", concurrent=1), "bad_name"),
    "a flag": (Limit("x", concurrent=True), "bad_limit"),
    "text for a field": (Limit("x", key="repo", concurrent=1), "bad_limit"),  # pyright: ignore[reportArgumentType]
    "no limit": ("x", "bad_limit"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_limit_that_cannot_be_meant_is_a_fault(wrong: str) -> None:
    written, code = WRONG[wrong]
    with pytest.raises(DefinitionError) as refused:

        class Wrong(Machine, name="wrong"):  # pyright: ignore[reportUnusedClass]
            repo: str
            open = State(initial=True)
            done = State(final=True, outcome="failed")
            take = Event(open >> open, acquires=True, limits=written)  # pyright: ignore[reportArgumentType]
            finish = Event(open >> done, by=owner)

    assert [fault.code for fault in refused.value.faults] == [code]


def test_an_event_that_makes_no_owner_cannot_count_owners() -> None:
    with pytest.raises(DefinitionError, match="counts owners") as refused:

        class Wrong(Machine, name="wrong"):  # pyright: ignore[reportUnusedClass]
            open = State(initial=True)
            done = State(final=True, outcome="failed")
            finish = Event(open >> done, limits=Limit("x", concurrent=1))

    assert len(refused.value.faults) == 1


def test_one_name_is_one_limit() -> None:
    with pytest.raises(DefinitionError, match="declared twice"):

        class Wrong(Machine, name="wrong"):  # pyright: ignore[reportUnusedClass]
            open = State(initial=True)
            done = State(final=True, outcome="failed")
            take = Event(open >> open, acquires=True, limits=Limit("x", concurrent=1))
            finish = Event(open >> done, limits=Limit("x", per=minutes(1), max=1))
