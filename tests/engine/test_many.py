"""Many tasks in one call: what single calls would write, by one unit; and what is refused leaves the rest."""

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
    State,
    Task,
    Verdict,
    check,
    field,
    hours,
    minutes,
    owner,
    seconds,
)
from pointsman.errors import Refusal
from pointsman.kernel.graph import MOST_AT_ONCE
from pointsman.store.snapshots import EVERY
from pointsman.testing import FakeClock, seeded

TRIES = 5
NOBODY = "01890000-0000-7000-8000-000000000000"


def is_right(text: str) -> Verdict:
    return Verdict(text == "right", "compared")


def is_short(text: str | None) -> Verdict:
    return Verdict(text is None or len(text) < 9, "counted")


def is_w(principal: Principal) -> bool:
    return principal.name == "w"


class Jobs(Machine, name="jobs"):
    shelf: str = "a"
    text: str = ""
    waiting = State(initial=True)
    work = State(lease=minutes(10))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    right = check(is_right)
    short = check(is_short, eager=True)
    take = Event(waiting >> work, acquires=True, when=is_w, limits=Limit("shelf", key=field.shelf, per=hours(1), max=5))
    note = Event(work >> work, by=owner, sets="text")
    judge = Event(work >> done, by=owner, sets="text", requires=right)
    tell = Event(work >> done, by=owner, sets="text", requires=short, otherwise=work)
    finish = Event(work >> done, by=owner)
    fail = Event((waiting | work) >> failed)


class Plain(Machine, name="plain"):
    waiting = State(initial=True)
    work = State(lease=minutes(10))
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True)
    again = Event(work >> work, by=owner)
    finish = Event(work >> done, by=owner)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Jobs, Plain], clock=clock) as opened:
        yield opened
        assert opened.verify().faults == ()
        assert opened.doctor() == []


