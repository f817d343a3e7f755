"""Lists of the tasks that have a tag, through every door, of the present and of the past."""

import asyncio
from collections.abc import Iterator

import pytest

from edges.cli import Cli
from edges.v1_world import FIELDS, Board
from pointsman import Pointsman, Task
from pointsman.http import app


@pytest.fixture
def pm(url: str) -> Iterator[Pointsman]:
    with Pointsman(url) as opened:
        yield opened


def _made(pm: Pointsman) -> list[Task]:
    return [pm.create("tasks", dict(FIELDS), by="ann", tags=tags) for tags in (["docs"], [], ["docs", "red"], ["Docs"], ["doc"])]


def test_a_tag_is_the_whole_of_it_and_case_counts(pm: Pointsman) -> None:
    made = _made(pm)
    assert [task.id for task in pm.list(tag="docs")] == [made[0].id, made[2].id]
    assert [task.id for task in pm.list(tag="docs", order="updated_at", limit=1)] == [made[0].id]
    assert [task.id for task in pm.list(tag="docs", q="scheduler", open=True)] == [made[0].id, made[2].id]
    assert pm.list(tag="docs", state="done") == pm.list(tag="oc") == []


def test_the_board_as_it_was_has_tags_too(pm: Pointsman) -> None:
    made, before = _made(pm), pm.as_of()
    pm.create("tasks", dict(FIELDS), by="ann", tags=["docs"])
    assert [task.id for task in pm.list(tag="docs", at=f"#{before}")] == [made[0].id, made[2].id]


def test_over_http(pm: Pointsman) -> None:
    made = _made(pm)
    with asyncio.Runner() as runner:
        board = Board(pm, app(pm), runner)
        first = board.told("/v1/tasks", tag="docs", limit=1)
        assert [task["id"] for task in first["tasks"]] == [made[0].id]
        second = board.told("/v1/tasks", tag="docs", limit=1, cursor=first["next"])
        assert [task["id"] for task in second["tasks"]] == [made[2].id]
        assert board.get("/v1/tasks", tag="red", limit=1, cursor=first["next"]).status_code == 422
        assert board.get("/v1/tasks", tag=" ").status_code == 422


def test_over_the_command_line(cli: Cli) -> None:
    work = ("--arg", "title=t", "--arg", "brief=b", "--as", "ann", "--json")
    wanted = cli("task", "create", *work, "--tag", "docs").data["id"]
    cli("task", "create", *work)
    assert [task["id"] for task in cli("task", "list", "--tag", "docs", "--json").data["tasks"]] == [wanted]
