"""Leases over `/v1`: take what waits, hold it for longer, give it back."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import NOBODY, Board, board, paths, refused
from pointsman import Event, Machine, State, Task, Tasks, hours, minutes
from pointsman.testing import FakeClock
from pointsman.types import seconds


class Letters(Machine, name="letters"):
    text: str
    draft = State(initial=True)
    sent = State(final=True, outcome="failed")
    send = Event(draft >> sent)


def is_full(task: Task) -> bool:
    return task.fields["full"] is True


class Crates(Machine, name="crates"):
    full: bool
    waiting = State(initial=True)
    work = State(lease=minutes(10))
    done = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, when=is_full)
    finish = Event(work >> done)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def at(tmp_path: Path, clock: FakeClock) -> Iterator[Board]:
    with board(tmp_path, clock=clock) as opened:
        yield opened


def _claim(at: Board, by: str | None = "bob", headers: dict[str, str] | None = None, **members: Any) -> Any:
    return at.send("POST", "/v1/claims", by, json=members, headers=headers or {})


def _taken(at: Board, by: str = "bob", **members: Any) -> list[dict[str, Any]]:
    answer = _claim(at, by, **members)
    assert answer.status_code == 200, answer.text
    assert set(answer.json()) == {"tasks"}
    return answer.json()["tasks"]


def _lease(at: Board, method: str, task: dict[str, Any], by: str = "bob", headers: dict[str, str] | None = None, **members: Any) -> Any:
    return at.send(method, f"/v1/tasks/{task['id']}/lease", by, json={"epoch": task["epoch"], **members}, headers=headers or {})


def _left(task: dict[str, Any], clock: FakeClock) -> int:
    return round(datetime.fromisoformat(task["lease"]["expires_at"]).timestamp() - clock.now / seconds(1))


# ── claims ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_oldest_is_taken_with_a_lease(at: Board, clock: FakeClock) -> None:
    first, second = (at.create().json()["id"] for _ in range(2))
    (task,) = _taken(at)
    assert (task["id"], task["owner"], task["state"], task["epoch"]) == (first, "bob", "claimed", 1)
    assert (_left(task, clock), task["lease"]["live"], task["allowed"]) == (900, True, ["start_draft", "fail"])
    assert [task["id"] for task in _taken(at, "eve", limit=5)] == [second]
    assert _taken(at) == _taken(at, limit=3) == []


def test_several_are_several_claims_and_over_the_maximum_is_the_maximum(at: Board) -> None:
    made = [at.create().json()["id"] for _ in range(101)]
    assert [task["id"] for task in _taken(at, limit=3)] == made[:3]
    at.create()
    at.create()
    at.create()
    assert len(_taken(at, limit=10**6)) == 100
    assert len(_taken(at, limit=10**6)) == 1


def test_a_claim_says_for_how_long_and_under_which_session(at: Board, clock: FakeClock) -> None:
    at.create()
    (task,) = _claim(at, lease_s=5, headers={"Pointsman-Session": "one"}).json()["tasks"]
    assert (_left(task, clock), task["session"]) == (5, "one")
    refused(_lease(at, "POST", task, headers={"Pointsman-Session": "two"}), 409, "not_owner")


def test_the_lapsed_are_taken_over_and_the_old_epoch_is_out(at: Board, clock: FakeClock) -> None:
    task = at.bring("drafting")
    clock.advance(minutes(15) + seconds(1))
    assert at.told(f"/v1/tasks/{task['id']}")["lease"]["live"] is False
    (taken,) = _taken(at, "eve")
    assert (taken["id"], taken["owner"], taken["epoch"]) == (task["id"], "eve", 2)
    for method in ("POST", "DELETE"):
        assert "epoch 2" in refused(_lease(at, method, task), 409, "lease_lost")["detail"]


def test_states_name_what_is_wanted(at: Board, clock: FakeClock) -> None:
    task = at.bring("approved")
    clock.advance(hours(25))
    assert _taken(at, "eve") == []
    (taken,) = _taken(at, "eve", states=["approved"])
    assert (taken["id"], taken["state"], taken["owner"]) == (task["id"], "approved", "eve")


def test_the_same_key_takes_one_task(at: Board) -> None:
    for _ in range(2):
        at.create()
    first, again = (_claim(at, headers={"Idempotency-Key": "k"}) for _ in range(2))
    told, told_again = first.json()["tasks"][0], again.json()["tasks"][0]
    assert told_again == told, "with the lease, which still runs"
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    refused(_claim(at, headers={"Idempotency-Key": "k"}, lease_s=5), 422, "idempotency_conflict")
    assert paths(refused(_claim(at, headers={"Idempotency-Key": "k"}, limit=2), 422, "invalid")) == ["header.Idempotency-Key"]
    assert len(_taken(at, limit=9)) == 1


def test_what_a_guard_keeps_back_is_passed_over(tmp_path: Path) -> None:
    """And told when there is nothing else."""
    with board(tmp_path, Crates) as at:
        full = [at.create(fields={"full": full}).json()["id"] for full in (True, False, True)][::2]
        assert [task["id"] for task in _taken(at, limit=3)] == full
        for limit in (1, 3):
            refused(_claim(at, limit=limit), 409, "guard_failed")


def test_the_machine_is_named_where_several_are_served(tmp_path: Path) -> None:
    with board(tmp_path, Tasks, Letters) as at:
        assert paths(refused(_claim(at), 422, "invalid")) == ["machine"]
        refused(_claim(at, machine="nonsense"), 404, "unknown_machine")
        at.create(machine="tasks")
        assert len(_taken(at, machine="tasks")) == 1


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({"tags": "x"}, "tags"),
        ({"tags": ["\u202e"]}, "tags[0]"),
        ({"capabilities": ["x"] * 17}, "capabilities"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": None}, "limit"),
        ({"lease_s": 0.5}, "lease_s"),
        ({"lease_s": 86_401}, "lease_s"),
        ({"lease_s": "60"}, "lease_s"),
        ({"wait_s": -1}, "wait_s"),
        ({"wait_s": 26}, "wait_s"),
        ({"states": []}, "states"),
        ({"states": "queued"}, "states"),
        ({"states": [1]}, "states[0]"),
    ],
)
def test_a_claim_that_does_not_fit(at: Board, members: dict[str, Any], path: str) -> None:
    at.create()
    assert paths(refused(_claim(at, **members), 422, "invalid")) == [path]
    assert at.pm.list()[0].owner is None


def test_whoever_claims_has_a_name(at: Board) -> None:
    at.create()
    assert paths(refused(_claim(at, by=None), 422, "invalid")) == ["header.Pointsman-As"]


def test_decisions_are_counted_as_what_they_were(at: Board) -> None:
    at.create()
    (task,) = _taken(at)
    _taken(at)
    _lease(at, "DELETE", task)
    figures = at.get("/metrics").text
    assert 'code="accepted"} 3' in figures, "creation, claim, release"
    assert 'code="nothing_to_claim"} 1' in figures


# ── renew and release ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_renewal_moves_the_end_and_nothing_else(at: Board, clock: FakeClock) -> None:
    task = at.bring("drafting")
    clock.advance(minutes(14))
    answer = _lease(at, "POST", task)
    assert (answer.status_code, answer.headers["etag"]) == (200, f'"{task["version"]}"')
    assert {**answer.json(), "lease": None} == {**task, "lease": None}
    assert _left(answer.json(), clock) == 900
    assert _left(_lease(at, "POST", task, lease_s=60).json(), clock) == 60
    assert len(at.pm.history(task["id"])) == task["version"]


def test_a_release_moves_as_a_lapse_does_and_keeps_the_fields(at: Board) -> None:
    task = at.bring("drafting")
    answer = _lease(at, "DELETE", task, reason="out of time")
    back = answer.json()
    assert (answer.status_code, answer.headers["etag"]) == (200, f'"{task["version"] + 1}"')
    assert (back["state"], back["owner"], back["lease"], back["fields"]) == ("queued", None, None, task["fields"])
    entry = at.told(f"/v1/tasks/{task['id']}/history")["entries"][-1]
    assert (entry["kind"], entry["by"], entry["reason"], entry["door"]) == ("release", "bob", "out of time", "http")
    refused(_lease(at, "DELETE", task), 409, "not_owner")
    assert [task["id"] for task in _taken(at, "eve")] == [task["id"]]


def test_the_same_key_releases_once(at: Board) -> None:
    task = at.bring("drafting")
    first, again = (_lease(at, "DELETE", task, headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (again.status_code, again.json()) == (200, first.json())
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_who_may_not(at: Board, method: str) -> None:
    task = at.bring("drafting")
    refused(_lease(at, method, task, by="eve"), 409, "not_owner")
    refused(_lease(at, method, {"id": NOBODY, "epoch": 1}), 404, "unknown_task")
    refused(_lease(at, method, at.bring("awaiting_approval")), 409, "wrong_state")
    assert paths(refused(_lease(at, method, {"id": "nonsense", "epoch": 1}), 422, "invalid")) == ["path.id"]
    assert at.told(f"/v1/tasks/{task['id']}", by="bob") == task


@pytest.mark.parametrize(
    ("method", "members", "path"),
    [
        ("POST", {}, "epoch"),
        ("DELETE", {}, "epoch"),
        ("POST", {"epoch": None}, "epoch"),
        ("POST", {"epoch": "1"}, "epoch"),
        ("POST", {"epoch": 1, "lease_s": 0}, "lease_s"),
        ("POST", {"epoch": 1, "reason": "x"}, "reason"),
        ("DELETE", {"epoch": 1, "reason": 5}, "reason"),
        ("DELETE", {"epoch": 1, "reason": "\0"}, "reason"),
        ("DELETE", {"epoch": 1, "counts": 1}, "counts"),
        ("DELETE", {"epoch": 1, "counts": False, "error": True}, "counts"),
        ("DELETE", {"epoch": 1, "deferred": True}, "deferred"),
    ],
)
def test_a_body_that_does_not_fit(at: Board, method: str, members: dict[str, Any], path: str) -> None:
    task = at.bring("drafting")
    answer = at.send(method, f"/v1/tasks/{task['id']}/lease", "bob", json=members)
    assert paths(refused(answer, 422, "invalid")) == [path]
    assert at.told(f"/v1/tasks/{task['id']}", by="bob") == task
