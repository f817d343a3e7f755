"""Leases are kept while somebody works: renewed in time, given up in time, and told at once when they are lost."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Event

import pytest

from pointsman import Pointsman, Refused, StoreError, Task
from pointsman.errors import Refusal
from pointsman.testing import FakeClock
from pointsman.types import seconds
from pointsman.worker.keeper import Keeper, Kept
from worker.jobs import Jobs, Seconds, claimed

ME, OTHER = "worker-a", "worker-b"


class Silent:
    """A store that can be made to answer no unit of work."""

    def __init__(self) -> None:
        self.silent = False

    def __call__(self, point: str) -> None:
        if self.silent and point == "before:find_task":
            raise StoreError("store_unavailable", "silent")


@dataclass
class World:
    pm: Pointsman
    keeper: Keeper
    clock: Seconds
    store: Silent
    told: list[Refusal] = field(default_factory=list[Refusal])

    def keep(self, task: Task, lease_s: float | None = None) -> Kept:
        return self.keeper.keep(task, ME, self.clock(), self.told.append, lease_s)

    def pass_time(self, by_s: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """In steps as short as the keeper's own."""
        for _ in range(round(by_s * 10)):
            self.clock.advance(0.1)
            meanwhile()
            self.keeper.run_once()

    @property
    def codes(self) -> list[str]:
        return [no.code for no in self.told]


@pytest.fixture
def world(url: str) -> Iterator[World]:
    store, clock = Silent(), FakeClock()
    with Pointsman(url, [Jobs], clock=clock, probe=store) as pm:
        seconds_passed = Seconds(clock)
        yield World(pm, Keeper(pm, seconds_passed), seconds_passed, store)


