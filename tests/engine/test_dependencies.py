"""Tasks that wait for others: not claimed before, and settled, cancelled or left waiting by how those end."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from engine.graph_world import OLGA, OWNER, Parts, fail, finish, make, park, states, take
from pointsman import Pointsman, Refused, Task, Tasks
from pointsman.engine import ends
from pointsman.kernel.graph import MOST_UPSTREAMS, Upstream, Wait, waits
from pointsman.kernel.task import Joining
from pointsman.testing import FakeClock

NOBODY = "01890000-0000-7000-8000-000000000000"


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Parts, Tasks], clock=FakeClock()) as opened:
        yield opened
        assert opened.verify().faults == ()
        assert opened.doctor() == []


def _refused(pm: Pointsman, task: Task) -> Refused:
    with pytest.raises(Refused) as refused:
        take(pm, task)
    return refused.value


def test_a_task_is_claimed_only_when_what_it_waits_for_is_done(pm: Pointsman) -> None:
    one, other = make(pm, "one"), make(pm, "other")
    last = make(pm, "last", one, other)
    assert [item.task for item in last.blocked_by] == [one.id, other.id]
    finish(pm, one)
    no = _refused(pm, last)
    assert (no.code, no.failed) == ("blocked", [{"task": other.id, "state": "open", "on_failure": "block", "satisfiable": True}])
    assert other.id in no.detail
    finish(pm, other)
    assert pm.get(last.id).version == 1
    taken = pm.claim("parts", by=OWNER)
    assert taken is not None
    assert taken.id == last.id


def test_the_queue_passes_over_what_waits(pm: Pointsman) -> None:
    first = make(pm, "first")
    make(pm, "waits", first)
    assert take(pm, first).id == first.id
    assert pm.claim("parts", by=OWNER) is None


def test_only_acquiring_is_blocked(pm: Pointsman) -> None:
    first = make(pm)
    second = make(pm, "", first)
    with pytest.raises(Refused) as refused:
        pm.propose(second.id, "take", by=OWNER, dry_run=True)
    assert refused.value.code == "blocked"
    assert fail(pm, second).state == "failed"
    finish(pm, first)


@pytest.mark.parametrize("end", [fail, lambda pm, task: pm.cancel(task.id, by=OLGA, reason="no longer wanted").task, park])
def test_each_fate(pm: Pointsman, end: object) -> None:
    first = make(pm, "first")
    stays, falls, goes = (make(pm, fate, (first, fate)) for fate in ("block", "cancel", "continue"))
    under = make(pm, "under", (falls, "cancel"))
    ended = end(pm, first)  # pyright: ignore[reportCallIssue, reportUnknownVariableType]
    assert states(pm, stays, falls, goes, under) == ["open", "dropped", "open", "dropped"]
    assert take(pm, goes).state == "work"
    no = _refused(pm, stays)
    assert (no.code, no.failed[0]["satisfiable"]) == ("blocked", ended.parked is not None)  # pyright: ignore[reportUnknownMemberType]
    entry = pm.history(falls.id)[-1]
    assert (entry.kind, entry.by, entry.reason) == (
        "cancel",
        "pointsman",
        f"task {first.id}, which it waits for, is {pm.get(first.id).state}",
    )
    assert f"task {falls.id}" in str(pm.history(under.id)[-1].reason)


def test_a_parked_upstream_that_is_done_after_all(pm: Pointsman) -> None:
    first = make(pm)
    stays, goes = make(pm, "", first), make(pm, "", (first, "continue"))
    park(pm, first)
    pm.unpark(first.id, by=OLGA, reason="mended")
    assert take(pm, goes).state == "work"
    assert _refused(pm, stays).code == "blocked"
    finish(pm, first)
    assert take(pm, stays).state == "work"


def test_what_ended_before_counts_as_when_it_ends(pm: Pointsman) -> None:
    done, failed, parked = make(pm), make(pm), make(pm)
    finish(pm, done)
    fail(pm, failed)
    park(pm, parked)
    free, goes = make(pm, "", done), make(pm, "", (failed, "continue"), (parked, "continue"))
    falls, also = make(pm, "", (failed, "cancel")), make(pm, "", (parked, "cancel"))
    stays = make(pm, "", failed)
    assert states(pm, free, falls, also, stays) == ["open", "dropped", "dropped", "open"]
    assert [take(pm, task).state for task in (free, goes)] == ["work", "work"]
    assert not _refused(pm, stays).failed[0]["satisfiable"]


def test_a_dependent_that_is_over_already_is_left_alone(pm: Pointsman) -> None:
    first = make(pm)
    second = make(pm, "", (first, "cancel"))
    fail(pm, second)
    fail(pm, first)
    assert pm.get(second.id).version == 2


def test_many_dependents_are_told_in_bounded_units(pm: Pointsman) -> None:
    first = make(pm)
    many = [make(pm, str(n), (first, "cancel" if n % 2 else "block")) for n in range(ends.AT_ONCE + 10)]
    finish(pm, first)
    assert all(pm.claim("parts", by=OWNER) for _ in many)
    assert pm.claim("parts", by=OWNER) is None
    failing = make(pm)
    many = [make(pm, str(n), (failing, "cancel")) for n in range(ends.AT_ONCE + 10)]
    fail(pm, failing)
    assert set(states(pm, *many)) == {"dropped"}


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (5, "blocked_by"),
        ([5], "blocked_by[0]"),
        ([{"task": "no"}], "blocked_by[0].task"),
        ([{}], "blocked_by[0].task"),
        ([{"task": "#a"}], "blocked_by[0].task"),
        ([{"task": NOBODY, "on_failure": "explode"}], "blocked_by[0].on_failure"),
        ([{"task": NOBODY, "on_failure": ["block"]}], "blocked_by[0].on_failure"),
        ([{"task": NOBODY, "why": "x"}], "blocked_by[0].why"),
        ([{"task": NOBODY}, {"task": NOBODY.upper()}], "blocked_by[1].task"),
        ([{"task": NOBODY}] * (MOST_UPSTREAMS + 1), "blocked_by"),
    ],
)
def test_what_does_not_fit_is_named(pm: Pointsman, given: object, path: str) -> None:
    with pytest.raises(Refused) as refused:
        pm.create("parts", {}, by="ann", blocked_by=given)  # pyright: ignore[reportArgumentType]
    assert (refused.value.code, [item["path"] for item in refused.value.failed]) == ("invalid", [path])


def test_an_upstream_that_is_not_there(pm: Pointsman) -> None:
    there = make(pm)
    with pytest.raises(Refused) as refused:
        pm.create("parts", {}, by="ann", blocked_by=[{"task": there.id}, {"task": NOBODY}])
    assert (refused.value.code, refused.value.failed[0]["path"]) == ("unknown_task", "blocked_by[1].task")
    assert [task.id for task in pm.list()] == [there.id]


def test_what_a_task_waits_for_in_readers_words(pm: Pointsman) -> None:
    first = make(pm)
    second = make(pm, "", first)
    assert waits(first, ()) is None
    upstream = Upstream(first.id, "block", "open", "open")
    assert waits(second, [upstream]) == Wait("dependency", (first.id,), second.since, satisfiable=True)
    assert waits(second, [replace(upstream, state="failed", standing="failed")]) == Wait("dependency", (first.id,), second.since, False)
    waiting = second.but(joining=Joining("all"))
    assert waits(waiting, (), [first.id]) == Wait("children", (first.id,), second.updated_at, satisfiable=True)


def test_upstreams_may_be_of_another_machine(pm: Pointsman) -> None:
    other = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
    second = make(pm, "", (other, "continue"))
    assert _refused(pm, second).failed[0]["state"] == "queued"
    pm.cancel(other.id, by=OLGA, reason="not needed")
    assert take(pm, second).state == "work"


# ── the same once ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_key_that_is_known_answers_the_task_that_is_there(pm: Pointsman) -> None:
    first = make(pm, "a", dedupe_key="build/7", priority=3)
    take(pm, first)
    again = make(pm, "a", dedupe_key="build/7", priority=3)
    assert (again.id, again.deduped, again.state, first.deduped) == (first.id, True, "work", False)
    for other in ({"name": "b"}, {"name": "a", "priority": 4}):
        with pytest.raises(Refused) as refused:
            make(pm, str(other["name"]), dedupe_key="build/7", priority=int(other.get("priority", 3)))  # pyright: ignore[reportArgumentType]
        assert (refused.value.code, refused.value.task) == ("dedupe_conflict", first.id)
    on_tasks = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", dedupe_key="build/7")
    assert on_tasks.id != first.id
    assert len(pm.list()) == 2


@pytest.mark.parametrize("key", ["", " ", "a\0b", "é", "x" * 129, 5])
def test_a_key_is_a_name(pm: Pointsman, key: object) -> None:
    with pytest.raises(Refused) as refused:
        make(pm, dedupe_key=key)
    assert (refused.value.code, refused.value.failed[0]["path"]) == ("invalid", "dedupe_key")
