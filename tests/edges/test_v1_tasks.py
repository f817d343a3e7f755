"""`/v1/tasks`: creation, one task with its entity tag, and lists by page, filter, order and moment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import FIELDS, GOOD, NOBODY, Board, board, paths, refused
from pointsman import Event, Machine, State, Tasks

MEMBERS = {
    *("id", "machine", "machine_version", "state", "version", "revision", "digest", "fields", "owner", "session", "epoch", "lease"),
    *("parked", "waiting", "priority", "tags", "needs", "dedupe_key", "parent", "run_at", "blocked_by", "attempts", "evidence"),
    *("approvals", "allowed", "created_at", "updated_at"),
}


class Letters(Machine, name="letters"):
    text: str
    draft = State(initial=True)
    sent = State(final=True, outcome="failed")
    send = Event(draft >> sent)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


def test_a_task_is_created_whole(at: Board) -> None:
    answer = at.create(priority=2)
    task = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/tasks/{task['id']}"
    assert answer.headers["etag"] == '"1"'
    assert set(task) == MEMBERS
    assert (task["machine"], task["state"], task["version"], task["priority"], task["owner"]) == ("tasks", "queued", 1, 2, None)
    assert task["fields"] == {**FIELDS, "draft": None, "review_note": None}
    assert task["allowed"] == ["claim"]
    assert (task["lease"], task["parked"], task["approvals"], task["dedupe_key"]) == (None,) * 4
    assert (task["tags"], task["needs"], task["blocked_by"]) == ([], [], [])
    assert task["attempts"] == {"lost": 0, "error": 0, "deferred": 0}
    assert task["created_at"] == task["updated_at"]
    assert task["created_at"].endswith("Z")
    assert set(task["evidence"]["topic"]) == {"status", "reason", "detail", "inputs_digest", "by", "at"}
    assert at.told(f"/v1/tasks/{task['id']}", by="ann") == task


def test_a_task_may_be_created_without_a_name(at: Board) -> None:
    task = at.send("POST", "/v1/tasks", json={"fields": FIELDS})
    assert task.status_code == 201
    assert at.pm.history(task.json()["id"])[0].by == "anonymous"


def test_the_machine_is_named_where_several_are_served(tmp_path: Path) -> None:
    with board(tmp_path, Tasks, Letters) as at:
        assert paths(refused(at.create(), 422, "invalid")) == ["machine"]
        assert at.create(machine="letters", fields={"text": "t"}).json()["machine"] == "letters"
        refused(at.create(machine="nonsense"), 404, "unknown_machine")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "fields"),
        ({"fields": None}, "fields"),
        ({"fields": []}, "fields"),
        ({"fields": {**FIELDS, "draft": GOOD}}, "fields.draft"),
        ({"fields": {**FIELDS, "state": "done"}}, "fields.state"),
        ({"fields": {"title": " ", "brief": "b"}}, "fields.title"),
        ({"fields": {"title": "t"}}, "fields.brief"),
        ({"fields": FIELDS, "priority": "1"}, "priority"),
        ({"fields": FIELDS, "priority": True}, "priority"),
        ({"fields": FIELDS, "priority": 1.0}, "priority"),
        ({"fields": FIELDS, "priority": 1_001}, "priority"),
        ({"fields": FIELDS, "machine": 5}, "machine"),
        ({"fields": FIELDS, "state": "done"}, "state"),
        ({"fields": FIELDS, "owner": "bob"}, "owner"),
        ([], ""),
        ("text", ""),
    ],
)
def test_a_body_that_does_not_fit(at: Board, body: Any, path: str) -> None:
    assert paths(refused(at.send("POST", "/v1/tasks", "ann", json=body), 422, "invalid")) == [path]
    assert at.pm.list() == []


def test_every_fault_is_told_at_once(at: Board) -> None:
    headers = {"Pointsman-Session": b"\x01", "Idempotency-Key": "é".encode()}
    answer = at.send("POST", "/v1/tasks?x=1", "no body", json={"priority": 1.5, "y": 1}, headers=headers)
    assert paths(refused(answer, 422, "invalid")) == [
        "fields",
        "priority",
        "y",
        "header.Pointsman-Session",
        "header.Idempotency-Key",
        "query",
    ]


def test_the_same_key_creates_once(at: Board) -> None:
    first, again = (at.create(headers={"Idempotency-Key": "k"}) for _ in range(2))
    assert (again.status_code, again.json()) == (201, first.json())
    assert (again.headers["etag"], again.headers["location"]) == (first.headers["etag"], first.headers["location"])
    assert ("idempotent-replayed" in first.headers, again.headers["idempotent-replayed"]) == (False, "true")
    refused(at.create(headers={"Idempotency-Key": "k"}, priority=1), 422, "idempotency_conflict")
    assert at.create(by="bob", headers={"Idempotency-Key": "k"}).json()["id"] != first.json()["id"]
    assert len(at.pm.list()) == 2


# ── one task ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tags", ['"1"', 'W/"1"', '"0", "1"', "*", '"1","2"'])
def test_a_reader_who_has_the_version_gets_304(at: Board, tags: str) -> None:
    task = at.create().json()
    answer = at.send("GET", f"/v1/tasks/{task['id']}", headers={"If-None-Match": tags})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", '"1"')


def test_entity_tags_may_come_on_several_lines(at: Board) -> None:
    task = at.create().json()
    lines = [("If-None-Match", '"7"'), ("If-None-Match", '"1"')]
    assert at.runner.run(at.client.get(f"/v1/tasks/{task['id']}", headers=lines)).status_code == 304


@pytest.mark.parametrize("tags", ['"2"', "1", "nonsense", ""])
def test_a_reader_who_has_another_gets_the_task(at: Board, tags: str) -> None:
    task = at.create().json()
    assert at.send("GET", f"/v1/tasks/{task['id']}", headers={"If-None-Match": tags}).status_code == 200


def test_a_task_as_it_was(at: Board) -> None:
    task = at.bring("drafting")
    seen = at.get(f"/v1/tasks/{task['id']}", version=2)
    assert (seen.json()["state"], seen.headers["etag"]) == ("claimed", '"2"')
    for moment in ("#2", seen.json()["updated_at"]):
        assert at.told(f"/v1/tasks/{task['id']}", at=moment)["version"] == 2
    path = f"/v1/tasks/{task['id']}"
    refused(at.get(path, version=9), 404, "unknown_task")
    refused(at.get(path, at="#0"), 404, "unknown_task")
    assert paths(refused(at.get(path, at="#99"), 422, "invalid")) == ["query.at"]
    assert paths(refused(at.get(path, version=1, at="#1"), 422, "invalid")) == ["query.at"]
    refused(at.get(f"/v1/tasks/{NOBODY}"), 404, "unknown_task")


@pytest.mark.parametrize(
    "moment", ["", "now", "#", "#-1", "#1.0", "#９", "2026-01-31", "2026-01-31T12:00:00", "2026-01-31 12:00:00Z", "9" * 40]
)
def test_a_moment_that_is_none(at: Board, moment: str) -> None:
    task = at.create().json()
    assert paths(refused(at.get(f"/v1/tasks/{task['id']}", at=moment), 422, "invalid")) == ["query.at"]
    assert paths(refused(at.get("/v1/tasks", at=moment), 422, "invalid")) == ["query.at"]


def test_what_is_open_depends_on_who_asks_and_its_session(at: Board) -> None:
    task = at.create().json()
    at.propose(task["id"], "claim", "bob", headers={"Pointsman-Session": "one"})
    open_to = {
        who: at.send("GET", f"/v1/tasks/{task['id']}", who, headers={"Pointsman-Session": session}).json()["allowed"]
        for who, session in (("bob", "one"), ("ann", "one"))
    }
    assert open_to == {"bob": ["start_draft", "fail"], "ann": ["fail"]}
    assert at.send("GET", f"/v1/tasks/{task['id']}", "bob", headers={"Pointsman-Session": "two"}).json()["allowed"] == ["fail"]
    assert at.told(f"/v1/tasks/{task['id']}")["allowed"] == [], "nothing that needs a name"


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ids(page: dict[str, Any]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


def _all(at: Board, /, **query: Any) -> list[str]:
    """Every page of a list; each but the last is full, and the last says so."""
    found, following = list[str](), None
    while True:
        page = at.told("/v1/tasks", **query, **({"cursor": following} if following else {}))
        found += _ids(page)
        following = page["next"]
        if following is None:
            return found
        assert len(page["tasks"]) == query["limit"]


@pytest.mark.parametrize("order", ["created_at", "updated_at", "priority"])
@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7])
def test_pages_hold_every_task_once_and_in_order(at: Board, order: str, limit: int) -> None:
    made = [at.create(priority=n % 3).json()["id"] for n in range(6)]
    at.propose(made[0], "claim", "bob")
    expected = [task.id for task in at.pm.list(order=order)]  # type: ignore[arg-type]
    assert _all(at, limit=limit, order=order) == expected
    assert sorted(expected) == sorted(made)


def test_filters(at: Board) -> None:
    held, done = at.bring("claimed"), at.bring("done")
    queued = at.create(fields={"title": "100% of_it", "brief": "b"}).json()
    for query, expected in (
        ({}, [held, done, queued]),
        ({"machine": "tasks"}, [held, done, queued]),
        ({"state": "queued"}, [queued]),
        ({"state": ["queued", "done"]}, [done, queued]),
        ({"state": "nonsense"}, []),
        ({"owner": "bob"}, [held, done]),
        ({"open": "true"}, [held, queued]),
        ({"open": "false"}, [held, done, queued]),
        ({"q": "SCHEDULER release"}, [held, done]),
        ({"q": "%"}, [queued]),
        ({"q": "f_i"}, [queued]),
        ({"q": "' OR 1=1 --"}, []),
        ({"owner": "bob", "open": "true", "state": "claimed", "q": "notes"}, [held]),
    ):
        assert _ids(at.told("/v1/tasks", **query)) == [task["id"] for task in expected], query
    refused(at.get("/v1/tasks", machine="nonsense"), 404, "unknown_machine")


def test_the_board_as_it_was(at: Board) -> None:
    task = at.create().json()
    recorded = {}
    for event, members in (("", {}), ("claim", {}), ("start_draft", {"epoch": 1})):
        if event:
            at.done(task["id"], event, "bob", **members)
        page = at.told("/v1/tasks")
        recorded[page["as_of"]] = page["tasks"]
    assert sorted(recorded) == [1, 2, 3]
    for number, tasks in recorded.items():
        page = at.told("/v1/tasks", at=f"#{number}")
        assert (page["tasks"], page["as_of"], page["next"]) == (
            [task | {"allowed": [], "lease": None, "waiting": None} for task in tasks],
            number,
            None,
        )
        assert at.told("/v1/tasks", at=tasks[-1]["updated_at"])["as_of"] == number
    assert at.told("/v1/tasks", at="#0") == {"tasks": [], "next": None, "as_of": 0}
    assert paths(refused(at.get("/v1/tasks", at="#1", order="priority"), 422, "invalid")) == ["query.order"]


def test_pages_of_the_past(at: Board) -> None:
    made = [at.create().json()["id"] for _ in range(5)]
    then = at.told("/v1/tasks")["as_of"]
    at.create()
    assert _all(at, at=f"#{then}", limit=2) == made


@pytest.mark.parametrize("limit", ["0", "-1", "", "1.0", "+1", " 1", "x", "1e3", "true", "１"])
def test_a_limit_that_is_none(at: Board, limit: str) -> None:
    assert paths(refused(at.get("/v1/tasks", limit=limit), 422, "invalid")) == ["query.limit"]


@pytest.mark.parametrize("limit", ["501", "1000000000", "9" * 400, "0" * 400 + "5"])
def test_a_limit_over_the_maximum_is_the_maximum(at: Board, limit: str) -> None:
    at.create()
    assert len(at.told("/v1/tasks", limit=limit)["tasks"]) == 1


def test_a_cursor_is_good_for_its_own_list_alone(at: Board) -> None:
    for _ in range(3):
        at.create()
    cursor = at.told("/v1/tasks", limit=1, owner="bob", open="true")["next"]
    assert cursor is None
    cursor = at.told("/v1/tasks", limit=1, open="true")["next"]
    assert len(at.told("/v1/tasks", limit=2, open="true", cursor=cursor)["tasks"]) == 2, "the limit may change"
    foreign = [{"limit": 1}, {"open": "true", "q": "notes"}, {"open": "true", "order": "priority"}, {"open": "true", "at": "#1"}]
    for query in foreign:
        assert paths(refused(at.get("/v1/tasks", **query, cursor=cursor), 422, "invalid")) == ["query.cursor"]
    for forged in ("", "x", cursor[:-1], cursor + "A", cursor + "=", "A" + cursor, cursor.swapcase(), "é", "W10", "A" * 10_000):
        assert paths(refused(at.get("/v1/tasks", limit=1, open="true", cursor=forged), 422, "invalid")) == ["query.cursor"], forged
    other = at.told(f"/v1/tasks/{at.bring('drafting')['id']}/history", limit=1)["next"]
    refused(at.get("/v1/tasks", cursor=other), 422, "invalid")


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"open": "1"}, "query.open"),
        ({"open": "True"}, "query.open"),
        ({"order": "id; DROP TABLE tasks"}, "query.order"),
        ({"owner": ""}, "query.owner"),
        ({"owner": "a" * 129}, "query.owner"),
        ({"owner": "\u202eann"}, "query.owner"),
        ({"q": "\0"}, "query.q"),
        ({"state": ["queued", ""]}, "query.state"),
        ({"order": ["created_at", "created_at"]}, "query.order"),
        ({"tags": "x"}, "query"),
        ({"tag": ""}, "query.tag"),
        ({"Limit": "1"}, "query"),
        ({"": "1"}, "query"),
    ],
)
def test_a_query_that_does_not_fit(at: Board, query: dict[str, Any], path: str) -> None:
    told = refused(at.get("/v1/tasks", **query), 422, "invalid")
    assert paths(told) == [path]
    assert "DROP" not in str(told)


def test_approvals_are_what_this_caller_may_decide_now(at: Board) -> None:
    waiting = [at.bring("awaiting_approval")["id"] for _ in range(3)]
    at.bring("drafting")
    at.bring("approved")
    first = at.told("/v1/approvals", by="rita", limit=2)
    rest = at.told("/v1/approvals", by="rita", limit=2, cursor=first["next"])
    assert (_ids(first) + _ids(rest), rest["next"]) == (waiting, None)
    assert first["tasks"][0]["allowed"] == ["approve", "reject", "fail"]
    assert at.told("/v1/approvals", by="Bob")["tasks"] == [], "a contributor, in another spelling"
    assert paths(refused(at.get("/v1/approvals"), 422, "invalid")) == ["header.Pointsman-As"]
    at.done(waiting[0], "reject", "rita", digest=first["tasks"][0]["digest"])
    assert _ids(at.told("/v1/approvals", by="rita")) == waiting[1:]