def test_a_lease_is_renewed_after_a_third_of_it_and_leaves_no_entry(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    ends: list[int] = []
    world.pass_time(2, lambda: ends.append(lease_of(world, task)))
    assert len(set(ends)) == 2
    assert ends.index(ends[-1]) in (10, 11), "tenths of a second"
    world.pass_time(8)
    now = world.pm.get(task.id)
    assert (now.version, now.lease and now.lease.live, world.told) == (task.version, True, [])


def lease_of(world: World, task: Task) -> int:
    lease = world.pm.get(task.id).lease
    assert lease is not None
    return lease.expires_at


def test_it_is_held_for_as_long_as_the_claim_asked(world: World) -> None:
    task = claimed(world.pm, lease_s=60)
    world.keep(task, lease_s=60)
    world.pass_time(1.5)
    left = (lease_of(world, task) - world.clock.store.now) / seconds(1)
    assert 10 < left < 12, "the state's max_hold, which a claim is not held to, ends it"


def test_a_task_that_was_taken_over_is_lost(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.clock.advance(4)
    assert world.pm.claim("jobs", by=OTHER, id=task.id) is not None
    world.keeper.run_once()
    assert world.codes == ["lease_lost"]
    assert world.told[0].extra["epoch"] == task.epoch + 1
    world.pass_time(4)
    assert world.codes == ["lease_lost"], "told once"


def test_one_who_slept_past_the_end_goes_on_when_nobody_took_the_task(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.clock.advance(10)
    world.keeper.watch_once()
    world.keeper.renew_once()
    world.keeper.watch_once()
    assert world.told == []
    assert world.pm.get(task.id).held


def test_when_the_store_does_not_answer_the_lease_is_given_up_before_it_ends(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    ends = world.clock() + 3
    world.store.silent = True
    until = 0.0
    while not world.told:
        world.pass_time(0.1)
        until = world.clock()
        assert until < ends, "nothing is told, and the lease has ended"
    world.store.silent = False
    assert ends - 1 < until < ends
    assert (world.codes, world.told[0].task) == (["lease_lost"], task.id)
    assert "does not answer" in world.told[0].detail
    assert world.pm.get(task.id).held, "by the store's clock it still runs"


def test_a_store_that_answers_again_in_time_loses_nothing(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.store.silent = True
    world.pass_time(2)
    world.store.silent = False
    world.pass_time(4)
    assert world.told == []
    assert world.pm.get(task.id).held


def test_a_thread_that_hangs_in_the_store_does_not_hold_up_the_one_that_looks_at_the_clock(world: World) -> None:
    world.keep(claimed(world.pm))
    for _ in range(30):
        world.clock.advance(0.1)
        world.keeper.watch_once()
    assert world.codes == ["lease_lost"]


def test_silent_holding_ends_where_the_state_says(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.pass_time(10)
    assert world.told == []
    world.pass_time(1.9)
    assert world.codes == ["lease_lost"]
    assert "held silently" in world.told[0].detail
    assert world.pm.get(task.id).held


def test_a_step_of_the_owner_begins_the_time_of_holding_anew(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    for _ in range(3):
        world.pass_time(8)
        world.pm.propose(task.id, "step", {}, by=ME, epoch=task.epoch)
    assert world.told == []


def test_a_task_that_waits_for_somebody_is_not_lost_and_kept_again_afterwards(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    waiting = world.pm.propose(task.id, "submit", {}, by=ME, epoch=task.epoch)
    world.pass_time(60)
    assert world.told == []
    world.pm.propose(task.id, "send_back", {}, by="rita", digest=waiting.digest)
    world.pass_time(6)
    assert world.told == []
    assert world.pm.get(task.id).held
    world.clock.advance(4)
    world.pm.claim("jobs", by=OTHER, id=task.id)
    world.pass_time(2)
    assert world.codes == ["lease_lost"]


def test_what_the_owner_itself_ended_or_gave_back_is_not_lost(world: World) -> None:
    one, other = claimed(world.pm), claimed(world.pm)
    world.keep(one)
    world.keep(other)
    world.pm.propose(one.id, "finish", {}, by=ME, epoch=one.epoch)
    world.pm.release(other.id, by=ME, epoch=other.epoch)
    world.pass_time(6)
    assert world.told == []


def test_what_somebody_else_ended_is_lost(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.pm.propose(task.id, "drop", {}, by="ann")
    world.pass_time(2)
    assert world.codes == ["wrong_state"]
    assert world.told[0].state == "dropped"


def test_what_the_owner_gave_back_and_that_parked_it_is_lost(world: World) -> None:
    task = claimed(world.pm)
    for _ in range(20):
        if task.attempts.counted == 5:
            break
        world.pm.release(task.id, by=ME, epoch=task.epoch)
        again = world.pm.claim("jobs", by=ME, id=task.id)
        assert again is not None
        task = again
    world.keep(task)
    world.pm.release(task.id, by=ME, epoch=task.epoch)
    assert world.pm.get(task.id).parked is not None
    world.pass_time(2)
    assert world.codes == ["not_owner"]


def test_an_answer_to_a_step_of_the_same_process_is_heard(world: World) -> None:
    """A state with a longer lease: renewed as often as the shortest would need, given up only by what is known."""
    task = claimed(world.pm)
    kept = world.keep(task)
    asked_at = world.clock()
    moved = world.pm.propose(task.id, "send", {}, by=ME, epoch=task.epoch)
    world.keeper.heard(kept, moved, asked_at)
    world.store.silent = True
    world.pass_time(20)
    assert world.told == []
    world.pass_time(10)
    assert world.codes == ["lease_lost"]


def test_an_older_answer_does_not_undo_a_newer_one(world: World) -> None:
    task = claimed(world.pm)
    kept = world.keep(task)
    before = world.clock()
    world.clock.advance(2)
    moved = world.pm.propose(task.id, "send", {}, by=ME, epoch=task.epoch)
    world.keeper.heard(kept, moved, world.clock())
    world.keeper.heard(kept, task, before)
    assert kept.task.state == "sending"


def test_what_was_let_go_is_neither_renewed_nor_told(world: World) -> None:
    task = claimed(world.pm)
    world.keeper.let_go(world.keep(task))
    world.pass_time(4)
    assert not world.pm.get(task.id).held
    world.pm.claim("jobs", by=OTHER, id=task.id)
    world.pass_time(2)
    assert world.told == []


def test_a_replaced_owner_renews_nothing_for_a_second_session_of_its_name(world: World) -> None:
    task = claimed(world.pm)
    world.keep(task)
    world.clock.advance(4)
    world.pm.claim("jobs", by=ME, id=task.id, session="another")
    world.keeper.run_once()
    assert world.codes == ["lease_lost"]


def test_its_threads_keep_and_tell_without_being_called(url: str) -> None:
    """The same on real time: two threads, a lease of a second, and a task that somebody else takes."""
    lost = Event()
    with Pointsman(url, [Jobs]) as pm:
        keeper = Keeper(pm)
        keeper.start()
        task = claimed(pm, lease_s=1)
        kept = keeper.keep(task, ME, keeper.clock(), lambda _: lost.set(), lease_s=1)
        until = keeper.clock() + 2.5
        while keeper.clock() < until:
            with pytest.raises(Refused, match="already_claimed"):
                pm.claim("jobs", by=OTHER, id=task.id)
            assert not lost.wait(0.1)
        keeper.let_go(kept)
        old = keeper.keep(claimed(pm, lease_s=1), ME, keeper.clock(), lambda _: lost.set(), lease_s=1)
        pm.release(old.task.id, by=ME, epoch=old.task.epoch)
        pm.claim("jobs", by=OTHER, id=old.task.id)
        assert lost.wait(20)
        keeper.stop()
