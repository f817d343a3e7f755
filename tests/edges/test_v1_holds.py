"""Holds over `/v1`, and what whoever is held is told at every door."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.mcp_world import calling
from edges.v1_world import NOBODY, Board, board, paths, refused
from pointsman import Principal
from pointsman.testing import FakeClock
from pointsman.types import SECOND, iso, minutes

DOWN = "the provider is down"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def at(tmp_path: Path, clock: FakeClock) -> Iterator[Board]:
    with board(tmp_path, clock=clock) as opened:
        yield opened


def _placed(at: Board, **members: Any) -> dict[str, Any]:
    answer = at.send("POST", "/v1/holds", "olga", json={"match": {"event": "claim"}, "reason": DOWN, **members})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_hold_is_placed_listed_and_lifted(at: Board, clock: FakeClock) -> None:
    hold = _placed(at, until=iso(clock.now + minutes(5)), release_per_s=3)
    now = iso(clock.now)
    assert hold == {
        "id": hold["id"],
        "match": {"event": "claim"},
        "from": now,
        "until": iso(clock.now + minutes(5)),
        "reason": DOWN,
        "release_per_s": 3,
        "placed": {"by": "olga", "at": now},
        "lifted": None,
    }
    assert at.told("/v1/holds") == {"holds": [hold], "next": None}
    clock.advance(SECOND)
    lifted = at.send("DELETE", f"/v1/holds/{hold['id']}", "otto")
    assert (lifted.status_code, lifted.json()) == (200, hold | {"lifted": {"by": "otto", "at": iso(clock.now)}})
    assert at.send("DELETE", f"/v1/holds/{hold['id']}", "ann").json() == lifted.json()


def test_the_same_hold_is_placed_once_and_takes_no_key(at: Board, clock: FakeClock) -> None:
    hold = _placed(at)
    clock.advance(SECOND)
    assert _placed(at) == hold
    body = {"match": {"event": "claim"}, "reason": DOWN}
    answer = at.send("POST", "/v1/holds", "olga", json=body, headers={"Idempotency-Key": "k"})
    assert [item["path"] for item in refused(answer, 422, "invalid")["failed"]] == ["header.Idempotency-Key"]
    assert at.told("/v1/holds")["holds"] == [hold]


def test_the_list_comes_in_pages(at: Board, clock: FakeClock) -> None:
    ids = list[str]()
    for rate in range(1, 4):
        clock.advance(SECOND)
        ids.append(_placed(at, release_per_s=rate)["id"])
    first = at.told("/v1/holds", limit=2)
    second = at.told("/v1/holds", limit=2, cursor=first["next"])
    assert [hold["id"] for hold in first["holds"] + second["holds"]] == ids
    assert second["next"] is None
    assert at.get("/v1/holds", cursor="x").status_code == 422


def test_whoever_is_held_is_told_until_when(at: Board, clock: FakeClock) -> None:
    task = at.create().json()
    hold = _placed(at, until=iso(clock.now + 90 * SECOND))
    answer = at.propose(task["id"], "claim", "bob")
    told = refused(answer, 409, "held")
    assert answer.headers["retry-after"] == "90"
    assert (told["hold"], told["reason"], told["until"], told["retry_after_s"]) == (hold["id"], DOWN, hold["until"], 90)
    assert DOWN in told["detail"]
    assert at.send("POST", "/v1/claims", "bob", json={}).json() == {"tasks": []}
    assert at.told(f"/v1/tasks/{task['id']}", "ann") == task


def test_without_an_end_nobody_is_told_to_come_back(at: Board) -> None:
    task = at.create().json()
    _placed(at)
    answer = at.propose(task["id"], "claim", "bob")
    assert refused(answer, 409, "held")["until"] is None
    assert "retry-after" not in answer.headers


BAD = [
    ({"match": {}}, ["match"]),
    ({"match": {"owner": "bob"}}, ["match.owner"]),
    ({"match": {"event": "fly"}}, ["match.event"]),
    ({"match": {"event": None}}, ["match.event"]),
    ({"match": {"tag": "a\nb"}}, ["match.tag"]),
    ({"match": None}, ["match"]),
    ({"reason": ""}, ["reason"]),
    ({"reason": "  "}, ["reason"]),
    ({"reason": "a\0b"}, ["reason"]),
    ({"from": "yesterday", "until": "2026-01-31 12:00"}, ["from", "until"]),
    ({"until": "2026-01-31T12:00:00"}, ["until"]),
    ({"until": "1999-01-01T00:00:00Z"}, ["until"]),
    ({"until": 5}, ["until"]),
    ({"release_per_s": 0}, ["release_per_s"]),
    ({"release_per_s": "5"}, ["release_per_s"]),
    ({"release_per_s": True}, ["release_per_s"]),
    ({"release_per_s": 10**18}, ["release_per_s"]),
    ({"lifted": None}, ["lifted"]),
]


@pytest.mark.parametrize(("members", "where"), BAD)
def test_what_does_not_fit_is_named_and_places_nothing(at: Board, members: dict[str, Any], where: list[str]) -> None:
    answer = at.send("POST", "/v1/holds", "olga", json={"match": {"event": "claim"}, "reason": DOWN, **members})
    assert paths(refused(answer, 422, "invalid")) == where
    assert at.told("/v1/holds")["holds"] == []


def test_a_time_out_of_range_is_no_fault_of_ours(at: Board) -> None:
    for text in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        answer = at.send("POST", "/v1/holds", "olga", json={"match": {"event": "claim"}, "reason": DOWN, "from": text})
        assert paths(refused(answer, 422, "invalid")) == ["from"]


def test_whoever_places_a_hold_has_a_name(at: Board) -> None:
    answer = at.send("POST", "/v1/holds", json={"match": {"event": "claim"}, "reason": DOWN})
    assert paths(refused(answer, 422, "invalid")) == ["header.Pointsman-As"]


def test_what_is_unknown_is_not_found(at: Board) -> None:
    refused(at.send("POST", "/v1/holds", "olga", json={"match": {"machine": "x"}, "reason": DOWN}), 404, "unknown_machine")
    refused(at.send("DELETE", f"/v1/holds/{NOBODY}", "olga"), 404, "unknown_hold")
    assert at.send("DELETE", "/v1/holds/x", "olga").status_code == 422


# ── the other doors ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_flat_service_says_it_in_one_line(at: Board, clock: FakeClock) -> None:
    id = at.create().json()["id"]
    at.pm.hold({"state": "queued"}, by="olga", reason="first line\nsecond", until=clock.now + minutes(1))
    answer = at.send("POST", "/claim", json={"agent_id": "bob", "task_id": id})
    detail = answer.json()["detail"]
    assert (answer.status_code, answer.headers["retry-after"]) == (409, "60")
    assert "first line second" in detail
    assert "\n" not in detail
    assert at.send("POST", "/claim", json={"agent_id": "bob"}).json() == {"detail": "no queued task, or it was already claimed"}


def test_an_agent_is_told_so_too(at: Board) -> None:
    call = calling(at.pm)
    id = at.create().json()["id"]
    hold = at.pm.hold({"machine": "tasks"}, by=Principal("olga", roles=frozenset({"operator"})), reason=DOWN)
    told = call("claim_task", task_id=id)
    assert (told["code"], told["hold"], told["reason"], told["until"], told["recorded"]) == ("held", hold.id, DOWN, None, False)
    assert call("claim_task")["code"] == "nothing_to_claim"
    assert json.dumps(told)


def test_a_task_tells_what_it_waits_for(at: Board) -> None:
    task = at.bring("awaiting_approval")
    told = at.told(f"/v1/tasks/{task['id']}")
    assert told["waiting"] == {
        "for": "decision",
        "who": "role reviewer and not a contributor",
        "since": told["updated_at"],
        "deadline": told["waiting"]["deadline"],
        "satisfiable": True,
    }
    assert told["waiting"]["deadline"] > told["updated_at"]
    assert at.create().json()["waiting"]["for"] == "owner"
    assert at.told(f"/v1/tasks/{task['id']}", version=1)["waiting"] is None
    assert {item["waiting"]["for"] for item in at.told("/v1/tasks")["tasks"]} == {"decision", "owner"}
