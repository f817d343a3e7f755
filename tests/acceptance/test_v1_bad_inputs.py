"""What is thrown at `/v1` gets its code from the one layer that judges input, does not come back, and writes nothing: the
corpus of the flat paths, and what only these paths can meet."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from acceptance.flat import GOOD, NOBODY
from acceptance.process import Served
from acceptance.test_bad_bodies_change_nothing import CANARY, NO_ID, NO_NAME, NOT_AN_OBJECT, NOT_TEXT, UNFIT_TEXT, UNKNOWN, UNPARSABLE
from acceptance.v1 import FIELDS, Speaker
from pointsman import Pointsman

CREATE = "/v1/tasks"
EVENTS = ("claim", "start_draft", "request_approval", "approve", "reject", "complete", "fail")
WELL_FORMED = {"an integer past 64 bits"}
"""Of the unparsable, what is one JSON text with one meaning: judged by its members."""


@pytest.fixture
def speaker(served: Served) -> Iterator[Speaker]:
    with Speaker(served.url) as speaking:
        yield speaking


@pytest.fixture(scope="module")
def tasks(served: Served) -> dict[str, dict[str, Any]]:
    """A task that each event is open on, so that a bad proposal is refused for being bad alone."""
    with Speaker(served.url) as speaking:
        states = ("queued", "claimed", "drafting", "awaiting_approval", "awaiting_approval", "approved", "claimed")
        return {event: speaking.lead(state) for event, state in zip(EVENTS, states, strict=True)}


@pytest.fixture(autouse=True)
def _unchanged(served: Served, tasks: object) -> Iterator[None]:
    with Pointsman(served.db) as pm:
        before = pm.as_of()
    yield
    with Pointsman(served.db) as pm:
        assert pm.as_of() == before


def fine(tasks: dict[str, dict[str, Any]], event: str) -> tuple[str, str, dict[str, Any]]:
    """Path, caller and body of a proposal that would be accepted."""
    task = tasks[event]
    decides = event in ("approve", "reject")
    guard = {"digest": task["digest"]} if decides else {} if event == "claim" else {"epoch": 1}
    args = {"draft": GOOD} if event == "request_approval" else {}
    return f"/v1/tasks/{task['id']}/events/{event}", "rita" if decides else "bob", {"args": args, **guard}


def refused(speaker: Speaker, path: str, body: bytes, status: int, code: str, by: str = "bob", **headers: str) -> None:
    answer = speaker.send("POST", path, body, {"Pointsman-As": by, **headers})
    assert (answer.status, answer.body["code"], answer.headers["content-type"]) == (status, code, "application/problem+json"), body[:80]
    assert all(set(fault) == {"path", "message"} for fault in answer.body.get("failed", ()))
    assert CANARY not in json.dumps(answer.body)
    assert len(json.dumps(answer.body)) < 20_000


def everywhere(tasks: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    yield CREATE, "bob"
    for event in EVENTS:
        path, by, _ = fine(tasks, event)
        yield path, by


def test_the_proposals_are_good_but_for_what_is_bad(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    for event in EVENTS:
        path, by, body = fine(tasks, event)
        assert speaker.ask("POST", f"{path}?dry_run=true", by, body).status == 200


@pytest.mark.parametrize("kind", UNPARSABLE)
def test_bodies_that_do_not_parse(speaker: Speaker, tasks: dict[str, dict[str, Any]], kind: str) -> None:
    for path, by in everywhere(tasks):
        refused(speaker, path, UNPARSABLE[kind], *((422, "invalid") if kind in WELL_FORMED else (400, "malformed")), by)


@pytest.mark.parametrize("kind", NOT_AN_OBJECT)
def test_bodies_that_are_no_object(speaker: Speaker, tasks: dict[str, dict[str, Any]], kind: str) -> None:
    for path, by in everywhere(tasks):
        refused(speaker, path, json.dumps(NOT_AN_OBJECT[kind]).encode(), 422, "invalid", by)


def test_members_that_are_not_known(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    """Their names are the place of the fault; one that is no plain word is not repeated."""
    for name in {*UNKNOWN, f"{CANARY} {CANARY}"} - {CANARY}:
        refused(speaker, CREATE, json.dumps({"fields": FIELDS, name: CANARY}).encode(), 422, "invalid")
        refused(speaker, CREATE, json.dumps({"fields": {**FIELDS, name: CANARY}}).encode(), 422, "invalid")
        for event in EVENTS:
            path, by, body = fine(tasks, event)
            refused(speaker, path, json.dumps(body | {name: 0}).encode(), 422, "invalid", by) if name != "epoch" else None
            refused(speaker, path, json.dumps(body | {"args": body["args"] | {name: CANARY}}).encode(), 422, "invalid", by)
    for count in (200, 50_000):
        refused(speaker, CREATE, json.dumps({"fields": FIELDS, **{f"k{n}": 0 for n in range(count)}}).encode(), 422, "invalid")
        refused(speaker, CREATE, json.dumps({"fields": {**FIELDS, **{f"k{n}": 0 for n in range(count)}}}).encode(), 422, "invalid")


def test_text_that_no_store_takes_and_values_of_another_type(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    path, by, body = fine(tasks, "request_approval")
    approve, reviewer, decision = fine(tasks, "approve")
    for value in (*UNFIT_TEXT.values(), *NOT_TEXT.values(), None):
        refused(speaker, path, json.dumps(body | {"args": {"draft": value}}).encode(), 422, "invalid", by)
        for name in FIELDS:
            refused(speaker, CREATE, json.dumps({"fields": FIELDS | {name: value}}).encode(), 422, "invalid")
        if value is not None:
            refused(speaker, approve, json.dumps(decision | {"args": {"review_note": value}}).encode(), 422, "invalid", reviewer)
            refused(speaker, approve, json.dumps(decision | {"digest": value}).encode(), 422, "invalid", reviewer)
            refused(speaker, CREATE, json.dumps({"fields": FIELDS, "machine": value}).encode(), 422, "invalid")
    for blank in ("", " ", "\t\n", "\N{NO-BREAK SPACE}"):
        refused(speaker, CREATE, json.dumps({"fields": FIELDS | {"title": blank}}).encode(), 422, "invalid")


def test_numbers_that_are_none(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    path, by, body = fine(tasks, "complete")
    for epoch in ("1", 1.0, True, -1, 10**18, 2**63, [], {}, CANARY):
        refused(speaker, path, json.dumps(body | {"epoch": epoch}).encode(), 422, "invalid", by)
    for priority in ("1", 1.0, True, None, 1_001, -1_001, 10**18, 2**63):
        refused(speaker, CREATE, json.dumps({"fields": FIELDS, "priority": priority}).encode(), 422, "invalid")
    for number in (b"1e400", b"NaN", b"-Infinity", b"9" * 5_000):
        refused(speaker, path, b'{"args": {}, "epoch": ' + number + b"}", 400, "malformed", by)


def test_names_that_are_none(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    """In heads, where HTTP lets them through at all."""
    path, by, body = fine(tasks, "complete")
    sent = json.dumps(body).encode()
    for name in NO_NAME.values():
        if "\n" in name or not name.isascii():
            continue
        for header in ("Pointsman-As", "Pointsman-Session", "Idempotency-Key"):
            if header == "Pointsman-As" or name.casefold() != "anonymous":
                headers = {"Pointsman-As": by, header: name}
                answer = speaker.send("POST", path, sent, headers)
                assert (answer.status, [fault["path"] for fault in answer.body["failed"]]) == (422, [f"header.{header}"])


@pytest.mark.parametrize("kind", [kind for kind, id in NO_ID.items() if len(id) < 1_000 and id])
def test_ids_that_are_none(speaker: Speaker, kind: str) -> None:
    id = quote(NO_ID[kind], safe="")
    for method, path in (
        ("GET", f"/v1/tasks/{id}"),
        ("GET", f"/v1/tasks/{id}/history"),
        ("GET", f"/v1/tasks/{id}/report"),
        ("GET", f"/v1/proposals/{id}"),
        ("POST", f"/v1/tasks/{id}/events/claim"),
    ):
        answer = speaker.ask(method, path, "bob", {} if method == "POST" else None)
        assert (answer.status, answer.body["code"]) == ((404, "unknown_path") if kind == "traversal" else (422, "invalid")), path


def test_paths_that_lead_out(speaker: Speaker) -> None:
    for path in (
        "/v1/../etc/passwd",
        "/v1/%2e%2e/etc/passwd",
        "/v1/tasks/%2e%2e/%2e%2e/etc/passwd",
        "/v1/machines/..%5c..%5cetc",
        "/v1/%00",
    ):
        answer = speaker.ask("GET", path)
        assert (answer.status, answer.body["code"]) in ((404, "unknown_path"), (422, "invalid")), path
        assert "root:" not in json.dumps(answer.body)


def test_searches_are_no_patterns_and_no_sql(speaker: Speaker) -> None:
    for q in ("%", "_", "\\", "'; DROP TABLE tasks; --", '" OR ""="', "*", "(a+)+$", "[", "\\u0000"):
        found = speaker.told(f"/v1/tasks?limit=500&q={quote(q)}")["tasks"]
        assert all(word in _text(task) for task in found for word in q.casefold().split()), q
    assert speaker.ask("GET", "/v1/tasks?q=%00").status == 422


def _text(task: dict[str, Any]) -> str:
    return "\n".join(value for value in task["fields"].values() if isinstance(value, str)).casefold()


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/problem+json", ""]
)
def test_other_content_types(speaker: Speaker, tasks: dict[str, dict[str, Any]], kind: str) -> None:
    for path, by in everywhere(tasks):
        refused(speaker, path, b"{}", 415, "unsupported_media", by, **{"content-type": kind})


def test_encoded_and_large_bodies(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    for path, by in everywhere(tasks):
        refused(speaker, path, b"{}", 415, "unsupported_media", by, **{"content-encoding": "gzip"})
        refused(speaker, path, b" " * ((1 << 20) + 1), 413, "too_large", by)


def test_versions_and_epochs_of_another_time(speaker: Speaker, tasks: dict[str, dict[str, Any]]) -> None:
    path, by, body = fine(tasks, "complete")
    version = tasks["complete"]["version"]
    for tag in ("0", "1", str(version - 1), str(version + 1), "9" * 15):
        answer = speaker.ask("POST", path, by, body, If_Match=f'"{tag}"')
        assert (answer.status, answer.body["code"], answer.body["version"]) == (412, "stale_version", version)
    for epoch in (0, 2, 2**53 - 1):
        answer = speaker.ask("POST", path, by, body | {"epoch": epoch})
        assert (answer.status, answer.body["code"]) == (409, "lease_lost")


def test_an_id_of_nobodys(speaker: Speaker) -> None:
    for event in EVENTS:
        answer = speaker.propose(NOBODY, event, "bob", {"args": {}})
        assert (answer.status, answer.body["code"]) == (404, "unknown_task")
