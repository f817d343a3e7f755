"""What a task waits for, told from its machine and its row."""

from dataclasses import replace

import pytest

from kernel import world
from pointsman import Tasks
from pointsman.kernel.task import Lease, Parked, Waiting
from pointsman.kernel.waiting import waiting

DECIDERS = "role reviewer and not a contributor"
NOW = 3_000


def test_a_queued_task_waits_for_an_owner() -> None:
    assert waiting(Tasks.definition, world.at("queued"), NOW) == Waiting("owner", "anyone", 1_000, None, True)


def test_one_whose_time_has_not_come_waits_for_that() -> None:
    task = replace(world.at("queued"), run_at=NOW + 1)
    assert waiting(Tasks.definition, task, NOW) == Waiting("time", None, 1_000, None, True)
    assert waiting(Tasks.definition, replace(task, run_at=NOW), NOW) == Waiting("owner", "anyone", 1_000, None, True)


def test_what_awaits_approval_waits_for_whoever_may_decide() -> None:
    task = world.at("awaiting_approval")
    assert waiting(Tasks.definition, task, NOW) == Waiting("decision", DECIDERS, task.since, task.deadline, True)
    assert task.deadline is not None


@pytest.mark.parametrize("state", ["claimed", "drafting", "approved", "done", "failed"])
def test_what_is_held_or_final_waits_for_nothing(state: str) -> None:
    assert waiting(Tasks.definition, world.at(state), NOW) is None


@pytest.mark.parametrize("state", ["claimed", "drafting", "approved"])
def test_a_lapsed_task_waits_for_an_owner(state: str) -> None:
    task = replace(world.at(state), lease=Lease(NOW, live=False))
    found = waiting(Tasks.definition, task, NOW)
    assert found is not None
    assert (found.cause, found.who, found.satisfiable) == ("owner", "anyone", True)


def test_a_parked_task_says_so_itself() -> None:
    assert waiting(Tasks.definition, replace(world.at("queued"), parked=Parked("tried", 1)), NOW) is None
