"""A check that outlives its caller over HTTP: 202 and where to look, replays, a newer proposal, the outcome."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from edges.v1_world import NOBODY, Board, board, paths, refused
from pointsman import Event, Machine, State, Verdict, check, minutes, owner
from pointsman.http import endpoints
from pointsman.http.flat import Flat, Member, Post

PATIENCE_S = 20
AT_ONCE = {"Prefer": "wait=0"}


class Gate:
    open: ClassVar[threading.Event]
    calls: ClassVar[list[str]]


def is_right(text: str) -> Verdict:
    Gate.calls.append(text)
    assert Gate.open.wait(PATIENCE_S)
    return Verdict(text == "right", "compared")


class Papers(Machine, name="papers"):
    text: str = ""
    draft = State(initial=True)
    done = State(final=True, outcome="failed")
    right = check(is_right, timeout=minutes(1))
    take = Event(draft >> draft, acquires=True)
    drop = Event(draft >> done)
    hand_in = Event(draft >> done, by=owner, sets="text", requires=right, otherwise=draft)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    Gate.open, Gate.calls = threading.Event(), []
    with board(tmp_path, Papers) as opened:
        yield opened
        Gate.open.set()


def _held(at: Board) -> str:
    id: str = at.create(fields={}).json()["id"]
    at.done(id, "take", "bob")
    return id


def _hand_in(at: Board, id: str, text: str = "right", **headers: str) -> Any:
    return at.propose(id, "hand_in", "bob", epoch=1, args={"text": text}, headers=AT_ONCE | headers)


def _settled(at: Board, location: str) -> dict[str, Any]:
    """The proposal once its check has spoken."""
    Gate.open.set()
    until = time.monotonic() + PATIENCE_S
    while (told := at.told(location))["status"] == "pending":
        assert time.monotonic() < until, "the proposal was never settled"
    return told


def test_a_check_that_outlives_its_caller(at: Board) -> None:
    id = _held(at)
    answer = _hand_in(at, id)
    told = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/proposals/{told['id']}")
    assert "etag" not in answer.headers
    assert (told["task"], told["event"], told["status"], told["by"], told["version"]) == (id, "hand_in", "pending", "bob", None)
    assert at.told(answer.headers["location"]) == told
    assert at.told(f"/v1/tasks/{id}")["version"] == 2
    settled = _settled(at, answer.headers["location"])
    assert (settled["status"], settled["version"], settled["refusal"]) == ("accepted", 3, None)
    assert at.told(f"/v1/tasks/{id}")["state"] == "done"
    assert Gate.calls == ["right"]


def test_the_outcome_of_a_check_that_fails(at: Board) -> None:
    id = _held(at)
    settled = _settled(at, _hand_in(at, id, "wrong").headers["location"])
    assert settled["status"] == "accepted", "the declared branch is a step of the task"
    assert at.told(f"/v1/tasks/{id}")["fields"]["text"] == "wrong"


def test_a_caller_who_waits_gets_the_outcome_itself(at: Board) -> None:
    Gate.open.set()
    id = _held(at)
    for prefer in ({}, {"Prefer": "respond-async, wait=5"}, {"Prefer": 'wait="5"; x'}, {"Prefer": "wait=" + "9" * 30}):
        answer = at.propose(id, "hand_in", "bob", epoch=1, args={"text": f"wrong {len(Gate.calls)}"}, headers=prefer)
        refused(answer, 409, "evidence_failed")
    assert at.propose(id, "hand_in", "bob", epoch=1, args={"text": "right"}).json()["state"] == "done"


@pytest.mark.parametrize("prefer", ["wait=", "wait=-1", "wait=1.5", "wait=soon", "wait=5 s"])
def test_a_wait_that_is_none(at: Board, prefer: str) -> None:
    id = _held(at)
    told = refused(at.propose(id, "hand_in", "bob", epoch=1, args={"text": "t"}, headers={"Prefer": prefer}), 422, "invalid")
    assert paths(told) == ["header.Prefer"]
    assert Gate.calls == []


def test_a_replay_of_a_pending_proposal(at: Board) -> None:
    id = _held(at)
    first, again = (_hand_in(at, id, **{"Idempotency-Key": "once"}) for _ in range(2))
    assert (again.status_code, again.headers["location"], again.json()) == (202, first.headers["location"], first.json())
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    _settled(at, first.headers["location"])
    late = _hand_in(at, id, **{"Idempotency-Key": "once"})
    assert (late.status_code, late.json()["state"], late.headers["idempotent-replayed"]) == (200, "done", "true")
    refused(_hand_in(at, id, "other", **{"Idempotency-Key": "once"}), 422, "idempotency_conflict")
    assert Gate.calls == ["right"]


def test_a_newer_proposal_supersedes(at: Board) -> None:
    id = _held(at)
    older, newer = (_hand_in(at, id, text).headers["location"] for text in ("wrong", "right"))
    assert at.told(older)["status"] == "superseded"
    assert _settled(at, newer)["status"] == "accepted"
    assert at.told(f"/v1/tasks/{id}")["fields"]["text"] == "right"


def test_a_proposal_that_ends_in_a_refusal(at: Board) -> None:
    id = _held(at)
    location = _hand_in(at, id).headers["location"]
    at.done(id, "drop", "ann")
    settled = _settled(at, location)
    assert (settled["status"], settled["version"]) == ("refused", None)
    assert (settled["refusal"]["code"], settled["refusal"]["recorded"]) == ("wrong_state", False)
    assert at.told(f"/v1/tasks/{id}")["version"] == 3


def test_a_dry_run_runs_no_check_and_says_so(at: Board) -> None:
    told = refused(at.propose(_held(at), "hand_in", "bob", dry_run=True, epoch=1, args={"text": "t"}), 409, "evidence_pending")
    assert "runs no check" in told["detail"]
    assert Gate.calls == []


def test_a_proposal_that_is_none(at: Board) -> None:
    refused(at.get(f"/v1/proposals/{NOBODY}"), 404, "unknown_proposal")
    assert paths(refused(at.get("/v1/proposals/nonsense"), 422, "invalid")) == ["path.id"]


FLAT = Flat(
    machine="papers",
    evidence="right",
    posts=(
        Post("/take", "claim", "taken", (Member("agent_id", "caller"), Member("task_id", "task", required=False))),
        Post(
            "/hand-in",
            "propose",
            "not yours",
            (Member("task_id", "task"), Member("agent_id", "caller"), Member("text", sets="text")),
            event="hand_in",
        ),
    ),
)


def test_the_flat_service_answers_202_too(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    from pointsman.http import app

    monkeypatch.setattr(endpoints, "WAIT_S", 0)
    flat = Board(at.pm, app(at.pm, [FLAT]), at.runner)
    id = flat.create(fields={}).json()["id"]
    assert flat.send("POST", "/take", json={"agent_id": "bob", "task_id": id}).status_code == 200
    answer = flat.send("POST", "/hand-in", json={"task_id": id, "agent_id": "bob", "text": "right"})
    assert (answer.status_code, set(answer.json())) == (202, {"proposal"})
    assert answer.headers["location"] == f"/v1/proposals/{answer.json()['proposal']}"
    assert _settled(flat, answer.headers["location"])["status"] == "accepted"
    document = flat.api.openapi()["paths"]
    assert "202" in document["/hand-in"]["post"]["responses"]
    assert "202" not in document["/take"]["post"]["responses"]
