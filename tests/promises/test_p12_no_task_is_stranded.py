"""P12: while a server or worker runs, no task is stranded: held under a live lease, claimable, or waiting for a timer,
decision, dependency, child or person that exists."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from databases import STORES, PostgresServer
from engine.graph_world import OLGA, OWNER, Parts, batch, finish, make, parent, take
from pointsman import Pointsman, Refused, Task, seconds
from pointsman.engine import ends
from pointsman.engine.chance import wall_clock
from pointsman.store import graph
from pointsman.testing import FakeClock
from promises import stranding
from promises.copies import Copies, PostgresCopies, SqliteCopies

TELLING = (
    *("mark_settling", "settling", "standing_of", "due_dependents", "advance_task", "add_entry", "settle_dependency"),
    *("unblock_task", "open_children", "children", "settled"),
)
POINTS = [
    *((f"before:{name}", 2) for name in TELLING),
    *((f"after:{name}", 1) for name in TELLING),
    *(("commit.before", passes) for passes in (2, 5)),
    *(("commit.after", passes) for passes in (1, 4)),
]
LEFT = {"stays": "open", "falls": "dropped", "under": "dropped", "goes": "open", "first": "done", "second": "done"}
GONE = {"family": "dropped", "child": "dropped", "below": "dropped", "above": "work"}


def _ahead(url: str, clock: FakeClock | None = None) -> Pointsman:
    """As another process sees the board a little later."""
    return Pointsman(url, [Parts], clock=clock or FakeClock(wall_clock() + seconds(60)))


def _told(pm: Pointsman) -> None:
    """The duty of a server, until nothing is left to do."""
    while ends.take_over(pm.engine):
        assert pm.doctor() == []


def _to_the_end(pm: Pointsman) -> list[Task]:
    """Everything that can be claimed is claimed and finished; what is then still open."""
    while task := pm.claim("parts", by=OWNER):
        pm.propose(task.id, "finish", by=OWNER, epoch=task.epoch)
        _told(pm)
    return pm.list(open=True, limit=1000)


@pytest.mark.parametrize(("point", "passes"), POINTS)
def test_a_kill_at_any_point_of_telling_an_end(url: str, point: str, passes: int) -> None:
    here = Path(__file__).parent
    died = subprocess.run(
        [sys.executable, str(here / "stranding.py"), url, point, str(passes)],
        env={**os.environ, "PYTHONPATH": str(here.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (died.returncode, died.stderr) == (-signal.SIGKILL, "")
    ids = died.stdout.split()[1:]
    with _ahead(url) as pm:
        assert pm.doctor() == []
        assert pm.verify().faults == ()
        tasks = {name: pm.get(task) for name, task in zip(stranding.NAMES, ids, strict=True)}
        _told(pm)
        stranding.act(pm, tasks)
        assert {name: pm.get(tasks[name].id).state for name in LEFT | GONE} == LEFT | GONE
        above = pm.get(tasks["above"].id)
        assert (above.joining, above.owner, above.lease is not None) == (None, OWNER, True)
        assert {task.id for task in _to_the_end(pm)} == {tasks["stays"].id, above.id}
        assert pm.doctor() == []
        assert pm.verify().faults == ()


def _race(one: Pointsman, other: Pointsman, pool: ThreadPoolExecutor, chosen: random.Random) -> None:
    """Upstreams end while dependents of them are made, and children while their parent gets more."""
    upstreams = [take(one, make(one)) for _ in range(4)]
    above = parent(one)
    below = [take(one, task) for task in batch(one, above, {}, {}, join=chosen.choice(["all", "any", 2]))]
    fates = [chosen.choice(["block", "cancel", "continue"]) for _ in upstreams]

    def end(task: Task) -> None:
        event = chosen.choice(["finish", "fail"])
        other.propose(task.id, event, by=OWNER, epoch=task.epoch)

    def more() -> None:
        with suppress(Refused):
            batch(one, above, {}, join="all")

    made = [pool.submit(make, one, "", *zip(upstreams, fates, strict=True)) for _ in range(4)]
    ended = [pool.submit(end, task) for task in (*upstreams, *below)]
    grown = pool.submit(more)
    for future in (*made, *ended, grown):
        future.result()


def test_ends_race_with_those_who_come_to_wait_for_them(url: str) -> None:
    clock, chosen = FakeClock(), random.Random(7)
    with Pointsman(url, [Parts], clock=clock) as one, Pointsman(url, [Parts], clock=clock) as other, ThreadPoolExecutor(8) as pool:
        for _ in range(6):
            _race(one, other, pool, chosen)
            assert one.doctor() == []
        clock.advance(seconds(60))
        _told(one)
        for task in _to_the_end(one):
            waits = [item for item in one.engine.db.read(lambda tx, task=task: graph.of_task(tx, task.id)) if not item.settled]
            assert task.owner == OWNER or waits
            assert all(item.upstream is not None and item.upstream.state == "failed" and item.on_failure == "block" for item in waits)
            assert task.joining is None
        assert one.doctor() == []
        assert one.verify().faults == ()


def test_a_server_goes_on_where_a_process_died(url: str) -> None:
    """The mark stands, nobody tells it, and its time is over: a server's duty does."""
    clock = FakeClock()
    with Pointsman(url, [Parts], clock=clock) as pm:
        upstream = take(pm, make(pm))
        waits = make(pm, "", upstream)
        _only_decide(pm, upstream)
        assert ends.take_over(pm.engine) == 0
        clock.advance(ends.PATIENCE + seconds(1))
        assert ends.take_over(pm.engine) == 1
        assert take(pm, waits).state == "work"