def refused(call: Any, *args: Any, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value


def add(pm: Pointsman, count: int, machine: str = "plain", **terms: Any) -> list[Task]:
    return pm.create_many(machine, [{}] * count, by="ann", **terms)


def ids(tasks: list[Task]) -> list[str]:
    return [task.id for task in tasks]


def finish(pm: Pointsman, tasks: list[Task], event: str = "finish", **args: Any) -> list[Task | Refusal]:
    return pm.finish_many(event, [(task.id, task.epoch, args) for task in tasks], by="w")


def codes(answers: list[Task | Refusal]) -> list[str]:
    return [answer.code if isinstance(answer, Refusal) else answer.state for answer in answers]


# ── create ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_they_are_made_in_the_order_in_which_they_were_asked_for(pm: Pointsman) -> None:
    made = pm.create_many("jobs", [{"shelf": name} for name in "cab"], by="ann", priority=3, tags=["red"], needs=["gpu"])
    assert [task.fields["shelf"] for task in made] == ["c", "a", "b"]
    assert {(task.priority, task.tags, task.needs, task.version) for task in made} == {(3, ("red",), ("gpu",), 1)}
    assert [entry.seq for task in made for entry in pm.history(task.id)] == [1, 2, 3]
    assert made == [pm.get(task.id) for task in made]


def test_each_is_what_a_single_call_makes(url: str, clock: FakeClock) -> None:
    """But for ids and keys."""
    with Pointsman(url, [Plain], clock=clock, chance=seeded(1)) as pm:
        terms = {"priority": 2, "tags": ["b", "a"], "run_at": clock.now + 5}
        (one,) = pm.create_many("plain", [{}], by="ann", **terms)
        other = pm.create("plain", {}, by="ann", **terms)
        assert one.but(id="") == other.but(id="")


def test_none_is_made_when_one_does_not_fit(pm: Pointsman) -> None:
    no = refused(pm.create_many, "jobs", [{}, {"shelf": 5}, {"shop": "x"}], by="ann")
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", ["tasks[1].fields.shelf", "tasks[2].fields.shop"])
    assert pm.list() == []


@pytest.mark.parametrize(
    ("tasks", "terms", "paths"),
    [
        (5, {}, ["tasks"]),
        ([], {}, ["tasks"]),
        ([{}] * (MOST_AT_ONCE + 1), {}, ["tasks"]),
        ([{}, 5, {"shelf": "a\0"}], {}, ["tasks[1].fields", "tasks[2].fields.shelf"]),
        ([{}], {"priority": True, "tags": [" "], "run_at": "now"}, ["priority", "tags[0]", "run_at"]),
        ([{"shelf": "\ud800"}, {"shelf": float("nan")}], {}, ["tasks[0].fields.shelf", "tasks[1].fields.shelf"]),
    ],
)
def test_every_fault_of_what_is_to_be_made_is_named(pm: Pointsman, tasks: Any, terms: dict[str, Any], paths: list[str]) -> None:
    no = refused(pm.create_many, "jobs", tasks, by="ann", **terms)
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", paths)
    assert pm.list() == []


def test_the_same_key_answers_the_same_tasks(pm: Pointsman) -> None:
    made = add(pm, 3, idempotency_key="k")
    again = add(pm, 3, idempotency_key="k")
    assert (ids(again), [task.replayed for task in again]) == (ids(made), [True] * 3)
    assert refused(add, pm, 4, idempotency_key="k").code == "idempotency_conflict"
    assert refused(add, pm, 3, tags=["red"], idempotency_key="k").code == "idempotency_conflict"


def test_a_machine_that_is_not_served_is_named(pm: Pointsman) -> None:
    assert refused(add, pm, 2, machine="nonsense").code == "unknown_machine"
    assert refused(pm.claim_many, "nonsense", 2, by="w").code == "unknown_machine"


# ── claim ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_as_many_are_taken_as_there_are(pm: Pointsman) -> None:
    made = add(pm, 5)
    first, rest = pm.claim_many("plain", 3, by="w"), pm.claim_many("plain", 3, by="w")
    assert ids(first) + ids(rest) == ids(made)
    assert {(task.owner, task.epoch, task.version, task.state) for task in first} == {("w", 1, 2, "work")}
    assert first == [pm.get(task.id) for task in first]
    assert pm.claim_many("plain", 3, by="w") == []


def test_each_has_an_entry_of_its_own(pm: Pointsman) -> None:
    add(pm, 3)
    for task in pm.claim_many("plain", 3, by="w", session="s"):
        entry = pm.history(task.id)[-1]
        assert (entry.event, entry.by, entry.session, entry.epoch) == ("take", "w", "s", 1)
    assert len({entry.hash for entry in pm.history()}) == 6


def test_lanes_are_merged_in_the_order_of_places(pm: Pointsman) -> None:
    made = [add(pm, 1, tags=[f"t{number % 3}"], priority=-number)[0] for number in range(9)]
    assert ids(pm.claim_many("plain", 4, by="w")) == ids(made[:4])
    assert ids(pm.claim_many("plain", 9, by="w", tags=["t1"])) == ids([made[4], made[7]])
    assert ids(pm.claim_many("plain", 9, by="w")) == ids([made[5], made[6], made[8]])


def test_a_long_lane_beside_short_ones_is_read_to_its_end(pm: Pointsman) -> None:
    long = add(pm, 9)
    short = [task for name in "ab" for task in add(pm, 1, tags=[name], priority=-99)]
    assert ids(pm.claim_many("plain", 20, by="w")) == ids(long) + ids(short)


def test_what_lapsed_is_taken_over_with_the_rest(pm: Pointsman, clock: FakeClock) -> None:
    add(pm, 2)
    lapsed = pm.claim_many("plain", 2, by="v")
    clock.advance(minutes(11))
    add(pm, 1)
    taken = pm.claim_many("plain", 9, by="w")
    assert [(task.owner, task.epoch) for task in taken] == [("w", 2), ("w", 2), ("w", 1)]
    assert [entry.kind for entry in pm.history(lapsed[0].id)] == ["create", "acquire", "lapse", "acquire"]


def test_what_was_lost_too_often_is_parked_and_the_rest_is_taken(pm: Pointsman, clock: FakeClock) -> None:
    (bad,) = add(pm, 1, priority=9)
    while pm.claim("plain", by="v") is not None:
        clock.advance(minutes(11))
    good = add(pm, 2)
    assert ids(pm.claim_many("plain", 3, by="w")) == ids(good)
    assert pm.get(bad.id).parked is not None


def test_time_makes_tasks_claimable_for_many_at_once_too(pm: Pointsman, clock: FakeClock) -> None:
    made = add(pm, 3, run_at=clock.now + seconds(5))
    assert pm.claim_many("plain", 3, by="w") == []
    clock.advance(seconds(5))
    assert ids(pm.claim_many("plain", 3, by="w")) == ids(made)


def test_a_limit_ends_what_is_taken_of_its_lane(pm: Pointsman, clock: FakeClock) -> None:
    """Within one call too: the sixth of a shelf is judged by what the five before it took."""
    pm.create_many("jobs", [{"shelf": name} for name in "ab" * 8], by="ann")
    taken = pm.claim_many("jobs", 14, by="w")
    assert sorted(str(task.fields["shelf"]) for task in taken) == ["a"] * 5 + ["b"] * 5
    assert pm.claim_many("jobs", 14, by="w") == []
    clock.advance(hours(1) + seconds(1))
    again = pm.claim_many("jobs", 14, by="w")
    assert sorted(str(task.fields["shelf"]) for task in again) == ["a"] * 5 + ["b"] * 5


def test_a_guard_that_refuses_everything_is_told(pm: Pointsman) -> None:
    add(pm, 2, machine="jobs")
    assert refused(pm.claim_many, "jobs", 2, by="v").code == "guard_failed"
    assert [task.version for task in pm.list()] == [1, 1]


def test_what_is_held_is_passed_over_and_let_go_at_its_pace(pm: Pointsman, clock: FakeClock) -> None:
    held, free = add(pm, 3, tags=["gpu"]), add(pm, 2)
    hold = pm.hold({"machine": "plain", "tag": "gpu"}, by="olga", reason="the provider is down", release_per_s=1)
    assert ids(pm.claim_many("plain", 5, by="w")) == ids(free)
    assert pm.claim_many("plain", 5, by="w") == []
    clock.advance(seconds(1))
    pm.lift(hold.id, by="olga")
    for task in held:
        assert ids(pm.claim_many("plain", 5, by="w")) == [task.id]
        clock.advance(seconds(1))


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"n": 0}, "n"),
        ({"n": MOST_AT_ONCE + 1}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.0}, "n"),
        ({"tags": "red"}, "tags"),
        ({"capabilities": [" "]}, "capabilities[0]"),
        ({"states": "waiting"}, "states"),
        ({"lease_s": 0.1}, "lease_s"),
        ({"session": ""}, "session"),
        ({"wait_s": "5"}, "wait_s"),
    ],
)
def test_a_claim_that_does_not_fit_is_refused(pm: Pointsman, said: dict[str, Any], path: str) -> None:
    add(pm, 1)
    no = refused(pm.claim_many, "plain", by="w", **{"n": 2, **said})
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", [path])
    assert pm.list()[0].version == 1


