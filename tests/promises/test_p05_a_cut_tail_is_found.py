"""P5 with an exported head: cutting the tail, even with every trace of it, is found; so is a removed task."""

import shutil
from pathlib import Path
from typing import Any

import apsw
import pytest

import support
from pointsman import Pointsman

HEAD = dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, HEAD]:
    path = tmp_path_factory.mktemp("whole") / "work.db"
    with Pointsman(f"sqlite:///{path}") as pm:
        for _ in range(3):
            support.approved(pm)
        head = pm.head()
        support.create(pm)
        pm.as_of()
    return path, head


def _verified(path: Path, tmp_path: Path, head: HEAD | None, *statements: str) -> list[str]:
    copy = tmp_path / "work.db"
    shutil.copy(path, copy)
    raw = apsw.Connection(str(copy))
    for statement in statements:
        raw.execute(statement)
    raw.close()
    with Pointsman(f"sqlite:///{copy}", [], create=False) as pm:
        return [fault.what for fault in pm.verify(head).faults]


def _cut(task: str) -> list[str]:
    """Remove whole tasks with every trace, and number the feed anew."""
    gone = f"(SELECT key FROM entries WHERE task {task})"
    return [
        f"DELETE FROM requests WHERE task IN (SELECT id FROM tasks WHERE key {task})",
        f"DELETE FROM feed WHERE task {task}",
        f"DELETE FROM payloads WHERE entry IN {gone}",
        f"DELETE FROM entries WHERE task {task}",
        f"DELETE FROM tasks WHERE key {task}",
    ]


def test_the_head_holds_while_history_grows(whole: tuple[Path, HEAD], tmp_path: Path) -> None:
    assert _verified(whole[0], tmp_path, whole[1]) == []


def test_a_cut_tail_looks_sound_without_the_head_and_is_found_with_it(whole: tuple[Path, HEAD], tmp_path: Path) -> None:
    path, head = whole
    assert _verified(path, tmp_path, None, *_cut(">= 3")) == []
    assert _verified(path, tmp_path, head, *_cut(">= 3")) == [
        f"the tail was cut: the head names feed number {head['seq']}, the feed ends at {head['seq'] // 3 * 2}"
    ]


def test_a_task_removed_from_the_middle_is_found_without_a_head(whole: tuple[Path, HEAD], tmp_path: Path) -> None:
    path, head = whole
    assert _verified(path, tmp_path, None, *_cut("= 2")) == [f"feed number {head['seq'] // 3 + 1} is missing"]


def test_another_history_under_the_same_numbers_is_found(whole: tuple[Path, HEAD], tmp_path: Path) -> None:
    path, head = whole
    other = {**head, "hash": "0" * 64}
    assert _verified(path, tmp_path, other) == [
        f"feed number {head['seq']} is not what the head names: entries before it were removed or changed"
    ]


def test_an_empty_database_has_a_head(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/new.db") as pm:
        head = pm.head()
        assert head["seq"] == 0
        support.create(pm)
        assert pm.verify(head).ok
