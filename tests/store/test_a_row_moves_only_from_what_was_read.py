"""The guard of the task's UPDATE by itself: without it a decision on an old read would overwrite a newer row."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import databases
import support
from pointsman import Pointsman
from pointsman.errors import StoreError
from pointsman.kernel.task import Attempts, Begun, Decided, Evidence, Joining, Lease, Parked
from pointsman.store import tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Moved, Stored

LATE = 2**60
Write = Callable[[Tx, Moved], object]


def by_itself(tx: Tx, moved: Moved) -> None:
    tasks.put(tx, moved, None)


def with_others(tx: Tx, moved: Moved) -> None:
    tasks.put_all(tx, [(moved, None)])


@pytest.fixture(params=databases.STORES)
def pm(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pointsman]:
    with Pointsman(databases.empty(request.param, tmp_path, request)) as opened:
        yield opened


def row(pm: Pointsman, task_id: str) -> Stored:
    found = pm.engine.db.run(lambda tx: tasks.find(tx, task_id))
    assert found is not None
    return found


@pytest.mark.parametrize("step", [{"state": "drafting"}, {}], ids=["goes", "stays"])
@pytest.mark.parametrize("write", [by_itself, with_others])
@pytest.mark.parametrize("old", [{"version": 1}, {"epoch": 0}, {"version": 1, "epoch": 0}, {"version": 3}, {"epoch": 2}])
def test_a_write_from_another_version_or_epoch_undoes_its_whole_unit(
    pm: Pointsman, old: dict[str, int], write: Write, step: dict[str, Any]
) -> None:
    """Also what came before it, and what was sent with it."""
    current = row(pm, support.claimed(pm).id)
    read = replace(current, task=current.task.but(**old))
    moved = read.task.but(**step, version=current.task.version + 1)

    def unit(tx: Tx) -> None:
        tasks.prolong(tx, current.task.id, LATE)
        write(tx, Moved(read, moved, final=False, head="0" * 64))
        tasks.prolong(tx, current.task.id, LATE)

    with pytest.raises(StoreError, match="what was read moved") as told:
        pm.engine.db.run(unit)
    assert (told.value.code, told.value.outcome) == ("store_busy", "not_done")
    assert row(pm, current.task.id) == current


STEPS: list[dict[str, Any]] = [{"state": "drafting"}, {"begun": (Begun("an id", "load", 1),), "lease": Lease(LATE, True)}]


@pytest.mark.parametrize("step", STEPS, ids=["goes", "stays"])
@pytest.mark.parametrize("write", [by_itself, with_others])
def test_a_write_from_what_stands_there_is_made(pm: Pointsman, write: Write, step: dict[str, Any]) -> None:
    current = row(pm, support.claimed(pm).id)
    moved = current.task.but(**step, version=current.task.version + 1, updated_at=current.task.updated_at + 1)
    pm.engine.db.run(lambda tx: write(tx, Moved(current, moved, final=False, head="0" * 64)))
    there = row(pm, current.task.id)
    assert (there.task, there.task.lease, there.head) == (moved, moved.lease, "0" * 64)


OTHER: dict[str, Any] = {
    "state": "drafting",
    "revision": 2,
    "digest": "of other words",
    "fields": {"title": "Other words"},
    "owner": "worker-2",
    "owner_root": "ann",
    "session": "two",
    "epoch": 2,
    "evidence": {"topic": Evidence("pass", "said so", "of the inputs", "topic", 1)},
    "contributors": ("ann",),
    "decisions": (Decided("approve", "rita", "rita", 1, 1, "of the words", None, 1),),
    "since": 7,
    "deadline": 8,
    "run_at": 9,
    "attempts": Attempts(lost=1),
    "parked": Parked("why", 1),
    "joining": Joining("all"),
    "begun": (Begun("an id", "load", 1),),
}
"""Whatever a step can change of a row, besides its version, its time and its lease."""
KEPT = {"id", "machine", "machine_version", "priority", "created_by", "created_at", "tags", "needs", "dedupe_key", "parent", "blocked_by"}


@pytest.mark.parametrize("name", OTHER)
def test_a_step_that_leaves_the_rest_as_it_is_leaves_out_nothing(pm: Pointsman, name: str) -> None:
    assert {*tasks.COLUMNS} == {*OTHER, *KEPT, "key", "version", "updated_at", "head", "lease_until", "blockers"}
    current = row(pm, support.claimed(pm).id)
    moved = current.task.but(**{name: OTHER[name]}, version=3)
    pm.engine.db.run(lambda tx: by_itself(tx, Moved(current, moved, final=False, head="0" * 64)))
    assert row(pm, current.task.id).task == moved


def test_one_that_moved_undoes_all_that_are_written_with_it(pm: Pointsman) -> None:
    moved, other = (row(pm, support.claimed(pm).id) for _ in range(2))
    steps = [Moved(read, replace(read.task, state="drafting", version=3), final=False, head="0" * 64) for read in (moved, other)]
    pm.release(moved.task.id, by=support.OWNER, epoch=moved.task.epoch)
    with pytest.raises(StoreError, match="what was read moved"):
        pm.engine.db.run(lambda tx: tasks.put_all(tx, [(step, None) for step in steps]))
    assert row(pm, other.task.id) == other
