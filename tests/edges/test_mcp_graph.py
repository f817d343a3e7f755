"""Tasks that wait for others, and parts of a task, made over MCP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from edges.mcp_world import calling
from pointsman import Pointsman, Tasks

FIELDS = {"title": "Release notes", "brief": "b"}


@pytest.fixture
def pm(tmp_path: Path) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Tasks]) as opened:
        yield opened


def test_a_task_waits_for_others_and_is_not_given_out_before_them(pm: Pointsman) -> None:
    call = calling(pm)
    first = call("create_task", **FIELDS)["id"]
    second = call("create_task", **FIELDS, blocked_by=[first], on_failure="cancel")
    assert second["blocked_by"] == [{"task": first, "on_failure": "cancel"}]
    assert call("claim_task")["id"] == first
    assert call("claim_task")["code"] == "nothing_to_claim"
    call("fail_task", task_id=first)
    assert pm.get(second["id"]).state == "failed"


def test_a_wrong_task_to_wait_for_makes_none(pm: Pointsman) -> None:
    call = calling(pm)
    there = call("create_task", **FIELDS)["id"]
    assert call("create_task", **FIELDS, blocked_by=["no id"])["failed"][0]["path"] == "blocked_by[0]"
    assert call("create_task", **FIELDS, blocked_by=[there], on_failure="hope")["failed"][0]["path"] == "on_failure"
    assert call("create_task", **FIELDS, on_failure="cancel")["failed"][0]["path"] == "on_failure"
    assert call("create_task", **FIELDS, epoch=1)["failed"][0]["path"] == "epoch"
    assert call("create_task", **FIELDS, blocked_by=[there, there])["code"] == "invalid"
    assert call("create_task", **FIELDS, blocked_by=["01900000-0000-7000-8000-000000000000"])["code"] == "unknown_task"
    assert [task.id for task in pm.list()] == [there]


def test_a_part_of_a_task_is_made_by_its_owner_alone(pm: Pointsman) -> None:
    call = calling(pm)
    whole = call("create_task", **FIELDS)["id"]
    epoch = call("claim_task", task_id=whole)["epoch"]
    assert call("create_task", **FIELDS, parent=whole)["code"] == "invalid"
    assert call("create_task", **FIELDS, parent=whole, epoch=epoch + 1)["code"] == "lease_lost"
    assert call("create_task", **FIELDS, parent=whole, epoch=epoch)["parent"] == whole


def test_a_connection_that_remembers_the_epoch_need_not_say_it(pm: Pointsman) -> None:
    call = calling(pm, holds=True)
    whole = call("create_task", **FIELDS)["id"]
    call("claim_task", task_id=whole)
    assert call("create_task", **FIELDS, parent=whole)["parent"] == whole
