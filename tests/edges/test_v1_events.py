"""Proposing events over `/v1`: the whole job, what a proposer must say, every refusal's form, dry runs, replays."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import GOOD, NOBODY, Board, board, paths, refused

BAD = "too short"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


def test_the_whole_job(at: Board) -> None:
    task = at.create().json()
    states = list[str]()
    for event, by, members in (
        ("claim", "bob", {}),
        ("start_draft", "bob", {"epoch": 1}),
        ("request_approval", "bob", {"epoch": 1, "args": {"draft": GOOD}}),
    ):
        answer = at.propose(task["id"], event, by, **members)
        task = answer.json()
        assert answer.headers["etag"] == f'"{task["version"]}"'
        states.append(task["state"])
    assert (task["evidence"]["topic"]["status"], task["allowed"]) == ("pass", ["fail"])
    approved = at.done(task["id"], "approve", "rita", digest=task["digest"], args={"review_note": "Good."})
    done = at.done(task["id"], "complete", "bob", epoch=1)
    assert [*states, approved["state"], done["state"]] == ["claimed", "drafting", "awaiting_approval", "approved", "done"]
    assert (done["allowed"], done["fields"]["review_note"]) == ([], "Good.")
    assert {entry.door for entry in at.pm.history(task["id"])} == {"http"}
    assert at.pm.verify().ok


# ── what must be said ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "event", "by", "members", "path"),
    [
        ("queued", "claim", None, {}, "header.Pointsman-As"),
        ("claimed", "start_draft", None, {"epoch": 1}, "header.Pointsman-As"),
        ("awaiting_approval", "approve", None, {"digest": "d"}, "header.Pointsman-As"),
        ("awaiting_approval", "reject", None, {"digest": "d"}, "header.Pointsman-As"),
        ("awaiting_approval", "fail", None, {}, "header.Pointsman-As"),
        ("claimed", "start_draft", "bob", {}, "epoch"),
        ("awaiting_approval", "approve", "rita", {}, "digest"),
        ("drafting", "request_approval", "bob", {"epoch": 1}, "args.draft"),
        ("drafting", "request_approval", "bob", {"epoch": 1, "args": {"draft": 5}}, "args.draft"),
        ("drafting", "request_approval", "bob", {"epoch": 1, "args": {"draft": None}}, "args.draft"),
        ("drafting", "request_approval", "bob", {"epoch": 1, "args": {"draft": "a\0b"}}, "args.draft"),
        ("queued", "claim", "bob", {"args": {"x": 1}}, "args.x"),
        ("queued", "claim", "bob", {"args": []}, "args"),
        ("queued", "claim", "bob", {"epoch": "1"}, "epoch"),
        ("queued", "claim", "bob", {"epoch": -1}, "epoch"),
        ("queued", "claim", "bob", {"epoch": 1.0}, "epoch"),
        ("queued", "claim", "bob", {"epoch": True}, "epoch"),
        ("queued", "claim", "bob", {"epoch": 2**63}, "epoch"),
        ("queued", "claim", "bob", {"digest": 5}, "digest"),
        ("queued", "claim", "bob", {"digest": "\ud800"}, "digest"),
        ("queued", "claim", "bob", {"expect_version": 1}, "expect_version"),
        ("queued", "claim", "bob", {"by": "rita"}, "by"),
        ("queued", "claim", "anonymous", {}, "header.Pointsman-As"),
    ],
)
def test_what_is_missing_or_does_not_fit(at: Board, state: str, event: str, by: str | None, members: Any, path: str) -> None:
    task = at.bring(state)
    before = at.pm.history()
    assert paths(refused(at.propose(task["id"], event, by, **members), 422, "invalid")) == [path]
    assert at.pm.history() == before


def test_args_may_be_left_out(at: Board) -> None:
    task = at.create().json()
    assert at.send("POST", f"/v1/tasks/{task['id']}/events/claim", "bob", json={}).json()["state"] == "claimed"


def test_one_caller_has_one_name(at: Board) -> None:
    task = at.create().json()
    path = f"/v1/tasks/{task['id']}/events/claim"
    twice = [("Pointsman-As", "bob"), ("Pointsman-As", "ann"), ("Content-Type", "application/json")]
    answer = at.runner.run(at.client.post(path, content=b"{}", headers=twice))
    refused(answer, 403, "identity_mismatch")


def test_a_malformed_id_and_an_unknown_one(at: Board) -> None:
    for id in ("nonsense", NOBODY[:-1], "{" + NOBODY + "}", NOBODY.replace("-", ""), "%00", "%ff", "5"):
        assert paths(refused(at.propose(id, "claim", "bob"), 422, "invalid")) == ["path.id"]
    refused(at.propose(NOBODY, "claim", "bob"), 404, "unknown_task")
    task = at.create().json()
    assert at.propose(task["id"].upper(), "claim", "bob").status_code == 200
    told = refused(at.propose(task["id"], "nonsense", "bob"), 404, "unknown_event")
    assert told["task"] == task["id"]
    assert paths(refused(at.propose(task["id"], "%01", "bob"), 422, "invalid")) == ["path.event"]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("state", "event", "by", "members", "status", "code"),
    [
        ("queued", "approve", "rita", {"digest": ""}, 409, "stale_content"),
        ("queued", "start_draft", "bob", {"epoch": 0}, 409, "wrong_state"),
        ("claimed", "claim", "ann", {}, 409, "already_claimed"),
        ("claimed", "start_draft", "ann", {"epoch": 1}, 409, "not_owner"),
        ("claimed", "start_draft", "bob", {"epoch": 0}, 409, "lease_lost"),
        ("awaiting_approval", "approve", "Bob", {"digest": "d"}, 403, "self_approval"),
        ("awaiting_approval", "approve", "rita", {"digest": "d"}, 409, "stale_content"),
    ],
)
def test_refusals(at: Board, state: str, event: str, by: str, members: Any, status: int, code: str) -> None:
    task = at.bring(state)
    told = refused(at.propose(task["id"], event, by, **members), status, code)
    assert {"task", "state", "version", "failed", "allowed", "unblock", "recorded"} <= set(told)
    assert (told["task"], told["state"], told["version"], told["recorded"]) == (task["id"], state, task["version"], False)
    assert at.told(f"/v1/tasks/{task['id']}", by=by)["allowed"] == told["allowed"]
    assert at.pm.get(task["id"]).version == task["version"]


def test_the_late_one_is_told_who_decided_and_when(at: Board) -> None:
    task = at.bring("approved")
    told = refused(at.propose(task["id"], "approve", "mary", digest=task["digest"]), 409, "already_decided")
    decided = at.told(f"/v1/tasks/{task['id']}/decisions")["decisions"][0]
    assert told["decided"] == {"event": "approve", "by": "rita", "at": decided["at"]}


def test_stale_content_says_what_changed(at: Board) -> None:
    task = at.bring("awaiting_approval")
    at.done(task["id"], "reject", "rita", digest=task["digest"])
    at.done(task["id"], "request_approval", "bob", epoch=1, args={"draft": GOOD + " More."})
    told = refused(at.propose(task["id"], "approve", "rita", digest=task["digest"]), 409, "stale_content")
    assert [item["field"] for item in told["failed"]] == ["draft"]


def test_failed_evidence_is_on_record(at: Board) -> None:
    task = at.bring("drafting")
    told = refused(at.propose(task["id"], "request_approval", "bob", epoch=1, args={"draft": BAD}), 409, "evidence_failed")
    assert (told["recorded"], told["version"], told["state"]) == (True, task["version"] + 1, "drafting")
    assert told["failed"][0]["check"] == "topic"
    assert at.told(f"/v1/tasks/{task['id']}")["fields"]["draft"] == BAD


# ── the version that was seen ────────────────────────────────────────────────────────────────────────────────────────


def test_if_match_holds_or_is_refused(at: Board) -> None:
    task = at.create().json()
    told = refused(at.propose(task["id"], "claim", "bob", headers={"If-Match": '"7"'}), 412, "stale_version")
    assert told["version"] == 1
    assert at.propose(task["id"], "claim", "bob", headers={"If-Match": '"1"'}).json()["version"] == 2
    assert at.propose(task["id"], "start_draft", "bob", epoch=1, headers={"If-Match": " * "}).json()["version"] == 3
    refused(at.propose(task["id"], "start_draft", "bob", epoch=1, headers={"If-Match": '"2"'}), 412, "stale_version")


@pytest.mark.parametrize("tag", ["1", 'W/"1"', '"1", "2"', '"-1"', '"1.0"', '""', '"x"', "", '"' + "9" * 20 + '"'])
def test_an_entity_tag_that_names_no_version(at: Board, tag: str) -> None:
    task = at.create().json()
    assert paths(refused(at.propose(task["id"], "claim", "bob", headers={"If-Match": tag}), 422, "invalid")) == ["header.If-Match"]


# ── dry runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_dry_run_says_what_would_be_and_writes_nothing(at: Board) -> None:
    task = at.bring("drafting")
    before = at.pm.history()
    answer = at.propose(task["id"], "request_approval", "bob", dry_run=True, epoch=1, args={"draft": GOOD})
    told = answer.json()
    assert (answer.status_code, told["dry_run"], told["state"], told["version"]) == (200, True, "awaiting_approval", task["version"] + 1)
    assert "etag" not in answer.headers
    told = refused(at.propose(task["id"], "request_approval", "bob", dry_run=True, epoch=1, args={"draft": BAD}), 409, "evidence_failed")
    assert (told["recorded"], told["version"]) == (False, task["version"])
    refused(at.propose(task["id"], "complete", "bob", dry_run=True, epoch=1), 409, "wrong_state")
    assert at.pm.history() == before
    assert at.pm.get(task["id"]).version == task["version"]


@pytest.mark.parametrize("query", ["dry_run=1", "dry_run=", "dry_run=true&dry_run=true", "dryrun=true"])
def test_a_dry_run_that_is_misspelled_commits_nothing(at: Board, query: str) -> None:
    task = at.create().json()
    refused(at.send("POST", f"/v1/tasks/{task['id']}/events/claim?{query}", "bob", json={"args": {}}), 422, "invalid")
    assert at.pm.get(task["id"]).state == "queued"


# ── replays ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_replay_answers_alike_though_the_task_moved_on(at: Board) -> None:
    task = at.bring("claimed")
    key = {"Idempotency-Key": "once"}
    first = at.propose(task["id"], "start_draft", "bob", epoch=1, headers=key)
    at.done(task["id"], "request_approval", "bob", epoch=1, args={"draft": GOOD})
    again = at.propose(task["id"], "start_draft", "bob", epoch=1, headers=key)
    assert (again.status_code, again.headers["etag"]) == (first.status_code, first.headers["etag"])
    assert again.json() == first.json() | {"lease": None}, "history keeps no leases, and this one has ended"
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


def test_a_recorded_refusal_is_replayed_too(at: Board) -> None:
    task = at.bring("drafting")
    asked: Any = {"epoch": 1, "args": {"draft": BAD}, "headers": {"Idempotency-Key": "once"}}
    first, again = (at.propose(task["id"], "request_approval", "bob", **asked) for _ in range(2))
    assert (again.status_code, again.json()) == (first.status_code, first.json())
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    assert at.pm.get(task["id"]).version == task["version"] + 1


def test_a_plain_refusal_binds_no_key(at: Board) -> None:
    task = at.create().json()
    key = {"Idempotency-Key": "once"}
    refused(at.propose(task["id"], "start_draft", "bob", epoch=1, headers=key), 409, "wrong_state")
    at.done(task["id"], "claim", "bob")
    answer = at.propose(task["id"], "start_draft", "bob", epoch=1, headers=key)
    assert (answer.status_code, "idempotent-replayed" in answer.headers) == (200, False)


@pytest.mark.parametrize("key", ["", " ", "a" * 129, "é".encode(), "a\tb"])
def test_a_key_that_is_none(at: Board, key: Any) -> None:
    task = at.create().json()
    told = refused(at.propose(task["id"], "claim", "bob", headers={"Idempotency-Key": key}), 422, "invalid")
    assert paths(told) == ["header.Idempotency-Key"]


def test_the_same_key_with_another_request_is_refused(at: Board) -> None:
    task = at.bring("claimed")
    key = {"Idempotency-Key": "once"}
    at.propose(task["id"], "start_draft", "bob", epoch=1, headers=key)
    refused(at.propose(task["id"], "fail", "bob", epoch=1, headers=key), 422, "idempotency_conflict")
    told = refused(at.propose(task["id"], "start_draft", "bob", epoch=1, headers={**key, "If-Match": '"2"'}), 422, "idempotency_conflict")
    assert told["task"] == task["id"]
