"""Tasks that wait for others over `/v1`: dependencies, batches, parents, cancelling; and unparking."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import FIELDS, NOBODY, Board, board, paths, refused
from engine.graph_world import Parts
from pointsman import Tasks
from pointsman.testing import FakeClock


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, clock=FakeClock()) as opened:
        yield opened


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, Parts, clock=FakeClock()) as opened:
        yield opened


def _post(at: Board, path: str, by: str | None = "ann", headers: dict[str, str] | None = None, **members: Any) -> Any:
    return at.send("POST", path, by, json=members, headers=headers or {})


def _batch(at: Board, *items: dict[str, Any], by: str = "ann", headers: dict[str, str] | None = None, **members: Any) -> Any:
    return _post(at, "/v1/tasks/batch", by, headers, tasks=[{"fields": FIELDS, **item} for item in items], **members)


def test_a_known_key_answers_200_and_that_task(at: Board) -> None:
    first = at.create(dedupe_key="build/7")
    again = at.create(dedupe_key="build/7")
    assert (first.status_code, again.status_code) == (201, 200)
    assert (again.json()["id"], again.headers["etag"]) == (first.json()["id"], '"1"')
    assert again.headers["location"].endswith(first.json()["id"])
    told = refused(at.create(dedupe_key="build/7", priority=1), 422, "dedupe_conflict")
    assert (told["task"], paths(told)) == (first.json()["id"], ["dedupe_key"])


def test_a_task_that_waits(at: Board) -> None:
    first = at.create().json()
    second = at.create(blocked_by=[{"task": first["id"], "on_failure": "continue"}, {"task": at.create().json()["id"]}]).json()
    assert second["blocked_by"][0] == {"task": first["id"], "on_failure": "continue"}
    told = refused(at.propose(second["id"], "claim", "bob"), 409, "blocked")
    assert {item["task"] for item in told["failed"]} == {item["task"] for item in second["blocked_by"]}
    told = refused(at.create(blocked_by=[{"task": NOBODY}]), 404, "unknown_task")
    assert paths(told) == ["blocked_by[0].task"]
    for wrong in (
        [{"task": "x"}],
        [{"task": NOBODY, "on_failure": "x"}],
        [{}],
        "x",
        [{"task": NOBODY, "state": "done"}],
        [{"task": NOBODY}] * 101,
    ):
        refused(at.create(blocked_by=wrong), 422, "invalid")


def test_a_batch(at: Board) -> None:
    items = [{"ref": "b", "blocked_by": [{"task": "#a"}]}, {"ref": "a", "priority": 1}]
    made = _batch(at, *items, headers={"Idempotency-Key": "k"})
    assert made.status_code == 201
    second, first = made.json()["tasks"]
    assert second["blocked_by"] == [{"task": first["id"], "on_failure": "block"}]
    again = _batch(at, *items, headers={"Idempotency-Key": "k"})
    assert (again.json(), again.headers["idempotent-replayed"]) == (made.json(), "true")
    refused(_batch(at, {}, headers={"Idempotency-Key": "k"}), 422, "idempotency_conflict")
    told = refused(_batch(at, {}, {"fields": {"title": " ", "brief": "b"}}, {"state": "done"}), 422, "invalid")
    assert paths(told) == ["tasks[2].state"]
    told = refused(_batch(at, {}, {"fields": {"title": " ", "brief": "b", "owner": "me"}}), 422, "invalid")
    assert paths(told) == ["tasks[1].fields.owner", "tasks[1].fields.title"]
    told = refused(_batch(at, {"ref": "a", "blocked_by": [{"task": "#b"}]}, {"ref": "b", "blocked_by": [{"task": "#a"}]}), 422, "invalid")
    assert "cycle: #a → #b → #a" in told["detail"]
    told = refused(_batch(at, {"blocked_by": [{"task": NOBODY}]}), 404, "unknown_task")
    assert paths(told) == ["tasks[0].blocked_by[0].task"]
    assert len(at.told("/v1/tasks")["tasks"]) == 2


def test_a_parent_and_its_children(parts: Board) -> None:
    above = _post(parts, "/v1/tasks", fields={}).json()
    assert "children" not in above
    above = parts.done(above["id"], "take", "bob")
    children = _batch(parts, {"fields": {}}, {"fields": {}}, by="bob", parent=above["id"], epoch=above["epoch"], join="any").json()["tasks"]
    seen = parts.told(f"/v1/tasks/{above['id']}")
    assert (seen["children"], seen["lease"]) == ({"open": 2, "done": 0, "failed": 0, "cancelled": 0}, None)
    assert children[0]["parent"] == above["id"]
    refused(_post(parts, "/v1/tasks", "eve", fields={}, parent=above["id"], epoch=above["epoch"]), 409, "not_owner")
    told = refused(_batch(parts, *[{"fields": {}}] * 3, by="bob", parent=above["id"], epoch=above["epoch"]), 409, "limit_reached")
    assert told["limit"] == {"max_children": 4}
    parts.done(children[0]["id"], "fail", "ann")
    parts.done(children[1]["id"], "fail", "ann")
    seen = parts.told(f"/v1/tasks/{above['id']}")
    assert (seen["children"]["failed"], seen["lease"]["live"], seen["owner"]) == (2, True, "bob")


def test_cancelling_answers_a_report(parts: Board) -> None:
    above = parts.done(_post(parts, "/v1/tasks", fields={}).json()["id"], "take", "bob")
    (child,) = _batch(parts, {"fields": {}}, by="bob", parent=above["id"], epoch=above["epoch"]).json()["tasks"]
    path = f"/v1/tasks/{above['id']}/cancel"
    for wrong in ({}, {"reason": " "}, {"reason": "x", "cascade": 1}, {"reason": "x", "state": "done"}):
        refused(_post(parts, path, **wrong), 422, "invalid")
    refused(_post(parts, path, reason="x", headers={"If-Match": '"1"'}), 412, "stale_version")
    refused(_post(parts, path, reason="x", epoch=7), 409, "lease_lost")
    answer = _post(parts, path, reason="not wanted", cascade=True, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 200
    assert answer.json()["task"]["state"] == "dropped"
    assert [answer.json()[name] for name in ("happened", "in_doubt", "undoable", "not_undoable")] == [[], [], [], []]
    again = _post(parts, path, reason="not wanted", cascade=True, headers={"Idempotency-Key": "k"})
    assert (again.json(), again.headers["idempotent-replayed"]) == (answer.json(), "true")
    assert parts.told(f"/v1/tasks/{child['id']}")["state"] == "dropped"
    refused(_post(parts, path, reason="again"), 409, "wrong_state")
    refused(_post(parts, f"/v1/tasks/{NOBODY}/cancel", reason="x"), 404, "unknown_task")


@pytest.mark.parametrize(
    ("said", "attempts"),
    [
        ({}, {"lost": 1, "error": 0, "deferred": 0}),
        ({"counts": False}, {"lost": 0, "error": 0, "deferred": 1}),
        ({"error": True}, {"lost": 0, "error": 1, "deferred": 0}),
    ],
)
def test_giving_back_says_what_it_came_to(at: Board, said: dict[str, bool], attempts: dict[str, int]) -> None:
    task = at.bring("claimed")
    answer = at.send("DELETE", f"/v1/tasks/{task['id']}/lease", "bob", json={"epoch": task["epoch"], **said})
    assert answer.json()["attempts"] == attempts
    assert (answer.json()["run_at"] is None) == ("error" not in said)


def test_unparking(parts: Board) -> None:
    task = parts.done(_post(parts, "/v1/tasks", fields={}).json()["id"], "take", "bob")
    path = f"/v1/tasks/{task['id']}/unpark"
    refused(_post(parts, path, reason="x"), 409, "wrong_state")
    parts.send("DELETE", f"/v1/tasks/{task['id']}/lease", "bob", json={"epoch": task["epoch"]})
    refused(parts.propose(task["id"], "take", "bob"), 409, "parked")
    refused(_post(parts, path), 422, "invalid")
    refused(_post(parts, path, reason="x", headers={"If-Match": '"1"'}), 412, "stale_version")
    answer = _post(parts, path, reason="mended")
    assert (answer.status_code, answer.json()["parked"]) == (200, None)
    assert parts.done(task["id"], "take", "bob")["state"] == "work"


def test_where_several_machines_are_served_each_item_names_its_own(tmp_path: Path) -> None:
    with board(tmp_path, Parts, Tasks) as several:
        told = refused(_batch(several, {"fields": {}}), 422, "invalid")
        assert paths(told) == ["tasks[0].machine"]
        made = _batch(several, {"fields": {}, "machine": "parts", "ref": "a"}, {"machine": "tasks", "blocked_by": [{"task": "#a"}]})
        assert [task["machine"] for task in made.json()["tasks"]] == ["parts", "tasks"]
