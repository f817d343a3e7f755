"""Leases at the flat door, which knows owners by name: a lapsed task goes on as if nothing had happened until somebody
else takes it, with all its fields."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

import support
from pointsman import Pointsman, hours, minutes, seconds
from pointsman.http import app
from pointsman.testing import FakeClock

Post = Callable[..., tuple[int, Any]]
OVER = minutes(15) + seconds(1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, clock=clock) as opened:
        yield opened
        assert opened.verify().ok


@pytest.fixture
def post(pm: Pointsman) -> Iterator[Post]:
    with asyncio.Runner() as runner:
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app(pm)), base_url="http://127.0.0.1")

        def send(path: str, **members: Any) -> tuple[int, Any]:
            sent = client.post(path, content=json.dumps(members), headers={"content-type": "application/json"})
            answer = runner.run(sent)
            return answer.status_code, answer.json()

        yield send


def _enqueued(post: Post) -> str:
    status, told = post("/enqueue", title="Release notes", brief=support.BRIEF)
    assert status == 200
    return told["id"]


def _brought(post: Post, state: str) -> str:
    """A task of worker-a, on its way to a state."""
    task = _enqueued(post)
    way = ("claimed", "drafting", "awaiting_approval", "approved")
    calls = (
        ("/claim", {"agent_id": support.OWNER}),
        ("/start-draft", {"agent_id": support.OWNER}),
        ("/request-approval", {"agent_id": support.OWNER, "draft": support.GOOD}),
        ("/approve", {"reviewer": support.REVIEWER}),
    )
    for path, members in calls[: way.index(state) + 1]:
        status, told = post(path, task_id=task, **members)
        assert status == 200, told
    assert told["state"] == state
    return task


@pytest.mark.parametrize("state", ["claimed", "drafting"])
@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "the next"])
def test_a_lapsed_task_is_taken_over_with_its_fields(post: Post, pm: Pointsman, clock: FakeClock, state: str, by_id: bool) -> None:
    task = _brought(post, state)
    wanted = {"task_id": task} if by_id else {}
    refused = "no queued task, or it was already claimed"
    assert post("/claim", agent_id=support.OTHER, **wanted) == (409, {"detail": refused})
    clock.advance(OVER)
    status, told = post("/claim", agent_id=support.OTHER, **wanted)
    assert (status, told["id"], told["state"], told["owner"]) == (200, task, "claimed", support.OTHER)
    assert pm.get(task).fields["title"] == "Release notes"
    assert [entry.event for entry in pm.history(task)][-2:] == ["lapse", "claim"]
    assert post("/start-draft", task_id=task, agent_id=support.OWNER)[0] == 409
    assert post("/start-draft", task_id=task, agent_id=support.OTHER)[0] == 200


@pytest.mark.parametrize(("state", "path"), [("claimed", "/start-draft"), ("drafting", "/start-draft")])
def test_until_somebody_takes_it_the_owner_goes_on(post: Post, clock: FakeClock, state: str, path: str) -> None:
    task = _brought(post, state)
    clock.advance(hours(5))
    assert post(path, task_id=task, agent_id=support.OWNER)[0] == 200
    assert post("/claim", agent_id=support.OTHER, task_id=task)[0] == 409


def test_every_accepted_call_renews(post: Post, clock: FakeClock) -> None:
    task = _brought(post, "drafting")
    for _ in range(4):
        clock.advance(minutes(14))
        assert post("/start-draft", task_id=task, agent_id=support.OWNER)[0] == 200
    assert post("/claim", agent_id=support.OTHER, task_id=task)[0] == 409


def test_the_oldest_of_queued_and_lapsed_goes_first(post: Post, clock: FakeClock) -> None:
    lapsed = _brought(post, "drafting")
    clock.advance(seconds(1))
    queued = _enqueued(post)
    clock.advance(OVER)
    assert [post("/claim", agent_id=support.OTHER)[1]["id"] for _ in range(2)] == [lapsed, queued]


def test_what_waits_for_a_person_is_nobodys_to_take(post: Post, clock: FakeClock) -> None:
    task = _brought(post, "awaiting_approval")
    clock.advance(hours(100))
    assert post("/claim", agent_id=support.OTHER, task_id=task)[0] == 409
    status, told = post("/reject", task_id=task, note="shorter")
    assert (status, told["owner"], told["state"]) == (200, support.OWNER, "drafting")
    clock.advance(minutes(14))
    assert post("/claim", agent_id=support.OTHER, task_id=task)[0] == 409


def test_what_was_approved_is_held_a_day_and_stays_approved(post: Post, clock: FakeClock) -> None:
    task = _brought(post, "approved")
    clock.advance(hours(24) + seconds(1))
    assert post("/claim", agent_id=support.OTHER)[0] == 409
    status, told = post("/claim", agent_id=support.OTHER, task_id=task)
    assert (status, told["state"], told["owner"]) == (200, "approved", support.OTHER)
    assert post("/complete", task_id=task, agent_id=support.OTHER)[0] == 200


def test_a_task_that_was_lost_too_often_is_parked_in_one_line(post: Post, clock: FakeClock) -> None:
    task = _enqueued(post)
    for _ in range(5):
        assert post("/claim", agent_id=support.OWNER, task_id=task)[0] == 200
        clock.advance(OVER)
    reason = "out of work: tried 5 times without a result: 5 lost, 0 in error; an operator unparks it"
    for _ in range(2):
        assert post("/claim", agent_id=support.OTHER, task_id=task) == (409, {"detail": reason})
    assert post("/claim", agent_id=support.OTHER)[0] == 409
