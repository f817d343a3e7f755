"""`/v1` of a real server: the whole job, and of every operation every status that can be met from outside."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from acceptance.flat import GOOD, NOBODY
from acceptance.process import Served
from acceptance.v1 import FIELDS, Speaker
from pointsman.http.v1.describe import EVENTS, responses
from pointsman.http.v1.leases import CLAIMS
from pointsman.http.v1.table import OPERATIONS

ELSEWHERE = {"503", "410", "408"}
"""Met by no request alone: a store that fails, a pruned version, a connection that stalls."""

OF_ITS_OWN = {
    ("POST", EVENTS): {"202"},
    ("GET", "/v1/proposals/{id}"): {"200"},
    ("POST", "/v1/tasks"): {"409"},
    ("POST", CLAIMS): {"409"},
}
"""What takes a slow check (P26), a machine version that this server lacks, or a machine that claims otherwise."""


@pytest.fixture
def speaker(served: Served) -> Iterator[Speaker]:
    with Speaker(served.url) as speaking:
        yield speaking


def test_the_whole_job(speaker: Speaker) -> None:
    made = speaker.create("ann")
    id = made.body["id"]
    assert (made.status, made.headers["location"], made.headers["etag"]) == (201, f"/v1/tasks/{id}", '"1"')
    assert speaker.move(id, "claim", "bob")["owner"] == "bob"
    speaker.move(id, "start_draft", "bob", epoch=1)
    refused = speaker.propose(id, "request_approval", "bob", {"epoch": 1, "args": {"draft": "short"}})
    assert (refused.status, refused.body["code"], refused.body["recorded"]) == (409, "evidence_failed", True)
    sent = speaker.move(id, "request_approval", "bob", epoch=1, args={"draft": GOOD})
    assert [task["id"] for task in speaker.told("/v1/approvals", "rita")["tasks"]].count(id) == 1
    assert speaker.propose(id, "approve", "bob", {"digest": sent["digest"]}).status == 403
    speaker.move(id, "reject", "rita", digest=sent["digest"], args={"review_note": "More."})
    sent = speaker.move(id, "request_approval", "bob", epoch=1, args={"draft": GOOD + " And more."})
    speaker.move(id, "approve", "rita", digest=sent["digest"])
    assert speaker.propose(id, "complete", "bob", {"epoch": 1}, If_Match='"1"').status == 412
    assert speaker.move(id, "complete", "bob", epoch=1)["state"] == "done"
    events = [entry["event"] for entry in speaker.told(f"/v1/tasks/{id}/history")["entries"]]
    assert events == [
        *("create", "claim", "start_draft", "request_approval", "request_approval"),
        *("reject", "request_approval", "approve", "complete"),
    ]
    assert len(speaker.told(f"/v1/tasks/{id}/decisions")["decisions"]) == 2
    assert speaker.told(f"/v1/tasks/{id}/report")["open"] == {}


def test_the_two_doors_see_one_board(speaker: Speaker) -> None:
    task = speaker.lead("awaiting_approval")
    assert speaker.done("/approve", task_id=task["id"], reviewer="rita", digest=task["digest"])["state"] == "approved"
    assert speaker.move(task["id"], "complete", "bob", epoch=1)["state"] == "done"
    assert [entry["door"] for entry in speaker.told(f"/v1/tasks/{task['id']}/history")["entries"]][-2:] == ["flat", "http"]


# ── every status ─────────────────────────────────────────────────────────────────────────────────────────────────────

Met = dict[tuple[str, str], set[str]]


def test_every_documented_status_is_met(served: Served, speaker: Speaker) -> None:
    met: Met = {(item.method, item.path): set() for item in OPERATIONS}
    for method, path, by, body, headers in _asked(speaker):
        streamed = path.startswith("/v1/feed")
        status = _said(served, f"GET {path} {FINE}".encode()) if streamed else speaker.ask(method, path, by, body, **headers).status
        met[method, _template(path, met)].add(str(status))
    for method, template in met:
        for head, status in GUARDED:
            assert _said(served, f"{method} {_any(template)} HTTP/1.1\r\n{head}\r\n\r\n".encode()) == status, (method, template, head)
            met[method, template].add(str(status))
    for item in OPERATIONS:
        pair = item.method, item.path
        assert met[pair] | ELSEWHERE | OF_ITS_OWN.get(pair, set()) == set(responses(item)) | ELSEWHERE, pair


FINE = "HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
GUARDED = (
    ("Host: 127.0.0.1\r\nHost: 127.0.0.1", 400),
    ("Host: 127.0.0.1\r\nOrigin: http://evil.example", 403),
    ("Host: evil.example", 421),
    ("Host: 127.0.0.1\r\nX-Long: " + "a" * 33_000, 431),
)


def _asked(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    """(method, path, by, body, headers) that bring every operation to every status that its caller can bring about."""
    queued, waiting = speaker.lead("queued")["id"], speaker.lead("awaiting_approval")
    create = {"fields": FIELDS}
    yield from (("POST", "/v1/tasks", "ann", body, {}) for body in (create, {}, create | {"machine": "nonsense"}))
    yield "POST", "/v1/tasks", "ann", {"fields": {"x": "y" * (1 << 20)}}, {}
    yield "POST", "/v1/tasks", "ann", create, {"Content_Type": "text/plain"}
    yield "POST", "/v1/tasks", "ann", create, {"Idempotency_Key": "status"}
    yield "POST", "/v1/tasks", "ann", create | {"priority": 1}, {"Idempotency_Key": "status"}
    claim = f"/v1/tasks/{queued}/events/claim"
    yield "POST", claim, "bob", {"args": {}}, {"If_Match": '"9"'}
    yield from (("POST", claim, by, {"args": {}}, {}) for by in ("bob", "bob", None))
    yield "POST", f"/v1/tasks/{NOBODY}/events/claim", "bob", {"args": {}}, {}
    yield "POST", f"/v1/tasks/{waiting['id']}/events/approve", "bob", {"digest": waiting["digest"]}, {}
    yield "POST", claim, "bob", {"args": {"x": "y" * (1 << 20)}}, {}
    yield "POST", claim, "bob", {}, {"Content_Type": "text/plain"}
    yield from (("POST", "/v1/tasks", "ann", create | {"dedupe_key": "every status"}, {}) for _ in range(2))
    yield from _of_leases(speaker)
    yield from _of_holds(speaker)
    yield from _of_batches(speaker)
    yield from _of_ends(speaker)
    yield from _of_the_ledger(speaker)
    yield "GET", f"/v1/tasks/{queued}", None, None, {"If_None_Match": '"2"'}
    for last in ("", "/history", "/evidence", "/decisions", "/diff?from=1&to=1", "/report", "/operations", "/resume"):
        for id in (queued, NOBODY, "nonsense"):
            yield "GET", f"/v1/tasks/{id}{last}", None, None, {}
    yield from (("GET", f"/v1/proposals/{id}", None, None, {}) for id in (NOBODY, "nonsense"))
    for path in ("/v1/tasks", "/v1/approvals", "/v1/audit", "/v1/holds", "/v1/machines", "/v1/machines/tasks", "/v1/feed"):
        yield "GET", path, "rita", None, {}
        yield "GET", f"{path}?nonsense=1", "rita", None, {}
    yield "GET", "/v1/tasks?machine=nonsense", None, None, {}
    yield "GET", "/v1/machines/nonsense", None, None, {}


def _of_leases(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    long, plain = {"machine": "y" * (1 << 20)}, {"Content_Type": "text/plain"}
    yield from (("POST", "/v1/claims", "bob", body, {}) for body in ({}, {"limit": 0}, {"machine": "nonsense"}, long))
    yield "POST", "/v1/claims", "bob", {}, plain
    mine = {"epoch": 1}
    for method in ("POST", "DELETE"):
        lease = f"/v1/tasks/{speaker.lead('claimed')['id']}/lease"
        yield from ((method, lease, "bob", body, {}) for body in (mine, {}, long))
        yield method, lease, "eve", mine, {}
        yield method, lease, "bob", mine, plain
        yield method, f"/v1/tasks/{NOBODY}/lease", "bob", mine, {}


def _of_holds(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    fine = {"match": {"tag": "nobody-has-it"}, "reason": "to be lifted"}
    unknown, long = {**fine, "match": {"machine": "nonsense"}}, {**fine, "reason": "y" * (1 << 20)}
    yield from (("POST", "/v1/holds", "olga", body, {}) for body in (fine, {}, unknown, long))
    yield "POST", "/v1/holds", "olga", fine, {"Content_Type": "text/plain"}
    placed = speaker.told("/v1/holds")["holds"][0]["id"]
    yield from (("DELETE", f"/v1/holds/{id}", "olga", None, {}) for id in (placed, NOBODY, "nonsense"))


def _of_batches(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    batch, fine = "/v1/tasks/batch", {"tasks": [{"fields": FIELDS}]}
    long = {"tasks": [{"fields": {"x": "y" * (1 << 20)}}]}
    unknown = {"tasks": [{"fields": FIELDS, "blocked_by": [{"task": NOBODY}]}]}
    above = {**fine, "parent": speaker.lead("claimed")["id"], "epoch": 9}
    yield from (("POST", batch, "ann", body, {}) for body in (fine, {}, unknown, long, above))
    yield "POST", batch, "ann", fine, {"Content_Type": "text/plain"}


def _of_ends(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    """Cancelling twice, and unparking what was tried too often."""
    why, long = {"reason": "every status"}, {"reason": "y" * (1 << 20)}
    tried = speaker.lead("queued")["id"]
    for epoch in range(1, 6):
        speaker.move(tried, "claim", "bob")
        assert speaker.ask("DELETE", f"/v1/tasks/{tried}/lease", "bob", {"epoch": epoch}).status == 200
    for verb, id in (("cancel", speaker.lead("queued")["id"]), ("unpark", tried)):
        path = f"/v1/tasks/{id}/{verb}"
        yield "POST", path, "olga", why, {"If_Match": '"99"'}
        yield from (("POST", path, "olga", body, {}) for body in (why, {}, long, why))
        yield "POST", path, "olga", why, {"Content_Type": "text/plain"}
        yield "POST", f"/v1/tasks/{NOBODY}/{verb}", "olga", why, {}


def _of_the_ledger(speaker: Speaker) -> Iterator[tuple[str, str, str | None, Any, dict[str, str]]]:
    task = f"/v1/tasks/{speaker.lead('claimed')['id']}"
    begin, kept = {"epoch": 1, "name": "load", "kind": "keyed"}, {"epoch": 1, "data": 1}
    yield from (("POST", f"{task}/operations", "bob", begin, {}) for _ in range(2))
    operation = speaker.told(f"{task}/operations")["operations"][0]["id"]
    outcome = {"epoch": 1, "status": "succeeded"}
    calls = (
        ("POST", task, "/operations", begin),
        ("PUT", task, "/checkpoint", kept),
        ("POST", f"/v1/operations/{operation}", "/outcome", outcome),
    )
    for method, of, last, fine in calls:
        long = {**fine, "note": "y" * (1 << 20)}
        yield from ((method, f"{of}{last}", "bob", body, {}) for body in (fine, {}, long, {**fine, "epoch": 9}))
        yield method, f"{of}{last}", "bob", fine, {"Content_Type": "text/plain"}
        yield method, f"{of.rpartition('/')[0]}/{NOBODY}{last}", "bob", fine, {}


def _template(path: str, known: Any) -> str:
    bare = path.partition("?")[0]
    return next(template for _, template in known if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), bare))


def _any(template: str) -> str:
    return template.replace("{id}", NOBODY).replace("{event}", "claim").replace("{name}", "tasks")


def _said(served: Served, request: bytes) -> int:
    """The status of one answer, which must be a problem unless it is a stream."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        connection.sendall(request)
        told = b""
        while b"\r\n\r\n" not in told:
            told += connection.recv(65_536)
    status = int(told.split(b" ", 2)[1])
    assert (b"application/problem+json" if status >= 400 else b"text/event-stream") in told
    return status
