"""Batches: all or none, waiting for one another by ref; and a parent that waits for its children."""

from collections.abc import Iterator
from typing import Any

import pytest

from engine.graph_world import OLGA, OTHER, OWNER, Parts, batch, fail, finish, make, parent, states, take
from pointsman import Event, Machine, Pointsman, Refused, State, minutes, seconds
from pointsman.kernel.graph import MOST_AT_ONCE, sequence
from pointsman.kernel.task import Children, Joining, Task
from pointsman.testing import FakeClock

NOBODY = "01890000-0000-7000-8000-000000000000"


class Plain(Machine, name="plain"):
    """Nobody can own a task of it."""

    open = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    finish = Event(open >> done)
    fail = Event(open >> failed)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Parts, Plain], clock=clock) as opened:
        yield opened
        assert opened.verify().faults == ()
        assert opened.doctor() == []


def _refused(call: Any, *args: Any, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        call(*args, **kwargs)
    return refused.value


def test_a_batch_is_answered_in_its_own_order(pm: Pointsman) -> None:
    last, first, middle = batch(
        pm,
        None,
        {"ref": "last", "blocked_by": [{"task": "#middle"}]},
        {"ref": "first", "fields": {"name": "first"}, "priority": 2},
        {"ref": "middle", "blocked_by": [{"task": "#first", "on_failure": "cancel"}]},
    )
    assert (first.fields["name"], first.priority) == ("first", 2)
    assert [last.blocked_by[0].task, middle.blocked_by[0].task] == [middle.id, first.id]
    assert _refused(take, pm, last).code == "blocked"
    fail(pm, first)
    assert states(pm, middle, last) == ["dropped", "open"]


def test_a_batch_may_wait_for_tasks_that_were_there(pm: Pointsman) -> None:
    done, open_one = make(pm), make(pm)
    finish(pm, done)
    free, waits = batch(pm, None, {"blocked_by": [{"task": done.id}]}, {"blocked_by": [{"task": open_one.id}]})
    assert take(pm, free).state == "work"
    assert _refused(take, pm, waits).code == "blocked"


@pytest.mark.parametrize(
    ("tasks", "faults"),
    [
        (5, ["tasks"]),
        ([], ["tasks"]),
        ([{"fields": {}}] * (MOST_AT_ONCE + 1), ["tasks"]),
        ([5, {}], ["tasks[0]", "tasks[1].fields"]),
        ([{"fields": {}}, {"fields": {"name": 5, "title": "t"}}], ["tasks[1].fields.title", "tasks[1].fields.name"]),
        ([{"fields": {"name": "a\0"}, "state": "done"}], ["tasks[0].state", "tasks[0].fields.name"]),
        ([{"fields": {}, "priority": True, "dedupe_key": " ", "ref": 5}], ["tasks[0].priority", "tasks[0].dedupe_key", "tasks[0].ref"]),
        ([{"fields": {}, "machine": 5}], ["tasks[0].machine"]),
        ([{"fields": {}, "ref": "a"}, {"fields": {}, "ref": "a"}], ["tasks[1].ref"]),
        ([{"fields": {}, "blocked_by": [{"task": "#b"}]}], ["tasks[0].blocked_by[0].task"]),
        ([{"fields": {}, "blocked_by": [{"task": "# "}]}], ["tasks[0].blocked_by[0].task"]),
    ],
)
def test_every_fault_of_a_batch_is_named(pm: Pointsman, tasks: Any, faults: list[str]) -> None:
    no = _refused(pm.create_batch, tasks, by=OWNER, machine="parts")
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", faults)
    assert pm.list() == []


def test_a_cycle_is_named(pm: Pointsman) -> None:
    ring = {"a": "b", "b": "c", "c": "a"}
    items = [{"ref": ref, "blocked_by": [{"task": f"#{other}"}]} for ref, other in ring.items()]
    no = _refused(batch, pm, None, {"ref": "x", "blocked_by": [{"task": "#a"}]}, *items, {"ref": "free"})
    assert (no.code, no.failed[0]["path"]) == ("invalid", "tasks")
    assert "#a → #b → #c → #a" in no.detail
    assert sequence({"b": ["a"], "a": []}) == (["a", "b"], [])


def test_one_fault_and_none_is_made(pm: Pointsman) -> None:
    no = _refused(
        batch,
        pm,
        None,
        {},
        {"blocked_by": [{"task": NOBODY}]},
        {"blocked_by": [{"task": "#a"}, {"task": NOBODY}], "ref": "b"},
        {"ref": "a"},
    )
    assert (no.code, [item["path"] for item in no.failed]) == (
        "unknown_task",
        ["tasks[1].blocked_by[0].task", "tasks[2].blocked_by[0].task"],
    )
    assert _refused(batch, pm, None, {}, {"machine": "nonsense"}).code == "unknown_machine"
    assert _refused(pm.create_batch, [{"fields": {}}], by=OWNER).failed[0]["path"] == "tasks[0].machine"
    assert pm.list() == []


def test_one_key_stands_for_the_whole_batch(pm: Pointsman) -> None:
    items = [{"ref": "a", "blocked_by": [{"task": "#b"}]}, {"ref": "b"}, {"ref": "c"}]
    first = batch(pm, None, *items, idempotency_key="once")
    finish(pm, first[1])
    again = batch(pm, None, *items, idempotency_key="once")
    assert again == first
    assert [task.replayed for task in again] == [True] * 3
    assert _refused(batch, pm, None, *items[1:], idempotency_key="once").code == "idempotency_conflict"
    assert _refused(pm.create, "parts", {}, by=OWNER, idempotency_key="once").code == "idempotency_conflict"
    assert len(pm.list()) == 3


def test_what_is_known_is_not_made_again(pm: Pointsman) -> None:
    there = make(pm, "a", dedupe_key="a")
    finish(pm, there)
    twice = {"fields": {"name": "b"}, "dedupe_key": "b"}
    known, one, other, waits = batch(
        pm, None, {"ref": "a", "fields": {"name": "a"}, "dedupe_key": "a"}, twice, twice, {"blocked_by": [{"task": "#a"}]}
    )
    assert (known.id, known.state, known.deduped) == (there.id, "done", True)
    assert one.id == other.id
    assert take(pm, waits).state == "work"
    no = _refused(batch, pm, None, twice, {"fields": {"name": "c"}, "dedupe_key": "b"})
    assert (no.code, no.failed[0]["path"]) == ("dedupe_conflict", "tasks[1].dedupe_key")
    no = _refused(batch, pm, None, {"dedupe_key": "n", "fields": {"name": "1"}}, {"dedupe_key": "n", "fields": {"name": "2"}})
    assert (no.code, no.failed[0]["path"]) == ("dedupe_conflict", "tasks[1].dedupe_key")


# ── parents ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_owner_of_an_open_task_gives_it_children(pm: Pointsman, clock: FakeClock) -> None:
    above = parent(pm)
    clock.advance(minutes(9))
    child = pm.create("parts", {}, by=OWNER, parent=above.id, epoch=above.epoch)
    seen = pm.get(above.id)
    assert (child.parent, seen.children, seen.version) == (above.id, Children(open=1), above.version)
    assert seen.lease is not None
    assert seen.lease.expires_at == clock.now + minutes(10)
    assert _refused(pm.create, "parts", {}, by=OTHER, parent=above.id, epoch=above.epoch).code == "not_owner"
    assert _refused(pm.create, "parts", {}, by=OWNER, parent=above.id, epoch=above.epoch + 1).code == "lease_lost"
    assert _refused(pm.create, "parts", {}, by=OWNER, parent=above.id).failed[0]["path"] == "epoch"
    assert _refused(pm.create, "parts", {}, by=OWNER, parent=NOBODY, epoch=1).failed[0]["path"] == "parent"
    assert _refused(pm.create, "parts", {}, by=OWNER, parent="x", epoch=1).failed[0]["path"] == "parent"
    unowned = make(pm)
    assert _refused(pm.create, "parts", {}, by=OWNER, parent=unowned.id, epoch=0).code == "not_owner"
    pm.propose(above.id, "finish", by=OWNER, epoch=above.epoch)
    assert _refused(pm.create, "parts", {}, by=OWNER, parent=above.id, epoch=above.epoch).code == "wrong_state"


def test_children_are_limited_in_number_and_depth(pm: Pointsman) -> None:
    above = parent(pm)
    below = batch(pm, above, {}, {}, {})
    no = _refused(batch, pm, above, {}, {})
    assert (no.code, no.refusal.extra) == ("limit_reached", {"limit": {"max_children": 4}})
    child = take(pm, below[0])
    grandchild = take(pm, batch(pm, child, {})[0])
    no = _refused(batch, pm, grandchild, {})
    assert (no.code, no.refusal.extra) == ("limit_reached", {"limit": {"max_depth": 2}})


@pytest.mark.parametrize(
    ("join", "ends", "ended"),
    [
        ("all", [finish, finish, finish], {"done": 3, "failed": 0, "cancelled": 0}),
        ("any", [fail, finish], {"done": 1, "failed": 1, "cancelled": 0}),
        (2, [finish, fail, finish], {"done": 2, "failed": 1, "cancelled": 0}),
        ("all", [finish, fail], {"done": 1, "failed": 1, "cancelled": 0}),
        ("any", [fail, fail, fail], {"done": 0, "failed": 3, "cancelled": 0}),
        (2, [fail, lambda pm, task: pm.cancel(task.id, by=OLGA, reason="no")], {"done": 0, "failed": 1, "cancelled": 1}),
    ],
)
def test_a_parent_waits_without_a_lease(pm: Pointsman, clock: FakeClock, join: Any, ends: list[Any], ended: dict[str, int]) -> None:
    above = parent(pm)
    below = batch(pm, above, {}, {}, {}, join=join)
    waiting = pm.get(above.id)
    assert (waiting.owner, waiting.lease, waiting.joining) == (OWNER, None, Joining(join))
    clock.advance(minutes(60))
    assert _refused(take, pm, above, OTHER).code == "already_claimed"
    assert _refused(pm.renew, above.id, by=OWNER, epoch=above.epoch).code == "wrong_state"
    for end, child in zip(ends, below, strict=False):
        assert pm.get(above.id).joining is not None
        end(pm, child)
    back = pm.get(above.id)
    assert (back.owner, back.epoch, back.state, back.joining) == (OWNER, above.epoch, "work", None)
    assert back.lease is not None
    assert back.lease.expires_at >= clock.now + minutes(10)
    entry = pm.history(above.id)[-1]
    assert (entry.kind, entry.by) == ("join", "pointsman")
    assert f"{ended['done']} done, {ended['failed']} failed, {ended['cancelled']} cancelled" in str(entry.reason)
    assert pm.propose(above.id, "finish", by=OWNER, epoch=above.epoch).state == "done"


def test_children_that_had_ended_before_do_not_count(pm: Pointsman) -> None:
    above = parent(pm)
    fail(pm, batch(pm, above, {})[0])
    (child,) = batch(pm, above, {}, join="all")
    assert pm.get(above.id).joining == Joining("all", failed=1)
    finish(pm, child)
    assert pm.get(above.id).joining is None


def test_a_rule_that_is_met_already_is_not_waited_for(pm: Pointsman) -> None:
    above = parent(pm)
    (known,) = batch(pm, above, {"dedupe_key": "k"})
    finish(pm, known)
    batch(pm, above, {"dedupe_key": "k"}, join="all")
    assert pm.get(above.id).joining is None
    (open_one,) = batch(pm, above, {"dedupe_key": "l"})
    key = {"idempotency_key": "only-waits"}
    (again,) = batch(pm, above, {"dedupe_key": "l"}, join="all", **key)
    assert (again.id, pm.get(above.id).joining) == (open_one.id, Joining("all", done=1))
    assert [task.id for task in batch(pm, above, {"dedupe_key": "l"}, join="all", **key)] == [open_one.id]


def test_more_children_may_come_while_a_parent_waits(pm: Pointsman) -> None:
    above = parent(pm)
    (first,) = batch(pm, above, {}, join="all")
    second = pm.create("parts", {}, by=OWNER, parent=above.id, epoch=above.epoch)
    assert pm.get(above.id).lease is None
    finish(pm, first)
    assert pm.get(above.id).joining is not None
    finish(pm, second)
    assert pm.get(above.id).joining is None


def test_an_owner_who_goes_on_waits_no_longer(pm: Pointsman) -> None:
    above = parent(pm)
    (child,) = batch(pm, above, {}, join="all")
    seen = pm.propose(above.id, "note", by=OTHER)
    assert (seen.joining, seen.lease) == (Joining("all"), None)
    seen = pm.propose(above.id, "note", by=OWNER, epoch=above.epoch)
    assert (seen.joining, seen.lease is not None) == (None, True)
    finish(pm, child)
    assert pm.history(above.id)[-1].event == "note"
    (child,) = batch(pm, above, {}, join="all")
    pm.release(above.id, by=OWNER, epoch=above.epoch)
    assert pm.get(above.id).parked is not None
    finish(pm, child)
    assert pm.get(above.id).owner is None


def test_a_parent_that_nobody_can_own(pm: Pointsman) -> None:
    above = pm.create("plain", {}, by="ann")
    (child,) = pm.create_batch([{"fields": {}}], by="ann", machine="plain", parent=above.id, join="all")
    assert pm.get(above.id).joining is not None
    pm.propose(child.id, "finish", by="bob")
    back = pm.get(above.id)
    assert (back.joining, back.owner, back.lease, pm.history(above.id)[-1].event) == (None, None, None, "join")


@pytest.mark.parametrize("join", ["most", 0, 3, True, 1.5, [], {}])
def test_a_rule_that_does_not_fit(pm: Pointsman, join: Any) -> None:
    above = parent(pm)
    no = _refused(batch, pm, above, {}, {}, join=join)
    assert (no.code, no.failed[0]["path"]) == ("invalid", "join")
    assert _refused(batch, pm, None, {}, join="all").failed[0]["path"] == "join"


# ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_owner_or_an_operator_cancels(pm: Pointsman, clock: FakeClock) -> None:
    worker = OLGA.__class__(OTHER, roles=frozenset())
    task = take(pm, make(pm))
    assert _refused(pm.cancel, task.id, by=worker, reason="no", epoch=task.epoch).code == "not_owner"
    assert _refused(pm.cancel, task.id, by=OLGA, reason="no", expect_version=1).code == "stale_version"
    assert _refused(pm.cancel, task.id, by=OLGA, reason="no", epoch=7).code == "lease_lost"
    mine = OLGA.__class__(OWNER, roles=frozenset())
    assert _refused(pm.cancel, task.id, by=mine, reason="no").failed[0]["path"] == "epoch"
    clock.advance(seconds(1))
    report = pm.cancel(task.id, by=mine, reason="not wanted", epoch=task.epoch, idempotency_key="k")
    assert (report.task.state, report.task.lease, report.task.attempts.lost) == ("dropped", None, 0)
    done = report.report
    assert ([*done.happened], [*done.in_doubt], [*done.undoable], [*done.not_undoable]) == ([], [], [], [])
    assert pm.cancel(task.id, by=mine, reason="not wanted", epoch=task.epoch, idempotency_key="k").task.replayed
    entry = pm.history(task.id)[-1]
    assert (entry.kind, entry.by, entry.reason) == ("cancel", OWNER, "not wanted")
    assert _refused(pm.cancel, task.id, by=OLGA, reason="again").code == "wrong_state"
    assert _refused(pm.cancel, task.id, by=OLGA, reason=" ").code == "invalid"
    assert _refused(pm.cancel, NOBODY, by=OLGA, reason="x").code == "unknown_task"
    unowned = make(pm)
    assert pm.cancel(unowned.id, by=OLGA, reason="x").task.state == "dropped"


def test_cancelling_goes_down_only_when_it_is_said(pm: Pointsman) -> None:
    def family() -> tuple[Task, Task, Task, Task]:
        above = parent(pm)
        first, second = batch(pm, above, {}, {})
        (below,) = batch(pm, take(pm, first), {})
        return above, first, second, below

    above, *rest = family()
    finish(pm, rest[1])
    waits = make(pm, "", (rest[0], "cancel"))
    pm.cancel(above.id, by=OLGA, reason="all of it", cascade=True)
    assert states(pm, above, *rest, waits) == ["dropped", "dropped", "done", "dropped", "dropped"]
    assert pm.history(rest[2].id)[-1].reason == f"its parent, task {rest[0].id}, was cancelled"
    above, *rest = family()
    pm.cancel(above.id, by=OLGA, reason="only this")
    assert states(pm, above, *rest) == ["dropped", "work", "open", "open"]


def test_a_parked_task_is_cancelled(pm: Pointsman) -> None:
    task = take(pm, make(pm))
    pm.release(task.id, by=OWNER, epoch=task.epoch)
    assert pm.get(task.id).parked is not None
    assert pm.cancel(task.id, by=OLGA, reason="x").task.parked is None


# ── refs that come to one task ───────────────────────────────────────────────────────────────────────────────────────


def _keyed(name: str = "x", **said: Any) -> dict[str, Any]:
    return {"fields": {"name": name}, "dedupe_key": "k", **said}


def test_two_refs_of_one_task_are_one_dependency(pm: Pointsman) -> None:
    waits = {"ref": "c", "blocked_by": [{"task": "#a"}, {"task": "#b"}]}
    first, second, third = batch(pm, None, _keyed(ref="a"), _keyed(ref="b"), waits)
    assert (first.id, [item.task for item in third.blocked_by]) == (second.id, [first.id])
    finish(pm, first)
    assert take(pm, third).state == "work"


def test_a_ref_and_an_id_of_one_task_are_one_dependency(pm: Pointsman) -> None:
    known = make(pm, "x", dedupe_key="k")
    _, waits = batch(pm, None, _keyed(ref="a"), {"blocked_by": [{"task": "#a"}, {"task": known.id}]})
    assert [item.task for item in pm.get(waits.id).blocked_by] == [known.id]


def test_one_task_with_two_fates_is_refused(pm: Pointsman) -> None:
    known = make(pm, "x", dedupe_key="k")
    waits = {"blocked_by": [{"task": known.id}, {"task": "#a", "on_failure": "cancel"}]}
    refused = _refused(batch, pm, None, _keyed(ref="a"), waits)
    assert (refused.code, [fault["path"] for fault in refused.failed]) == ("invalid", ["tasks[1].blocked_by[1].on_failure"])
    assert len(pm.list()) == 1
