"""History, the difference of two versions, evidence, decisions, the report, and the audit of the whole board."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import GOOD, NOBODY, Board, board, paths, refused
from pointsman.types import instant

ENTRY = {
    *("task", "version", "seq", "at", "event", "from", "to", "by", "session", "door", "epoch", "changes", "evidence", "reason", "hash"),
    "kind",
}


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


def test_history_is_told_oldest_first_in_pages(at: Board) -> None:
    id = at.bring("done")["id"]
    whole = at.told(f"/v1/tasks/{id}/history")
    assert [(entry["version"], entry["event"], entry["by"]) for entry in whole["entries"]] == [
        (1, "create", "ann"),
        (2, "claim", "bob"),
        (3, "start_draft", "bob"),
        (4, "request_approval", "bob"),
        (5, "approve", "rita"),
        (6, "complete", "bob"),
    ]
    assert (whole["next"], {frozenset(entry) for entry in whole["entries"]}) == (None, {frozenset(ENTRY)})
    assert [entry["seq"] for entry in whole["entries"]] == [1, 2, 3, 4, 5, 6]
    assert {entry["door"] for entry in whole["entries"]} == {"http"}
    first = at.told(f"/v1/tasks/{id}/history", limit=4)
    rest = at.told(f"/v1/tasks/{id}/history", limit=4, cursor=first["next"])
    assert (first["entries"] + rest["entries"], rest["next"]) == (whole["entries"], None)
    other = at.create().json()["id"]
    refused(at.get(f"/v1/tasks/{other}/history", cursor=first["next"]), 422, "invalid")


def test_every_time_is_rfc_3339(at: Board) -> None:
    """Also inside what an entry changed."""
    id = at.bring("done")["id"]
    create, *_, request, approve, _ = [entry["changes"] for entry in at.told(f"/v1/tasks/{id}/history")["entries"]]
    times = [create["created_at"], *(item["at"] for item in (request["evidence"]["topic"], *approve["decisions"]))]
    assert [instant(time) for time in times] == sorted(instant(time) for time in times)


def test_the_difference_of_two_versions(at: Board) -> None:
    id = at.bring("awaiting_approval")["id"]
    assert at.told(f"/v1/tasks/{id}/diff?from=3&to=4") == {
        "from": 3,
        "to": 4,
        "state": {"from": "drafting", "to": "awaiting_approval"},
        "fields": {"draft": {"from": None, "to": GOOD}},
    }
    refused(at.get(f"/v1/tasks/{id}/diff?from=1&to=9"), 404, "unknown_task")
    for query, path in (("from=1", "to"), ("from=-1&to=2", "from"), ("from=1&to=x", "to"), ("from=1&to=" + "9" * 30, "to")):
        assert paths(refused(at.get(f"/v1/tasks/{id}/diff?{query}"), 422, "invalid")) == [f"query.{path}"]


def test_evidence_and_decisions(at: Board) -> None:
    task = at.bring("awaiting_approval")
    path = f"/v1/tasks/{task['id']}"
    at.done(task["id"], "reject", "rita", digest=task["digest"], args={"review_note": "Longer."})
    task = at.done(task["id"], "request_approval", "bob", epoch=1, args={"draft": GOOD + " And more."})
    at.done(task["id"], "approve", "mary", digest=task["digest"])
    told = at.told(f"{path}/decisions")["decisions"]
    assert [(item["event"], item["by"], item["note"], item["revision"]) for item in told] == [
        ("reject", "rita", "Longer.", 2),
        ("approve", "mary", None, 3),
    ]
    assert told[1]["shown"] == told[1]["digest"] == task["digest"]
    assert told[1]["at"].endswith("Z")
    assert at.told(f"{path}/evidence") == {"evidence": task["evidence"]}


def test_the_report_holds_the_facts_of_a_task(at: Board) -> None:
    task = at.bring("awaiting_approval")
    path = f"/v1/tasks/{task['id']}"
    report = at.told(f"{path}/report")
    assert report["task"] == task | {"allowed": []}
    assert report["entries"] == at.told(f"{path}/history")["entries"]
    assert (report["as_of"], report["created_by"], report["contributors"], report["decisions"]) == (4, "ann", ["bob"], [])
    assert report["open"] == {
        "approve": "role reviewer and not a contributor",
        "reject": "role reviewer and not a contributor",
        "fail": "the owner or role operator",
    }


@pytest.mark.parametrize("last", ["history", "evidence", "decisions", "report", "diff?from=1&to=1"])
def test_a_task_that_is_none(at: Board, last: str) -> None:
    refused(at.get(f"/v1/tasks/{NOBODY}/{last}"), 404, "unknown_task")
    assert paths(refused(at.get(f"/v1/tasks/nonsense/{last}"), 422, "invalid")) == ["path.id"]


def test_the_audit_is_told_newest_first_in_pages(at: Board) -> None:
    one, other = at.bring("drafting"), at.bring("awaiting_approval")
    whole = at.told("/v1/audit")["entries"]
    assert [entry["seq"] for entry in whole] == [7, 6, 5, 4, 3, 2, 1]
    paged, following = list[Any](), None
    while following or not paged:
        page = at.told("/v1/audit", limit=3, **({"cursor": following} if following else {}))
        paged, following = paged + page["entries"], page["next"]
    assert paged == whole
    assert [entry["task"] for entry in at.told("/v1/audit", event="create")["entries"]] == [other["id"], one["id"]]
    assert {entry["by"] for entry in at.told("/v1/audit", actor="bob")["entries"]} == {"bob"}
    middle = whole[3]["at"]
    assert at.told("/v1/audit", to=middle)["entries"] == whole[4:]
    assert at.told("/v1/audit", **{"from": middle})["entries"] == whole[:4]
    assert at.told("/v1/audit", actor="nobody") == {"entries": [], "next": None}


def test_an_audit_that_does_not_fit(at: Board) -> None:
    for query, path in (({"from": "yesterday"}, "from"), ({"to": "2026-01-31"}, "to"), ({"actor": ""}, "actor"), ({"limit": "0"}, "limit")):
        assert paths(refused(at.get("/v1/audit", **query), 422, "invalid")) == [f"query.{path}"]
    for _ in range(2):
        at.create()
    cursor = at.told("/v1/audit", limit=1)["next"]
    refused(at.get("/v1/audit", limit=1, actor="ann", cursor=cursor), 422, "invalid")


def test_a_pruned_version_is_gone(at: Board) -> None:
    task = at.bring("done")
    id, last = task["id"], task["version"]
    now = at.told(f"/v1/tasks/{id}", version=last)
    at.pm.prune(0, payloads=True)
    refused(at.get(f"/v1/tasks/{id}", version=1), 410, "pruned")
    refused(at.get(f"/v1/tasks/{id}", at="#1"), 410, "pruned")
    refused(at.get(f"/v1/tasks/{id}/diff", **{"from": 1, "to": last}), 410, "pruned")
    refused(at.get("/v1/tasks", at="#1"), 410, "pruned")
    assert at.told(f"/v1/tasks/{id}", version=last) == now
    history = at.told(f"/v1/tasks/{id}/history")["entries"]
    assert [entry["event"] for entry in history] == ["create", "claim", "start_draft", "request_approval", "approve", "complete"]
    assert at.told(f"/v1/tasks/{id}/report")["task"]["id"] == id
    assert at.told(f"/v1/tasks/{id}/decisions")
