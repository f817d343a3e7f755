"""What a creator asks of a task besides its fields, what a claimer asks for, and a limit that is used up, at every door."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from edges.cli import Cli
from edges.mcp_world import calling
from edges.v1_world import Board, board, paths, refused
from pointsman import Event, Limit, Machine, Pointsman, State, field, minutes, owner
from pointsman.http import app
from pointsman.http.flat import Flat, Member, Post

TERMS = {"tags": ["red"], "needs": ["gpu"], "run_at": "2026-01-01T00:00:00Z"}
TOLD = {"tags": ["red"], "needs": ["gpu"], "run_at": "2026-01-01T00:00:00.000000Z"}


class Jobs(Machine, name="jobs"):
    repo: str = "one"
    waiting = State(initial=True)
    work = State(lease=minutes(5))
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, limits=Limit("repo", key=field.repo, concurrent=1))
    finish = Event(work >> done, by=owner)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


def _claim(at: Board, **members: Any) -> httpx.Response:
    return at.send("POST", "/v1/claims", by="bob", json=members)


def test_v1(at: Board) -> None:
    made = at.create(**TERMS).json()
    assert {name: made[name] for name in TOLD} == TOLD
    assert _claim(at).json() == {"tasks": []}
    assert _claim(at, capabilities=["gpu"], tags=["blue"]).json() == {"tasks": []}
    assert _claim(at, capabilities=["gpu", "git"], tags=["red"]).json()["tasks"][0]["id"] == made["id"]
    assert paths(refused(at.create(tags=["a"] * 17), 422, "invalid")) == ["tags"]
    assert paths(refused(at.create(run_at="tomorrow"), 422, "invalid")) == ["run_at"]
    assert at.create(tags=None, needs=None, run_at=None).status_code == 201


def test_v1_says_when_to_ask_again(tmp_path: Path) -> None:
    with board(tmp_path, Jobs) as at:
        first, second = (at.create(fields={}).json()["id"] for _ in range(2))
        assert _claim(at).json()["tasks"][0]["id"] == first
        assert _claim(at).json() == {"tasks": []}
        answer = at.send("POST", f"/v1/tasks/{second}/events/take", by="bob", json={"args": {}})
        problem = refused(answer, 409, "limit_reached")
        assert (answer.headers["retry-after"], problem["retry_after_s"]) == ("1", 1)
        assert problem["failed"] == [{"limit": "repo", "used": 1, "wanted": 1, "max": 1, "key": "one"}]


def test_the_flat_service_says_it_in_one_line(tmp_path: Path) -> None:
    worker = Member("worker", "caller")
    posts = (Post("/take", "claim", "nothing to take", (worker, Member("job", "task"))),)
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Jobs]) as pm:
        first, second = (pm.create("jobs", {}, by="ann") for _ in range(2))
        served = app(pm, (Flat("jobs", "none", posts),))

        async def take() -> list[httpx.Response]:
            transport = httpx.ASGITransport(app=served)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return [await client.post("/take", json={"worker": "w", "job": task.id}) for task in (first, second)]

        taken, kept_back = asyncio.run(take())
        assert taken.status_code == 200
        assert (kept_back.status_code, kept_back.headers["retry-after"]) == (409, "1")
        assert kept_back.json() == {"detail": "limit repo is used up; try again in 1 s"}


def test_the_command_line(cli: Cli) -> None:
    Pointsman("sqlite:///pointsman.db").close()
    given = ("--tag", "red", "--need", "gpu", "--run-at", TERMS["run_at"], "--priority", "3")
    made = json.loads(cli("task", "create", "--as", "ann", "--arg", "title=t", "--arg", "brief=b", *given, "--json").out)
    assert {name: made[name] for name in (*TOLD, "priority")} == {**TOLD, "priority": 3}
    assert cli("task", "claim", "--as", "w").err.startswith("nothing_to_claim")
    wanted = ("--tag", "red", "--capability", "gpu", "--state", "queued", "--wait-s", "1", "--lease-s", "60")
    taken = json.loads(cli("task", "claim", "--as", "w", *wanted, "--json").out)
    assert (taken["id"], taken["state"]) == (made["id"], "claimed")
    assert cli("task", "create", "--arg", "title=t", "--arg", "brief=b", "--run-at", "soon").status == 2


def test_mcp(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        call = calling(pm)
        made = call("create_task", title="t", brief="b", **TERMS)
        assert {name: made[name] for name in TOLD} == TOLD
        assert call("claim_task")["code"] == "nothing_to_claim"
        assert call("claim_task", states=["drafting"], capabilities=["gpu"])["code"] == "nothing_to_claim"
        assert call("claim_task", states=["queued"], capabilities=["gpu"], tags=["red"])["id"] == made["id"]
        assert call("claim_task", tags="red")["failed"][0]["path"] == "tags"
        assert call("create_task", title="t", brief="b", run_at="soon")["failed"][0]["path"] == "run_at"
