"""The guard of the task's UPDATE by itself: without it a decision on an old read would overwrite a newer row."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import support
from pointsman import Pointsman
from pointsman.store import tasks
from pointsman.store.tasks import Stored


@pytest.fixture
def pm(tmp_path: Path) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as opened:
        yield opened


def row(pm: Pointsman, task_id: str) -> Stored:
    found = pm.engine.db.run(lambda tx: tasks.find(tx, task_id))
    assert found is not None
    return found


@pytest.mark.parametrize("old", [{"version": 1}, {"epoch": 0}, {"version": 1, "epoch": 0}, {"version": 3}, {"epoch": 2}])
def test_a_write_from_another_version_or_epoch_changes_nothing(pm: Pointsman, old: dict[str, int]) -> None:
    current = row(pm, support.claimed(pm).id)
    read = replace(current, task=replace(current.task, **old))
    moved = replace(current.task, state="drafting", version=current.task.version + 1)
    assert pm.engine.db.run(lambda tx: tasks.advance(tx, read, moved, final=False, head="0" * 64, lane=None)) is False
    assert row(pm, current.task.id) == current


def test_a_write_from_what_stands_there_is_made(pm: Pointsman) -> None:
    current = row(pm, support.claimed(pm).id)
    moved = replace(current.task, state="drafting", version=current.task.version + 1)
    assert pm.engine.db.run(lambda tx: tasks.advance(tx, current, moved, final=False, head="0" * 64, lane=None)) is True
    assert row(pm, current.task.id).task == moved