# ── finish ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def taken(pm: Pointsman, count: int, machine: str = "jobs") -> list[Task]:
    add(pm, count, machine=machine)
    return pm.claim_many(machine, count, by="w")


def test_each_is_answered_in_the_order_in_which_it_was_asked_for(pm: Pointsman) -> None:
    tasks = taken(pm, 4)[::-1]
    answers = finish(pm, tasks)
    assert answers == [pm.get(task.id) for task in tasks]
    assert codes(answers) == ["done"] * 4


def test_what_is_refused_leaves_the_rest(pm: Pointsman) -> None:
    one, two, three, four = taken(pm, 4)
    pm.propose(two.id, "fail", by="ann")
    parts = [(one.id, one.epoch, {}), (two.id, two.epoch, {}), (NOBODY, 1, {}), (three.id, 7, {}), (four.id, None, {})]
    answers = pm.finish_many("finish", parts, by="w")
    assert codes(answers) == ["done", "wrong_state", "unknown_task", "lease_lost", "invalid"]
    assert [pm.get(task.id).version for task in (one, two, three, four)] == [3, 3, 2, 2]
    assert sorted(item.code for item in pm.refusals()) == ["invalid", "lease_lost", "unknown_task", "wrong_state"]


def test_arguments_that_do_not_fit_are_refused_for_their_task_alone(pm: Pointsman) -> None:
    one, two, three = taken(pm, 3)
    parts = [(one.id, 1, {"text": "x"}), (two.id, 1, {"text": 5}), (three.id, 1, {"text": "a\0"})]
    answers = pm.finish_many("note", parts, by="w")
    assert codes(answers) == ["work", "invalid", "invalid"]
    assert pm.get(one.id).fields["text"] == "x"


def test_an_event_that_nobody_declared_is_refused_for_each(pm: Pointsman) -> None:
    assert codes(finish(pm, taken(pm, 2), "nonsense")) == ["unknown_event"] * 2


def test_a_check_is_not_run_for_many(pm: Pointsman) -> None:
    tasks = taken(pm, 2)
    answers = finish(pm, tasks, "judge", text="right")
    assert codes(answers) == ["evidence_pending"] * 2
    assert isinstance(answers[0], Refusal)
    assert "propose the event by name" in answers[0].detail
    assert [pm.get(task.id).version for task in tasks] == [2, 2]
    assert pm.propose(tasks[0].id, "judge", {"text": "right"}, by="w", epoch=1).state == "done"


def test_an_eager_check_decides_and_its_failing_is_recorded(pm: Pointsman) -> None:
    one, two = taken(pm, 2)
    good, bad = pm.finish_many("tell", [(one.id, 1, {"text": "ok"}), (two.id, 1, {"text": "x" * 20})], by="w")
    assert isinstance(good, Task)
    assert good.state == "done"
    assert isinstance(bad, Refusal)
    assert (bad.code, bad.recorded) == ("evidence_failed", True)
    assert (pm.get(two.id).version, pm.get(two.id).state, pm.get(two.id).fields["text"]) == (3, "work", "x" * 20)


