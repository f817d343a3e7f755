"""A parent that joins its children never comes to wait for itself, however long the way round."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from engine.graph_world import OLGA, OWNER, Parts, batch, fail, finish, make, parent, take
from pointsman import Event, Machine, Pointsman, Refused, State
from pointsman.engine import circles
from pointsman.kernel import graph
from pointsman.kernel.task import Task


class Plain(Machine, name="plain"):
    """Nobody owns a task of it, so one that waits may have children too."""

    open = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    finish = Event(open >> done)
    fail = Event(open >> failed)


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Parts, Plain]) as opened:
        yield opened
        assert opened.verify().faults == ()
        assert opened.doctor() == []


def _refused(call: Any, *args: Any, **kwargs: Any) -> Refused:
    with pytest.raises(Refused) as refused:
        call(*args, **kwargs)
    return refused.value


def _circle(refused: Refused, path: str, *tasks: Task) -> None:
    assert (refused.code, [fault["path"] for fault in refused.failed]) == ("invalid", [path])
    assert " → ".join(task.id for task in tasks) in refused.failed[0]["message"]


def _waits(*tasks: Task) -> dict[str, Any]:
    return {"blocked_by": [{"task": task.id} for task in tasks]}


@pytest.mark.parametrize("rule", ["all", "any", 1])
def test_a_child_that_waits_for_the_parent_that_joins_it(pm: Pointsman, rule: Any) -> None:
    above, other = parent(pm), make(pm)
    refused = _refused(batch, pm, above, {}, _waits(other, above), join=rule)
    _circle(refused, "tasks[1].blocked_by[1].task", above)
    assert (pm.get(above.id).joining, len(pm.list())) == (None, 2)


def test_it_may_wait_for_a_parent_that_does_not_join_it(pm: Pointsman) -> None:
    above = parent(pm)
    (child,) = batch(pm, above, _waits(above))
    pm.propose(above.id, "finish", by=OWNER, epoch=above.epoch)
    assert take(pm, child).state == "work"


def test_through_a_third_task(pm: Pointsman) -> None:
    above = parent(pm)
    between = make(pm, "", make(pm, "", above))
    first = between.blocked_by[0]
    refused = _refused(batch, pm, above, _waits(between), join="all")
    _circle(refused, "tasks[0].blocked_by[0].task", between, pm.get(first.task), above)


def test_a_child_that_was_there_before_the_join(pm: Pointsman) -> None:
    above = parent(pm)
    (child,) = batch(pm, above, _waits(above))
    _circle(_refused(batch, pm, above, {}, join="all"), "join", child, above)
    fail(pm, child)
    batch(pm, above, {}, join="all")
    assert pm.get(above.id).joining is not None


def test_two_parents_crosswise(pm: Pointsman) -> None:
    one, other = parent(pm), parent(pm)
    (child,) = batch(pm, one, _waits(other), join="all")
    refused = _refused(batch, pm, other, _waits(one), join="all")
    _circle(refused, "tasks[0].blocked_by[0].task", one, child, other)
    finish(pm, make(pm))
    pm.propose(other.id, "finish", by=OWNER, epoch=other.epoch)
    finish(pm, child)
    assert pm.get(one.id).joining is None


def test_a_child_made_while_its_parent_joins(pm: Pointsman) -> None:
    above = parent(pm)
    batch(pm, above, {}, join="all")
    waits = make(pm, "", above)
    said = {"parent": above.id, "epoch": above.epoch}
    refused = _refused(pm.create, "parts", {}, by=OWNER, **said, **_waits(waits))
    _circle(refused, "blocked_by[0].task", waits, above)
    _circle(_refused(batch, pm, above, _waits(waits)), "tasks[0].blocked_by[0].task", waits, above)
    assert pm.create("parts", {}, by=OWNER, **said, **_waits(make(pm))).parent == above.id


def test_a_child_that_joins_what_waits_for_those_above_it(pm: Pointsman) -> None:
    above = parent(pm)
    (child,) = batch(pm, above, {}, join="all")
    taken = take(pm, child)
    refused = _refused(batch, pm, taken, _waits(above), join="all")
    _circle(refused, "tasks[0].blocked_by[0].task", above, child)


def test_what_is_over_closes_no_circle(pm: Pointsman) -> None:
    above = parent(pm)
    waits = make(pm, "", above)
    pm.cancel(waits.id, by=OLGA, reason="not wanted")
    (child,) = batch(pm, above, {"blocked_by": [{"task": waits.id, "on_failure": "continue"}]}, join="all")
    finish(pm, child)
    assert pm.get(above.id).joining is None


def test_a_parent_that_waits_itself(pm: Pointsman) -> None:
    first = pm.create("plain", {}, by="ann")
    second = pm.create("plain", {}, by="ann", **_waits(first))
    refused = _refused(pm.create_batch, [{"fields": {}, **_waits(second)}], by="ann", machine="plain", parent=first.id, join="all")
    _circle(refused, "tasks[0].blocked_by[0].task", second, first)
    pm.create_batch([{"fields": {}, **_waits(first)}], by="ann", machine="plain", parent=second.id, join="all")
    assert pm.get(second.id).joining is not None


def test_a_look_has_an_end(pm: Pointsman, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circles, "MOST_WALKED", 2)
    above = parent(pm)
    make(pm, "", above)
    far = make(pm, "", make(pm, "", make(pm)))
    refused = _refused(batch, pm, above, _waits(far), join="all")
    assert (refused.code, refused.task) == ("limit_reached", above.id)
    assert "more than 2 tasks" in refused.detail


def test_circles_are_named_once() -> None:
    waits = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e"), ("f", "g")]
    found = [set(circle) for circle in graph.circles(waits)]
    assert sorted(map(sorted, found)) == [["a", "b", "c"], ["e"]]
    first = next(circle for circle in graph.circles(waits) if len(circle) == 4)
    assert all(pair in waits for pair in pairwise(first))
    assert list(graph.circles([("a", "b"), ("b", "c")])) == []