def _only_decide(pm: Pointsman, task: Task) -> None:
    """As a process that dies right after its commit."""
    steps = Pointsman.propose.steps(pm, task.id, "finish", by=OWNER, epoch=task.epoch)
    pm.engine.db.run(next(steps).unit)  # pyright: ignore[reportAttributeAccessIssue]


# ── the audit finds what would be stranded ───────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=STORES)
def copies(request: pytest.FixtureRequest, tmp_path: Path) -> Copies:
    if request.param == "sqlite":
        return SqliteCopies(tmp_path)
    server: PostgresServer = request.getfixturevalue("postgres")
    return PostgresCopies(server)


def _broken(copies: Copies, statements: Iterable[str]) -> list[str]:
    with Pointsman(copies.changed(statements), [Parts], create=False) as pm:
        return [*pm.doctor(), *(fault.what for fault in pm.verify().faults)]


def test_the_audit_names_who_is_stranded(copies: Copies) -> None:
    with Pointsman(copies.url, [Parts], clock=FakeClock()) as pm:
        upstream, free, held = take(pm, make(pm)), make(pm), take(pm, make(pm))
        waits = make(pm, "", upstream)
        above = parent(pm)
        (child,) = batch(pm, above, {}, join="all")
        ended = take(pm, make(pm))
        told = make(pm, "", ended)
        circle = parent(pm)
        (within,) = batch(pm, circle, {}, join="all")
        _only_decide(pm, ended)
        assert pm.doctor() == []
    broken: dict[str, tuple[Task, str]] = {
        "DELETE FROM settling": (told, "whose end nobody is to tell"),
        f"UPDATE dependencies SET settled = 1 WHERE dependent = '{waits.id}'": (waits, "waits for a dependency, and there is none"),
        f"UPDATE tasks SET ready = 0 WHERE id = '{free.id}'": (free, "waits for nothing, and there is none"),
        f"UPDATE tasks SET wake_at = NULL WHERE id = '{held.id}'": (held, "waits for nothing, and there is none"),
        f"UPDATE tasks SET parent = NULL WHERE id = '{child.id}'": (above, "waits for children, and there is none"),
        f"INSERT INTO dependencies VALUES ('{within.id}', '{circle.id}', 'block', 0)": (within, "waits for itself: "),
    }
    for statement, (task, why) in broken.items():
        said = _broken(copies, [statement])
        assert any(task.id in line and why in line for line in said), (statement, said)


def test_operators_and_owners_exist(url: str) -> None:
    """What waits for a person is not stranded: parked, held where no lease is needed, or waiting in vain until cancelled."""
    with Pointsman(url, [Parts], clock=FakeClock()) as pm:
        parked = take(pm, make(pm))
        pm.release(parked.id, by=OWNER, epoch=parked.epoch)
        failed = make(pm)
        vain = make(pm, "", failed)
        pm.propose(failed.id, "fail", by="ann")
        assert pm.doctor() == []
        pm.cancel(vain.id, by=OLGA, reason="it will never be")
        pm.unpark(parked.id, by=OLGA, reason="again")
        assert finish(pm, parked).state == "done"


def test_told_by_the_same_process(url: str) -> None:
    """Nothing is left behind for a duty when nobody dies."""
    with Pointsman(url, [Parts], clock=FakeClock()) as pm:
        tasks = stranding.world(pm)
        stranding.act(pm, tasks)
        left: list[Any] = pm.engine.db.read(lambda tx: graph.left(tx, tx.now + seconds(60), 100))
        assert left == []