def test_many_lapsed_tasks_are_acquired_by_their_ids(pm: Pointsman, clock: FakeClock) -> None:
    tasks = taken(pm, 2, "plain")
    clock.advance(minutes(11))
    answers = pm.finish_many("take", [(task.id, None, {}) for task in tasks], by="v")
    assert [(task.owner, task.epoch) for task in answers if isinstance(task, Task)] == [("v", 2)] * 2


def test_one_that_was_lost_too_often_is_parked_beside_the_rest(pm: Pointsman, clock: FakeClock) -> None:
    (bad,) = add(pm, 1)
    for _ in range(TRIES):
        assert pm.claim("plain", by="v", id=bad.id) is not None
        clock.advance(minutes(11))
    (good,) = add(pm, 1)
    worse, better = pm.finish_many("take", [(bad.id, None, {}), (good.id, None, {})], by="w")
    assert isinstance(worse, Refusal)
    assert (worse.code, worse.recorded, pm.get(bad.id).parked is not None) == ("parked", True, True)
    assert isinstance(better, Task)
    assert better.owner == "w"


def test_what_waits_for_them_is_told(pm: Pointsman) -> None:
    tasks = taken(pm, 2)
    waits = pm.create("jobs", {}, by="ann", blocked_by=[{"task": task.id} for task in tasks])
    assert refused(pm.claim, "jobs", by="w", id=waits.id).code == "blocked"
    finish(pm, tasks)
    assert pm.claim("jobs", by="w", id=waits.id).owner == "w"


def test_a_limit_of_an_event_counts_within_one_call(pm: Pointsman) -> None:
    tasks = add(pm, 7, machine="jobs")
    answers = pm.finish_many("take", [(task.id, None, {}) for task in tasks], by="w")
    assert sorted(codes(answers)) == ["limit_reached"] * 2 + ["work"] * 5


def test_a_snapshot_is_kept_when_it_is_due(pm: Pointsman) -> None:
    tasks = taken(pm, 2, "plain")
    for _ in range(EVERY):
        finish(pm, tasks, "again")
    versions = pm.engine.db.read(lambda tx: tx("snapshots_of", task=1))
    assert [version for version, _ in versions] == [EVERY]
    assert pm.get(tasks[0].id, version=EVERY).version == EVERY


@pytest.mark.parametrize(
    ("parts", "paths"),
    [
        (5, ["tasks"]),
        ([], ["tasks"]),
        ([(NOBODY, 1, {})] * (MOST_AT_ONCE + 1), ["tasks"]),
        ([5, (NOBODY, 1)], ["tasks[0]", "tasks[1]"]),
        (
            [("no id", True, []), (NOBODY, 1.0, None), (NOBODY, 2**63, {})],
            ["tasks[0][0]", "tasks[0][1]", "tasks[0][2]", "tasks[1][1]", "tasks[1][2]", "tasks[2][1]"],
        ),
        ([(NOBODY, 1, {}), (NOBODY.upper(), 1, {})], ["tasks[1][0]"]),
    ],
)
def test_a_list_that_does_not_fit_is_refused_whole(pm: Pointsman, parts: Any, paths: list[str]) -> None:
    tasks = taken(pm, 1)
    no = refused(pm.finish_many, "finish", parts, by="w")
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", paths)
    assert pm.get(tasks[0].id).version == 2


def test_an_event_that_is_no_text_is_refused(pm: Pointsman) -> None:
    assert refused(pm.finish_many, 5, [(NOBODY, 1, {})], by="w").code == "invalid"


# ── an unknown COMMIT ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_second_run_finds_what_the_first_did(pm: Pointsman) -> None:
    """As when the answer to COMMIT was lost: the same unit is run again, and looks for its parts first."""
    add(pm, 5)
    first = _twice(pm, Pointsman.claim_many.steps(pm, "plain", 3, by="w"))
    assert [done.task.version for done in first[0]] == [2, 2, 2]
    assert [done.task for done in first[0]] == [done.task for done in first[1]]
    parts = [(done.task.id, done.task.epoch if number else 7, {}) for number, done in enumerate(first[0])]
    second = _twice(pm, Pointsman.finish_many.steps(pm, "finish", parts, by="w"))
    assert second[0][1:] == second[1][1:]
    assert [second[0][0].code, second[1][0].code] == ["lease_lost"] * 2
    assert len(pm.history()) == 5 + 3 + 2


def _twice(pm: Pointsman, steps: Any) -> tuple[Any, Any]:
    """What the unit of a call answers, and what it answers when it is run again."""
    unit: Any = None

    def kept(first: Any) -> Any:
        nonlocal unit
        unit = first
        return pm.engine.db.run(first)

    answer = kept(next(steps).unit)
    runs = unit.__closure__[0].cell_contents if unit.__closure__ else unit
    return answer, pm.engine.db.run(lambda tx: runs(tx, True))
