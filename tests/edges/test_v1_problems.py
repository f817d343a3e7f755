"""Every refusal of `/v1` is a problem of RFC 9457, whoever refuses: a rule, the store, a route, the guard, our own fault."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from edges.v1_world import FIELDS, NOBODY, PROBLEM, Board, board, paths, refused
from pointsman import Refused, StoreError
from pointsman.engine.pointsman import Aio
from pointsman.errors import CODES, Refusal
from pointsman.http import problem
from pointsman.http.body import BODY_LIMIT


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_its_status(code: str) -> None:
    told = problem.refused(Refused(Refusal(code, "why", task=NOBODY, state="queued", version=3, extra={"more": 1})))
    body = json.loads(told.body)
    assert (told.status_code, told.media_type) == (CODES[code].http, PROBLEM)
    assert list(body)[:5] == ["type", "title", "status", "detail", "code"]
    assert body == {
        "type": f"urn:pointsman:{code}",
        "title": CODES[code].meaning,
        "status": CODES[code].http,
        "detail": "why",
        "code": code,
        "task": NOBODY,
        "state": "queued",
        "version": 3,
        "failed": [],
        "allowed": [],
        "unblock": [],
        "recorded": False,
        "more": 1,
    }


ASKED: list[tuple[str, str, str, Any]] = [
    ("create", "POST", "/v1/tasks", {"fields": FIELDS}),
    ("propose", "POST", f"/v1/tasks/{NOBODY}/events/claim", {"args": {}}),
    ("get", "GET", f"/v1/tasks/{NOBODY}", None),
    ("list", "GET", "/v1/tasks", None),
    ("as_of", "GET", "/v1/tasks", None),
    ("as_of", "GET", "/v1/feed", None),
    ("approvals", "GET", "/v1/approvals", None),
    ("proposal", "GET", f"/v1/proposals/{NOBODY}", None),
    ("history", "GET", f"/v1/tasks/{NOBODY}/history", None),
    ("diff", "GET", f"/v1/tasks/{NOBODY}/diff?from=1&to=1", None),
    ("report", "GET", f"/v1/tasks/{NOBODY}/report", None),
    ("evidence", "GET", f"/v1/tasks/{NOBODY}/evidence", None),
    ("decisions", "GET", f"/v1/tasks/{NOBODY}/decisions", None),
    ("audit", "GET", "/v1/audit", None),
    ("published", "GET", "/v1/machines", None),
    ("published", "GET", "/v1/machines/tasks", None),
]


@pytest.mark.parametrize(("verb", "method", "path", "body"), ASKED)
def test_a_store_that_fails(at: Board, monkeypatch: pytest.MonkeyPatch, verb: str, method: str, path: str, body: Any) -> None:
    for outcome in ("not_done", "unknown"):
        monkeypatch.setattr(Aio, verb, _failing(StoreError("store_busy", "the store did not answer in time", outcome)))
        answer = at.send(method, path, "ann", **({"json": body} if body else {}))
        assert refused(answer, 503, "store_busy")["outcome"] == outcome
        assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize(("verb", "method", "path", "body"), ASKED)
def test_a_fault_of_our_own_is_told_without_its_words(
    at: Board, monkeypatch: pytest.MonkeyPatch, verb: str, method: str, path: str, body: Any
) -> None:
    monkeypatch.setattr(Aio, verb, _failing(ZeroDivisionError("secret")))
    answer = at.send(method, path, "ann", **({"json": body} if body else {}))
    assert "secret" not in json.dumps(refused(answer, 500, "internal_error"))


def _failing(fault: Exception) -> Any:
    async def fail(*_: Any, **__: Any) -> None:
        raise fault

    return fail


def test_the_health_of_a_store_that_fails(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in ("figures", "list"):
        monkeypatch.setattr(Aio, verb, _failing(StoreError("store_unavailable", "the file is gone")))
    for path in ("/readyz", "/metrics"):
        answer = at.get(path)
        assert (answer.status_code, answer.json()) == (503, {"detail": "the file is gone", "outcome": "not_done"})
    assert at.told("/healthz") == {"status": "ok"}
    monkeypatch.undo()
    assert at.told("/readyz") == {"status": "ready"}


def test_a_path_that_is_none(at: Board) -> None:
    for path in (
        "/v1/",
        "/v1/nonsense",
        "/v1/tasks/",
        f"/v1/tasks/{NOBODY}/",
        "/v1/claims/",
        f"/v1/tasks/{NOBODY}/lease/",
        "/v1/holds/",
        "/v1//tasks",
    ):
        refused(at.get(path), 404, "unknown_path")
    assert at.get("/v2/tasks").json() == {"detail": "Not Found"}


@pytest.mark.parametrize("method", ["HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_another_method(at: Board, method: str) -> None:
    for path, allowed in (("/v1/tasks", {"GET", "POST"}), (f"/v1/tasks/{NOBODY}", {"GET"}), (f"/v1/tasks/{NOBODY}/events/claim", {"POST"})):
        answer = at.send(method, path, headers={"X-HTTP-Method-Override": "GET"})
        assert set(answer.headers["allow"].split(", ")) == allowed
        assert answer.status_code == 405
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Host": "evil.example"}, 421, "misdirected"),
        ({"Origin": "http://evil.example"}, 403, "forbidden"),
        ({"Origin": "null"}, 403, "forbidden"),
        ({"X-Forwarded-For": "192.0.2.7"}, 403, "forbidden"),
        ({"Transfer-Encoding": "gzip"}, 400, "malformed"),
        ({"X-Long": "a" * 33_000}, 431, "head_too_large"),
    ],
)
def test_what_the_guard_refuses(at: Board, headers: dict[str, str], status: int, code: str) -> None:
    refused(at.send("GET", "/v1/tasks", headers=headers), status, code)


def test_a_request_from_another_machine(at: Board) -> None:
    transport = httpx.ASGITransport(at.api, client=("192.0.2.7", 5000))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/v1/tasks")

    refused(at.runner.run(ask()), 403, "forbidden")


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b'{"fields": {}', {}, 400, "malformed"),
        (b'{"fields": {}, "fields": {}}', {}, 400, "malformed"),
        (b"\xff", {}, 400, "malformed"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "unsupported_media"),
        (b"{}", {"Content-Encoding": "gzip"}, 415, "unsupported_media"),
        (b" " * (BODY_LIMIT + 1), {}, 413, "too_large"),
    ],
)
def test_bodies_that_are_not_read(at: Board, content: bytes, headers: dict[str, str], status: int, code: str) -> None:
    answer = at.send("POST", "/v1/tasks", "ann", content=content, headers={"Content-Type": "application/json", **headers})
    refused(answer, status, code)
    assert at.pm.list() == []


def test_what_the_body_says_is_judged_before_who_asks(at: Board) -> None:
    twice = [("Pointsman-As", "bob"), ("Pointsman-As", "ann"), ("Content-Type", "application/json")]
    post = at.client.post
    refused(at.runner.run(post("/v1/tasks", content=b"{", headers=twice)), 400, "malformed")
    assert paths(refused(at.runner.run(post("/v1/tasks", content=b"{}", headers=twice)), 422, "invalid")) == ["fields"]
    refused(at.runner.run(post(f"/v1/tasks/{NOBODY}/events/claim", content=b"{}", headers=twice)), 403, "identity_mismatch")
