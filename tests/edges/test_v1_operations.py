"""The ledger over `/v1`: operations, what came of them, checkpoints, and what somebody needs to resume."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.ledger_world import Refunds
from edges.v1_world import NOBODY, Board, Response, board, paths, refused
from pointsman.http.v1.table import OPERATIONS
from pointsman.testing import FakeClock
from pointsman.types import iso, minutes, seconds

Json = dict[str, Any]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def at(tmp_path: Path, clock: FakeClock) -> Iterator[Board]:
    with board(tmp_path, Refunds, clock=clock) as opened:
        yield opened
        assert opened.pm.verify().ok


@pytest.fixture
def task(at: Board) -> Json:
    """An approved refund of `bob`."""
    made = at.create(fields={"order": "A-1", "amount": 12}).json()
    taken = at.done(made["id"], "take", "bob")
    judged = at.done(made["id"], "submit", "bob", epoch=taken["epoch"])
    return at.done(made["id"], "approve", "rita", digest=judged["digest"])


def begin(at: Board, task: Json, by: str = "bob", headers: dict[str, str] | None = None, **members: Any) -> Response:
    body = {"epoch": task["epoch"], **members}
    return at.send("POST", f"/v1/tasks/{task['id']}/operations", by, json=body, headers=headers or {})


def begun(at: Board, task: Json, name: str, by: str = "bob", **members: Any) -> Json:
    answer = begin(at, task, by, name=name, **members)
    assert answer.status_code == 201, answer.text
    return answer.json()


def finish(at: Board, operation: Json, status: str, by: str = "bob", headers: dict[str, str] | None = None, **members: Any) -> Response:
    path = f"/v1/operations/{operation['id']}/outcome"
    return at.send("POST", path, by, json={"status": status, "result": None, **members}, headers=headers or {})


def keep(at: Board, task: Json, by: str = "bob", **members: Any) -> Response:
    return at.send("PUT", f"/v1/tasks/{task['id']}/checkpoint", by, json={"epoch": task["epoch"], "data": None, **members})


def replaced(at: Board, clock: FakeClock, task: Json, by: str = "carl") -> Json:
    clock.advance(minutes(10) + seconds(1))
    return at.done(task["id"], "go_on", by)


def version(at: Board, task: Json) -> int:
    return at.told(f"/v1/tasks/{task['id']}")["version"]


# ── begin and outcome ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_operation_is_begun_found_and_finished(at: Board, task: Json, clock: FakeClock) -> None:
    clock.advance(seconds(1))
    now = iso(clock.now)
    operation = begun(at, task, "load", kind="keyed", request={"page": 1}, timeout_s=30, settle_s=5)
    assert operation == {
        "id": operation["id"],
        "task": task["id"],
        "name": "load",
        "kind": "keyed",
        "effect": None,
        "request": {"page": 1},
        "status": "started",
        "result": None,
        "epoch": task["epoch"],
        "attempt": 1,
        "compensates": None,
        "begun": {"by": "bob", "at": now},
        "deadline": iso(clock.now + seconds(30)),
        "settles_at": iso(clock.now + seconds(35)),
        "settled": None,
        "testimony": [],
    }
    again = begin(at, task, name="load", kind="keyed", request={"page": 1})
    assert (again.status_code, again.json()) == (200, operation)
    done = finish(at, operation, "succeeded", epoch=task["epoch"], result=[1], note="as it was")
    assert (done.status_code, done.json()["status"], done.json()["result"]) == (200, "succeeded", [1])
    assert done.json()["settled"]["note"] == "as it was"
    known = begin(at, task, name="load", kind="keyed", request={"page": 1})
    assert (known.status_code, known.json()) == (200, done.json())


def test_a_key_is_answered_again_as_it_was(at: Board, task: Json) -> None:
    key = {"Idempotency-Key": "k"}
    first, again = (begin(at, task, headers=key, name="load", kind="keyed") for _ in range(2))
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    refused(begin(at, task, headers=key, name="load", kind="ask"), 422, "idempotency_conflict")
    end = {"Idempotency-Key": "e"}
    done, once_more = (finish(at, first.json(), "not_done", headers=end, epoch=task["epoch"]) for _ in range(2))
    assert (done.json(), once_more.headers["idempotent-replayed"]) == (once_more.json(), "true")
    refused(finish(at, first.json(), "failed", headers=end, epoch=task["epoch"]), 422, "idempotency_conflict")


def test_a_declared_effect_sends_what_was_approved(at: Board, task: Json) -> None:
    operation = begun(at, task, "refund", effect="refund")
    assert (operation["kind"], operation["effect"], operation["request"]) == ("lookup", "refund", {"order": "A-1", "amount": 12})
    assert begin(at, task, name="refund", effect="refund", kind="lookup", request={"amount": 12, "order": "A-1"}).status_code == 200
    other = begin(at, task, name="mail", effect="mail", kind="keyed", request={"order": "A-2"}, settle_s=9)
    assert paths(refused(other, 422, "invalid")) == ["kind", "request", "settle_s"]
    assert paths(refused(begin(at, task, name="mail", effect="male"), 422, "invalid")) == ["effect"]
    no = refused(begin(at, task, name="again", effect="refund"), 422, "idempotency_conflict")
    assert no["operation"] == operation["id"]


def test_an_effect_happens_where_its_machine_says(at: Board) -> None:
    made = at.create(fields={"order": "A-1", "amount": 12}).json()
    taken = at.done(made["id"], "take", "bob")
    refused(begin(at, taken, name="refund", effect="refund"), 409, "wrong_state")


def test_what_is_in_doubt_is_looked_up_before_it_is_done_again(at: Board, task: Json, clock: FakeClock) -> None:
    operation = begun(at, task, "refund", effect="refund")
    later = replaced(at, clock, task)
    doubt = begin(at, later, "carl", name="refund", effect="refund")
    assert (doubt.status_code, doubt.json()["status"], doubt.json()["id"]) == (200, "in_doubt", operation["id"])
    early = finish(at, operation, "not_done", "carl", epoch=later["epoch"])
    told = refused(early, 409, "operation_in_doubt")
    assert (early.headers["retry-after"], told["operation"]) == (str(told["retry_after_s"]), operation["id"])
    clock.advance(minutes(5))
    assert finish(at, operation, "not_done", "carl", epoch=later["epoch"]).json()["status"] == "not_done"
    assert begun(at, later, "refund", "carl", effect="refund")["attempt"] == 2


def test_whoever_was_replaced_testifies(at: Board, task: Json, clock: FakeClock) -> None:
    operation = begun(at, task, "refund", effect="refund")
    later = replaced(at, clock, task)
    refused(finish(at, operation, "succeeded", epoch=task["epoch"], result={"ref": 9}, note="it went through"), 409, "lease_lost")
    refused(finish(at, operation, "failed"), 409, "not_owner")
    refused(finish(at, operation, "failed", "stranger"), 409, "not_owner")
    (shown,) = at.told(f"/v1/tasks/{task['id']}/operations")["operations"]
    first, second = shown["testimony"]
    assert first == {
        "by": "bob",
        "epoch": task["epoch"],
        "status": "succeeded",
        "result": {"ref": 9},
        "note": "it went through",
        "at": iso(clock.now),
    }
    assert (second["epoch"], second["status"], shown["status"]) == (None, "failed", "in_doubt")
    assert version(at, task) == later["version"]


def test_an_owner_that_leaves_its_epoch_out_is_told_so(at: Board, task: Json) -> None:
    operation = begun(at, task, "load", kind="keyed")
    assert paths(refused(finish(at, operation, "failed"), 422, "invalid")) == ["epoch"]


def test_a_task_is_not_completed_over_what_is_not_finished(at: Board, task: Json) -> None:
    operation = begun(at, task, "refund", effect="refund")
    no = refused(at.propose(task["id"], "complete", "bob", epoch=task["epoch"]), 409, "operation_in_doubt")
    assert no["failed"] == [{"operation": operation["id"], "name": "refund", "status": "started"}]
    finish(at, operation, "succeeded", epoch=task["epoch"])
    at.done(task["id"], "complete", "bob", epoch=task["epoch"])
    refused(begin(at, task, name="more", kind="keyed"), 409, "wrong_state")
    refused(keep(at, task), 409, "wrong_state")
    refused(finish(at, operation, "failed", epoch=task["epoch"]), 409, "wrong_state")


BAD_BEGINNINGS = [
    ({}, ["name"]),
    ({"name": " ", "kind": "keyed"}, ["name"]),
    ({"name": "a\nb", "kind": "keyed"}, ["name"]),
    ({"name": "a", "kind": "hope"}, ["kind"]),
    ({"name": "a"}, ["kind"]),
    ({"name": "a", "kind": "keyed", "epoch": "1"}, ["epoch"]),
    ({"name": "a", "kind": "keyed", "epoch": None}, ["epoch"]),
    ({"name": "a", "kind": "keyed", "timeout_s": 0.5}, ["timeout_s"]),
    ({"name": "a", "kind": "keyed", "settle_s": 86_401}, ["settle_s"]),
    ({"name": "a", "kind": "keyed", "compensates": "x"}, ["compensates"]),
    ({"name": "a", "kind": "keyed", "compensates": NOBODY}, ["compensates"]),
    ({"name": "a", "kind": "keyed", "request": {"a": "\0"}}, ["request.a"]),
    ({"name": "a", "kind": "keyed", "request": 2**64}, ["request"]),
    ({"name": "a", "kind": "keyed", "owner": "bob"}, ["owner"]),
]


@pytest.mark.parametrize(("members", "where"), BAD_BEGINNINGS)
def test_a_begin_that_does_not_fit_is_named_and_writes_nothing(at: Board, task: Json, members: Json, where: list[str]) -> None:
    assert paths(refused(begin(at, task, **members), 422, "invalid")) == where
    assert (at.told(f"/v1/tasks/{task['id']}/operations")["operations"], version(at, task)) == ([], task["version"])


BAD_OUTCOMES = [
    ({"status": "perhaps"}, ["status"]),
    ({"status": None}, ["status"]),
    ({"status": "failed", "epoch": -1}, ["epoch"]),
    ({"status": "failed", "note": 5}, ["note"]),
    ({"status": "failed", "note": "a\0b"}, ["note"]),
    ({"status": "failed", "result": [2**64]}, ["result[0]"]),
    ({"status": "failed", "state": "done"}, ["state"]),
]


@pytest.mark.parametrize(("members", "where"), BAD_OUTCOMES)
def test_an_outcome_that_does_not_fit_is_named_and_writes_nothing(at: Board, task: Json, members: Json, where: list[str]) -> None:
    operation = begun(at, task, "load", kind="keyed")
    answer = finish(at, operation, members.pop("status"), **{"epoch": task["epoch"], **members})
    assert paths(refused(answer, 422, "invalid")) == where
    (shown,) = at.told(f"/v1/tasks/{task['id']}/operations")["operations"]
    assert shown == operation


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_operations_come_in_pages(at: Board, task: Json, clock: FakeClock) -> None:
    made = list[str]()
    for number in range(5):
        clock.advance(seconds(1))
        made.append(begun(at, task, f"step {number}", kind="repeatable")["id"])
    path = f"/v1/tasks/{task['id']}/operations"
    first = at.told(path, limit=2)
    second = at.told(path, limit=2, cursor=first["next"])
    last = at.told(path, limit=2, cursor=second["next"])
    assert [item["id"] for page in (first, second, last) for item in page["operations"]] == made
    assert last["next"] is None
    for wrong in ({"cursor": "x"}, {"limit": 0}, {"limit": "many"}):
        assert paths(refused(at.get(path, **wrong), 422, "invalid")) == [f"query.{next(iter(wrong))}"]


def test_a_checkpoint_is_numbered_and_whoever_resumes_gets_it(at: Board, task: Json, clock: FakeClock) -> None:
    first = keep(at, task, data={"page": 1}, progress=0.5, plan=[{"name": "archive", "kind": "keyed"}, {"name": "tidy"}])
    assert (first.status_code, first.json()) == (
        200,
        {"number": 1, "version": task["version"], "epoch": task["epoch"], "at": iso(clock.now)},
    )
    refused(keep(at, task, data=2, expect=0), 409, "stale_version")
    refund = begun(at, task, "refund", effect="refund")
    load = begun(at, task, "load", kind="repeatable")
    finish(at, load, "succeeded", epoch=task["epoch"], result=7)
    told = at.told(f"/v1/tasks/{task['id']}/resume", "bob")
    assert (told["task"], told["state"], told["epoch"], told["allowed"]) == (task["id"], "approved", task["epoch"], ["complete", "drop"])
    assert [(item["id"], item["result"]) for item in told["operations"]["finished"]] == [(load["id"], 7)]
    assert [(item["id"], item["status"]) for item in told["operations"]["in_doubt"]] == [(refund["id"], "started")]
    assert [(item["name"], item["kind"], item["why"], item["id"]) for item in told["operations"]["pending"]] == [
        ("mail", "ask", "declared", None),
        ("archive", "keyed", "planned", None),
        ("tidy", None, "planned", None),
    ]
    assert told["checkpoint"] == first.json() | {"data": {"page": 1}, "progress": 0.5}
    assert (told["notes"], set(told["deadlines"])) == ({"why": None}, {"lease", "operation refund"})
    replaced(at, clock, task)
    assert at.told(f"/v1/tasks/{task['id']}/resume")["operations"]["in_doubt"][0]["status"] == "in_doubt"


BAD_CHECKPOINTS = [
    ({"data": 2**64}, ["data"]),
    ({"epoch": None}, ["epoch"]),
    ({"plan": [{"name": "a", "kind": "hope"}]}, ["plan[0].kind"]),
    ({"plan": [{}]}, ["plan[0].name"]),
    ({"plan": {}}, ["plan"]),
    ({"expect": -1}, ["expect"]),
    ({"progress": "\0"}, ["progress"]),
    ({"state": "done"}, ["state"]),
]


@pytest.mark.parametrize(("members", "where"), BAD_CHECKPOINTS)
def test_a_checkpoint_that_does_not_fit_is_named_and_not_kept(at: Board, task: Json, members: Json, where: list[str]) -> None:
    assert paths(refused(keep(at, task, **members), 422, "invalid")) == where
    assert at.told(f"/v1/tasks/{task['id']}/resume")["checkpoint"] is None


# ── every documented refusal ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_unknown_is_not_found(at: Board, task: Json) -> None:
    nobody = {"id": NOBODY, "epoch": 1}
    refused(begin(at, nobody, name="a", kind="keyed"), 404, "unknown_task")
    refused(keep(at, nobody), 404, "unknown_task")
    refused(finish(at, nobody, "failed", epoch=1), 404, "unknown_operation")
    for path in ("operations", "resume"):
        refused(at.get(f"/v1/tasks/{NOBODY}/{path}"), 404, "unknown_task")
        assert at.get(f"/v1/tasks/x/{path}").status_code == 422


def test_only_the_owner_under_its_epoch_and_with_one_name_writes(at: Board, task: Json, clock: FakeClock) -> None:
    operation = begun(at, task, "load", kind="keyed")
    later = replaced(at, clock, task)
    for by, given, code in (("bob", task, "lease_lost"), ("stranger", later, "not_owner")):
        refused(begin(at, given, by, name="a", kind="keyed"), 409, code)
        refused(finish(at, operation, "failed", by, epoch=given["epoch"]), 409, code)
        refused(keep(at, given, by), 409, code)
    calls = (
        ("POST", f"/v1/tasks/{task['id']}/operations", b'{"epoch": 2, "name": "a", "kind": "keyed"}'),
        ("POST", f"/v1/operations/{operation['id']}/outcome", b'{"epoch": 2, "status": "failed"}'),
        ("PUT", f"/v1/tasks/{task['id']}/checkpoint", b'{"epoch": 2, "data": 1}'),
    )
    for method, path, body in calls:
        names = [("Pointsman-As", "bob"), ("Pointsman-As", "carl"), ("Content-Type", "application/json")]
        refused(at.runner.run(at.client.request(method, path, headers=names, content=body)), 403, "identity_mismatch")
    assert version(at, task) == later["version"]


def test_so_many_are_open_at_once(at: Board, task: Json) -> None:
    for number in range(100):
        begun(at, task, f"step {number}", kind="keyed")
    no = refused(begin(at, task, name="one more", kind="keyed"), 409, "operation_in_doubt")
    assert len(no["failed"]) == 100


def test_the_cancel_report_lists_operations(at: Board, task: Json) -> None:
    refund = begun(at, task, "refund", effect="refund")
    finish(at, refund, "succeeded", epoch=task["epoch"])
    mail = begun(at, task, "mail", effect="mail")
    noted = begun(at, task, "note", kind="keyed")
    finish(at, noted, "succeeded", epoch=task["epoch"])
    told = at.send("POST", f"/v1/tasks/{task['id']}/cancel", "olga", json={"reason": "wrong order"}).json()
    assert {name: [item["id"] for item in told[name]] for name in ("happened", "in_doubt", "undoable", "not_undoable")} == {
        "happened": [refund["id"], noted["id"]],
        "in_doubt": [mail["id"]],
        "undoable": [refund["id"]],
        "not_undoable": [noted["id"]],
    }


def test_every_call_of_the_ledger_is_asked_here() -> None:
    assert {
        (item.method, item.path) for item in OPERATIONS if item.path.endswith(("/operations", "/outcome", "/checkpoint", "/resume"))
    } == {
        ("POST", "/v1/tasks/{id}/operations"),
        ("GET", "/v1/tasks/{id}/operations"),
        ("POST", "/v1/operations/{id}/outcome"),
        ("PUT", "/v1/tasks/{id}/checkpoint"),
        ("GET", "/v1/tasks/{id}/resume"),
    }
