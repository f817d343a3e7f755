"""Leases over MCP: renew_lease and release_task, and the end of a connection."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.mcp_world import calling
from pointsman import Pointsman, Tasks, minutes
from pointsman.kernel.rules import Principal
from pointsman.mcp.desk import DOOR
from pointsman.mcp.seat import Held, Seat
from pointsman.mcp.stdio import give_back_all
from pointsman.mcp.tools import Seating, toolbox
from pointsman.testing import FakeClock
from pointsman.types import seconds

FIELDS = {"title": "Release notes", "brief": "b"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(tmp_path: Path, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Tasks], clock=clock) as opened:
        yield opened


def _created(pm: Pointsman) -> str:
    return pm.create("tasks", FIELDS, by="ann").id


def _left(pm: Pointsman, task_id: str, clock: FakeClock) -> int:
    lease = pm.get(task_id).lease
    assert lease is not None
    return round((lease.expires_at - clock.now) / seconds(1))


def test_over_http_the_epoch_is_an_argument_and_over_stdio_it_need_not_be() -> None:
    tasks = {"tasks": Tasks.definition}
    http, stdio = (toolbox(tasks, Seating(named=True, holds=holds)) for holds in (False, True))
    for name in ("renew_lease", "release_task"):
        assert http[name].input["required"] == ["task_id", "epoch"]
        assert stdio[name].input["required"] == ["task_id"]
        assert "session" not in stdio[name].input["properties"]
    assert "before `lease.expires_at`" in http["renew_lease"].description


def test_a_claim_shows_its_lease_and_may_ask_for_a_time(pm: Pointsman, clock: FakeClock) -> None:
    wanted, call = _created(pm), calling(pm)
    task = call("claim_task", lease_s=60)
    assert (task["id"], task["lease"]["live"], _left(pm, wanted, clock)) == (wanted, True, 60)
    assert call("claim_task", lease_s=0)["failed"][0]["path"] == "lease_s"


def test_renewing_over_http_takes_the_epoch(pm: Pointsman, clock: FakeClock) -> None:
    wanted, call = _created(pm), calling(pm)
    held = call("claim_task")
    clock.advance(minutes(14))
    assert call("renew_lease", task_id=wanted)["failed"][0]["path"] == "epoch"
    assert call("renew_lease", task_id=wanted, epoch=7)["code"] == "lease_lost"
    assert call("renew_lease", task_id=wanted, epoch=held["epoch"], session="another")["code"] == "not_owner"
    renewed = call("renew_lease", task_id=wanted, epoch=held["epoch"], session=held["session"])
    assert (renewed["version"], _left(pm, wanted, clock)) == (held["version"], 900)
    assert renewed["tools"] == ["start_draft", "fail_task"]
    call("renew_lease", task_id=wanted, epoch=held["epoch"], lease_s=5)
    assert _left(pm, wanted, clock) == 5


def test_over_stdio_the_connection_knows_the_epoch_until_it_gives_the_task_back(pm: Pointsman, clock: FakeClock) -> None:
    wanted, call = _created(pm), calling(pm, holds=True)
    call("claim_task")
    clock.advance(minutes(14))
    call("renew_lease", task_id=wanted)
    assert _left(pm, wanted, clock) == 900
    back = call("release_task", task_id=wanted.upper(), reason="cannot do it")
    assert (back["state"], back["owner"], back["lease"]) == ("queued", None, None)
    assert pm.history(wanted)[-1].kind == "release"
    assert call("renew_lease", task_id=wanted)["code"] == "not_owner"


def test_a_replaced_owner_can_neither_renew_nor_release(pm: Pointsman, clock: FakeClock) -> None:
    wanted, call, other = _created(pm), calling(pm, holds=True), calling(pm, "worker-b")
    call("claim_task")
    clock.advance(minutes(16))
    assert other("claim_task")["owner"] == "worker-b"
    for tool in ("renew_lease", "release_task"):
        assert call(tool, task_id=wanted)["code"] == "lease_lost"
    assert pm.get(wanted).owner == "worker-b"


def test_a_release_with_its_key_is_done_once(pm: Pointsman) -> None:
    wanted, call = _created(pm), calling(pm)
    held = call("claim_task")
    first, again = (call("release_task", task_id=wanted, epoch=held["epoch"], idempotency_key="k") for _ in range(2))
    assert (again["version"], again["state"]) == (first["version"], "queued")
    assert len(pm.history(wanted)) == first["version"]


def _holding(pm: Pointsman, *events: str, **args: Any) -> tuple[str, Seat]:
    """A task of worker-a, and the seat of a connection that acquired it."""
    task = pm.claim("tasks", by="worker-a", id=_created(pm), session="mcp-1")
    assert task is not None
    held = Held()
    held.note(task, Principal("worker-a"), 0.0, acquired=True)
    for event in events:
        task = pm.propose(task.id, event, args if event == "request_approval" else {}, by="worker-a", epoch=task.epoch)
    return task.id, Seat(("worker-a",), "embedded", held)


def test_the_end_of_a_connection_gives_back_what_it_held(pm: Pointsman) -> None:
    wanted, seat = _holding(pm, "start_draft")
    give_back_all(pm.through(DOOR), seat)
    entry = pm.history(wanted)[-1]
    assert (pm.get(wanted).state, entry.kind, entry.by, entry.door) == ("queued", "release", "worker-a", "mcp")


def test_it_leaves_alone_what_waits_for_a_decision_or_has_another_owner(pm: Pointsman, clock: FakeClock) -> None:
    draft = "Release notes: the scheduler now shares its queue between six agents without double claims."
    waiting, seat = _holding(pm, "start_draft", "request_approval", draft=draft)
    give_back_all(pm.through(DOOR), seat)
    assert (pm.get(waiting).state, pm.get(waiting).owner) == ("awaiting_approval", "worker-a")
    lost, seat = _holding(pm)
    clock.advance(minutes(16))
    pm.claim("tasks", by="worker-b", id=lost)
    give_back_all(pm.through(DOOR), seat)
    assert pm.get(lost).owner == "worker-b"
    assert pm.refusals() == [], "nothing was asked for that could not be had"


@pytest.mark.parametrize(("said", "attempts"), [({"counts": False}, (0, 0, 1)), ({"error": True}, (0, 1, 0)), ({}, (1, 0, 0))])
def test_giving_back_says_what_it_came_to(pm: Pointsman, said: dict[str, bool], attempts: tuple[int, int, int]) -> None:
    wanted, call = _created(pm), calling(pm)
    task = call("claim_task")
    call("release_task", task_id=wanted, epoch=task["epoch"], session=task["session"], **said)
    found = pm.get(wanted).attempts
    assert (found.lost, found.error, found.deferred) == attempts


def test_a_piece_of_work_with_a_name_is_made_once(pm: Pointsman) -> None:
    call = calling(pm)
    first, again = (call("create_task", **FIELDS, dedupe_key="build/7") for _ in range(2))
    assert again["id"] == first["id"]
    assert call("create_task", **{**FIELDS, "title": "other"}, dedupe_key="build/7")["code"] == "dedupe_conflict"
