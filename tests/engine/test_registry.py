"""Machines served and machines met: looking at the board serves nothing, and a published structure with tasks stays."""

import inspect
from pathlib import Path

import pytest

from pointsman import DefinitionError, Event, Machine, Pointsman, State, Tasks, note


def _other(*, wordy: bool) -> type[Machine]:
    class Plain(Machine, name="other"):
        open = State(initial=True)
        failed = State(final=True, outcome="failed")
        drop = Event(open >> failed)

    class Wordy(Machine, name="other"):
        word: str | None = note()
        open = State(initial=True)
        failed = State(final=True, outcome="failed")
        drop = Event(open >> failed)

    return Wordy if wordy else Plain


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


def test_a_verb_shows_what_it_takes(url: str) -> None:
    with Pointsman(url) as pm:
        assert list(inspect.signature(pm.create).parameters)[:4] == ["machine", "fields", "by", "priority"]
        assert (pm.create.__name__, (pm.create.__doc__ or "")[:13]) == ("create", "Create a task")


def test_reading_a_task_of_a_machine_does_not_serve_it(url: str) -> None:
    with Pointsman(url, [Tasks, _other(wordy=False)]) as pm:
        task = pm.create("other", {}, by="ann")
    with Pointsman(url, [Tasks]) as pm:
        pm.approvals(by="rita")
        assert pm.get(task.id, by="rita").state == "open"
        assert list(pm.machines) == ["tasks"]


def test_a_structure_with_tasks_is_never_replaced_also_when_all_are_final(url: str) -> None:
    with Pointsman(url, [_other(wordy=False)]) as pm:
        task = pm.create("other", {}, by="ann")
        pm.propose(task.id, "drop", by="x")
    with pytest.raises(DefinitionError, match="version_taken"):
        Pointsman(url, [_other(wordy=True)])
    with Pointsman(url, []) as pm:
        assert pm.verify().ok


def test_a_structure_without_tasks_is_replaced(url: str) -> None:
    Pointsman(url, [_other(wordy=False)]).close()
    with Pointsman(url, [_other(wordy=True)]) as pm:
        assert pm.create("other", {}, by="ann").fields == {"word": None}
        assert pm.verify().ok
