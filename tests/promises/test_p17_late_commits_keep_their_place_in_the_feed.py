"""P17 and the feed on PostgreSQL, where entries are not committed in the order of their keys: no entry is skipped or
numbered twice, a task's entries keep their order, and the time of the feed never runs backwards."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

import support
from databases import PostgresServer
from pointsman import Pointsman
from pointsman.engine.duties import number
from pointsman.store import feed

PATIENCE_S = 20
TASKS, STEPS, THREADS = 6, 12, 6
WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


class Late:
    """A probe that holds the next COMMIT until it is let go."""

    def __init__(self) -> None:
        self.armed, self.passed, self.leave = False, Event(), Event()

    def __call__(self, point: str) -> None:
        if self.armed and point == "commit.before":
            self.armed = False
            self.passed.set()
            assert self.leave.wait(PATIENCE_S)


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.empty()


def test_an_entry_that_is_committed_late_is_numbered_all_the_same(url: str) -> None:
    late = Late()
    with Pointsman(url, probe=late) as slow, Pointsman(url) as quick, ThreadPoolExecutor(1) as pool:
        first, second = support.create(quick), support.create(quick)
        seen = quick.as_of()
        late.armed = True
        holding = pool.submit(slow.claim, "tasks", by="slow", id=first.id)
        assert late.passed.wait(PATIENCE_S)
        quick.claim("tasks", by="quick", id=second.id)
        assert quick.as_of() == seen + 1, "a commit that is still to come holds up nobody's number"
        before = quick.feed()
        late.leave.set()
        holding.result(PATIENCE_S)
        after = quick.feed()
        assert after[: len(before)] == before
        assert [(entry.seq, entry.task, entry.by) for entry in after[len(before) :]] == [(seen + 2, first.id, "slow")]
        assert quick.verify(quick.head()).ok
        assert quick.list(at=f"#{seen + 1}") == [first, quick.get(second.id)]


def test_a_look_at_a_time_waits_for_whoever_has_read_an_earlier_one(url: str, postgres: PostgresServer) -> None:
    """Else what is committed after the look, under a time before it, would change that past."""
    late = Late()
    with Pointsman(url, probe=late) as slow, Pointsman(url) as quick, ThreadPoolExecutor(2) as pool:
        task = support.create(quick)
        late.armed = True
        holding = pool.submit(slow.claim, "tasks", by="slow", id=task.id)
        assert late.passed.wait(PATIENCE_S)
        then = postgres.execute("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS bigint)")[0][0]
        looking = pool.submit(quick.list, at=then)
        while not postgres.execute(WAITING, url):
            assert not looking.done()
        late.leave.set()
        claimed = holding.result(PATIENCE_S)
        assert claimed is not None
        assert claimed.updated_at < then
        assert looking.result(PATIENCE_S) == [claimed]
        assert quick.list(at=then) == [claimed]


def _work(pm: Pointsman, seed: int) -> None:
    """Somebody who moves tasks of its own, and numbers now and then."""
    chosen = random.Random(seed)
    held = [support.claimed(pm, f"w{seed}") for _ in range(TASKS)]
    for _ in range(STEPS):
        task = chosen.choice(held)
        pm.propose(task.id, "start_draft", by=f"w{seed}", epoch=task.epoch)
        if chosen.random() < 0.3:
            number(pm.engine)


def test_whoever_numbers_and_whoever_writes_the_feed_is_gapless(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url, duties=True) as other, ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(_work, (one, other)[seed % 2], seed) for seed in range(THREADS)]:
            future.result(60)
        last = one.as_of()
        entries = list(_all(one))
        assert [entry.seq for entry in entries] == list(range(1, last + 1))
        assert last == THREADS * (2 * TASKS + STEPS)
        for task in one.list(limit=1000):
            versions = [entry.version for entry in entries if entry.task == task.id]
            assert versions == list(range(1, task.version + 1))
        rows = [one.engine.db.read(lambda tx, seq=seq: feed.row(tx, seq)) for seq in range(1, last + 1)]
        times = [row.at for row in rows if row is not None]
        assert len(times) == last
        assert times == sorted(times)
        assert one.verify(one.head()).ok
        assert not one.engine.db.read(feed.waits)


def _all(pm: Pointsman) -> Iterator[object]:
    after = 0
    while page := pm.feed(after, limit=100):
        yield from page
        after = page[-1].seq or 0


def test_a_unit_that_was_taken_back_leaves_nothing_to_number(url: str) -> None:
    class TakenBack(Exception):
        pass

    def probe(point: str) -> None:
        if armed and point == "unit.done":
            raise TakenBack

    armed = False
    with Pointsman(url, probe=probe) as pm:
        task = support.create(pm)
        armed = True
        with pytest.raises(TakenBack):
            pm.claim("tasks", by="w", id=task.id)
        armed = False
        pm.claim("tasks", by="w", id=task.id)
        assert [(entry.seq, entry.version) for entry in pm.feed()] == [(1, 1), (2, 2)]
        assert pm.verify().ok
