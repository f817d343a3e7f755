"""On PostgreSQL transactions run beside one another: each pair that could pass one another by, held at its worst moment."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from databases import PostgresServer
from engine.graph_world import OWNER, Parts, batch, make, parent, take
from pausing import PATIENCE_S, Pausing
from pointsman import Pointsman, Refused, Task
from pointsman.engine import ends

WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


class Two:
    """Two processes on one database. What the slow one does is held just before its COMMIT, until the quick one waits
    for it."""

    def __init__(self, postgres: PostgresServer, url: str, slow: Pointsman, quick: Pointsman, pausing: Pausing, pool: ThreadPoolExecutor):
        self.postgres, self.url, self.slow, self.quick, self.pausing, self.pool = postgres, url, slow, quick, pausing, pool

    def meet(self, first: Callable[[Pointsman], Any], second: Callable[[Pointsman], Any]) -> tuple[Any, Any]:
        self.pausing.arm()
        holding = self.pool.submit(first, self.slow)
        assert self.pausing.passed.wait(PATIENCE_S)
        meeting = self.pool.submit(second, self.quick)
        while not self.postgres.execute(WAITING, self.url):
            assert not meeting.done(), "the second is to wait for the first"
        self.pausing.leave.set()
        return _end(holding), _end(meeting)


def _end(future: "Future[Any]") -> Any:
    error = future.exception(PATIENCE_S)
    return error if isinstance(error, Refused) else future.result()


@pytest.fixture
def two(postgres: PostgresServer) -> Iterator[Two]:
    url, pausing = postgres.empty(), Pausing("commit.before")
    with Pointsman(url, [Parts], probe=pausing) as slow, Pointsman(url, [Parts]) as quick, ThreadPoolExecutor(2) as pool:
        yield Two(postgres, url, slow, quick, pausing, pool)
        assert quick.verify().faults == ()
        assert quick.doctor() == []


def _finishing(task: Task) -> Callable[[Pointsman], Task]:
    return lambda pm: pm.propose(task.id, "finish", by=OWNER, epoch=task.epoch)


def test_an_upstream_that_ends_before_its_dependent_is_made(two: Two) -> None:
    upstream = take(two.quick, make(two.quick))
    _, made = two.meet(_finishing(upstream), lambda pm: make(pm, "", upstream))
    assert take(two.quick, made).state == "work"


def test_a_dependent_that_is_made_before_its_upstream_ends(two: Two) -> None:
    upstream = take(two.quick, make(two.quick))
    made, _ = two.meet(lambda pm: make(pm, "", upstream), _finishing(upstream))
    assert take(two.quick, made).state == "work"


def test_a_child_that_is_made_before_its_parent_joins(two: Two) -> None:
    above = parent(two.quick)
    (child,) = batch(two.quick, above, {}, join="all")
    taken = take(two.quick, child)
    made, _ = two.meet(lambda pm: batch(pm, above, {})[0], _finishing(taken))
    assert two.quick.get(above.id).joining is not None
    two.quick.propose(made.id, "fail", by="ann")
    assert two.quick.get(above.id).joining is None


def test_a_parent_that_joins_before_a_child_is_made(two: Two) -> None:
    """Its owner has it back, so the child is one more of an open task."""
    above = parent(two.quick)
    (child,) = batch(two.quick, above, {}, join="all")
    taken = take(two.quick, child)
    seen = list[Task]()

    def finish(pm: Pointsman) -> None:
        """The end is committed; the unit that tells it is held."""
        two.pausing.point = None
        steps = Pointsman.propose.steps(pm, taken.id, "finish", by=OWNER, epoch=taken.epoch)
        pm.engine.db.run(next(steps).unit)  # pyright: ignore[reportAttributeAccessIssue]
        two.pausing.arm()
        ends.tell(pm.engine, taken.id)

    _, made = two.meet(finish, lambda pm: batch(pm, above, {})[0])
    seen.append(two.quick.get(above.id))
    assert (seen[0].joining, made.parent) == (None, above.id)
    assert two.quick.history(above.id)[-1].event == "join"


def test_two_parents_that_join_crosswise_at_once(two: Two) -> None:
    """Neither sees the other's join; the second to look waits for the first to be done."""
    one, other = parent(two.quick), parent(two.quick)
    (child,), (crosswise,) = (
        batch(two.quick, one, {"blocked_by": [{"task": other.id}]}),
        batch(two.quick, other, {"blocked_by": [{"task": one.id}]}),
    )
    joined, refused = two.meet(lambda pm: batch(pm, one, {}, join="all"), lambda pm: batch(pm, other, {}, join="all"))
    assert (joined[0].parent, refused.code) == (one.id, "invalid")
    assert f"{crosswise.id} → {one.id} → {child.id} → {other.id}" in refused.detail


def test_two_who_make_the_same_at_once(two: Two) -> None:
    one, other = two.meet(lambda pm: make(pm, "a", dedupe_key="k"), lambda pm: make(pm, "a", dedupe_key="k"))
    assert (one.deduped, other.deduped, other.id) == (False, True, one.id)


def test_two_who_make_different_things_under_one_key_at_once(two: Two) -> None:
    one, other = two.meet(lambda pm: make(pm, "a", dedupe_key="k"), lambda pm: make(pm, "b", dedupe_key="k"))
    assert isinstance(other, Refused)
    assert (other.code, other.task) == ("dedupe_conflict", one.id)
