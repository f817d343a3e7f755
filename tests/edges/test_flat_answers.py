"""How a refusal, a fault of the store, and a fault of our own are told; and that a long list is told in pages."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from pointsman import Pointsman, Refused, StoreError
from pointsman.engine.pointsman import Aio
from pointsman.errors import CODES, Refusal, invalid
from pointsman.http import app, endpoints
from pointsman.http.answer import STATUS, encode, refusal
from pointsman.http.flat import CONFLICTS, TASKS

APPROVE = next(post for post in TASKS.posts if post.path == "/approve")
TASK = "01890000-0000-7000-8000-000000000000"

SENTENCE = {"evidence_failed": "evidence failed: {'ok': False, 'reason': 'why'}"} | dict.fromkeys(CONFLICTS, "not awaiting approval")
STATUSES = {code: known.http for code, known in CODES.items()} | {"malformed": 422, "unknown_task": 409, "self_approval": 409}


@pytest.mark.parametrize("code", [code for code, known in CODES.items() if known.http != 503])
def test_every_code_has_its_answer(code: str) -> None:
    failed = [{"check": "topic", "status": "fail", "reason": "why"}] if code == "evidence_failed" else []
    told = refusal(Refused(Refusal(code, "one line", failed=failed)), APPROVE, TASKS)
    detail = json.loads(told.body)["detail"]
    assert told.status_code == STATUSES[code]
    if told.status_code == 422:
        assert detail == [{"type": code, "loc": ["body"], "msg": "one line"}]
    else:
        assert detail == SENTENCE.get(code, "one line")


def test_what_differs_from_the_table_of_codes_is_listed() -> None:
    assert {code for code in STATUSES if STATUSES[code] != CODES[code].http} == set(STATUS)


def test_a_fault_is_placed_by_the_callers_own_word() -> None:
    told = refusal(invalid(("args.review_note", "must be text"), ("fields.title", "must not be blank")), APPROVE, TASKS)
    assert [fault["loc"] for fault in json.loads(told.body)["detail"]] == [["body", "note"], ["body", "title"]]


def test_text_never_keeps_an_answer_from_being_written() -> None:
    assert encode("\ud800\u2028") == b'"\\ud800\\u2028"'


Ask = Callable[[httpx.AsyncClient], Coroutine[Any, Any, httpx.Response]]

ASKED: list[tuple[str, Ask]] = [
    ("propose", lambda client: client.post("/approve", json={"task_id": TASK})),
    ("create", lambda client: client.post("/enqueue", json={"title": "t", "brief": "b"})),
    ("claim", lambda client: client.post("/claim", json={"agent_id": "ann"})),
    ("list", lambda client: client.get("/open")),
    ("list", lambda client: client.get("/inbox", params={"agent_id": "ann"})),
]


@pytest.mark.parametrize(("verb", "ask"), ASKED)
@pytest.mark.parametrize("outcome", ["not_done", "unknown"])
def test_a_store_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, ask: Ask, outcome: str) -> None:
    answer = asked(tmp_path, monkeypatch, verb, StoreError("store_busy", "the store did not answer in time", outcome), ask)
    assert answer.status_code == 503
    assert answer.json() == {"detail": "the store did not answer in time", "outcome": outcome}
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize(("verb", "ask"), ASKED)
def test_a_fault_of_our_own_is_told_without_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, ask: Ask) -> None:
    answer = asked(tmp_path, monkeypatch, verb, ZeroDivisionError("secret"), ask)
    assert (answer.status_code, answer.json()) == (500, {"detail": "internal error"})


def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, fault: Exception, ask: Ask) -> httpx.Response:
    async def failing(*_: Any, **__: Any) -> None:
        raise fault

    async def run(api: FastAPI) -> httpx.Response:
        async with client_of(api) as client:
            return await ask(client)

    monkeypatch.setattr(Aio, verb, failing)
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        return asyncio.run(run(app(pm)))


def client_of(api: Any, base: str = "http://127.0.0.1") -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(api, raise_app_exceptions=False), base_url=base)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_a_long_list_comes_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(endpoints, "PAGE", 2)
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        made = [pm.create("tasks", {"title": f"t{n}", "brief": "b"}, by="ann").id for n in range(count)]
        told = asyncio.run(listed(pm))
    assert [row["id"] for row in json.loads(told)["rows"]] == made


def test_a_task_that_moves_while_the_list_is_told_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "PAGE", 2)
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        made = [pm.create("tasks", {"title": f"t{n}", "brief": "b"}, by="ann").id for n in range(5)]
        page: Any = Aio.list

        async def moving(self: Aio, **wanted: Any) -> Any:
            if wanted.get("after") is not None and pm.get(made[0]).state == "queued":
                pm.claim("tasks", by="bob", id=made[0])
            return await self.drive(page.steps(self, **wanted))

        monkeypatch.setattr(Aio, "list", moving)
        told = asyncio.run(listed(pm))
        assert pm.get(made[0]).state == "claimed", "it moved meanwhile"
    assert [row["id"] for row in json.loads(told)["rows"]] == made


async def listed(pm: Pointsman) -> bytes:
    async with client_of(app(pm)) as client:
        answer = await client.get("/open")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        return answer.content


def test_it_is_mounted_beside_other_routes(tmp_path: Path) -> None:
    async def run(api: FastAPI) -> None:
        async with client_of(api, "http://localhost:8000") as client:
            assert (await client.get("/mine")).json() == "mine"
            assert (await client.post("/work/enqueue", json={"title": "t", "brief": "b"})).status_code == 200
            assert len((await client.get("/work/open")).json()["rows"]) == 1
            assert (await client.get("/work/mine")).status_code == 404
            assert (await client.get("/work/open", headers={"host": "evil.example"})).status_code == 421

    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        mine = FastAPI()
        mine.add_api_route("/mine", lambda: "mine")
        mine.mount("/work", app(pm))
        asyncio.run(run(mine))


def test_a_request_from_another_machine_is_refused(tmp_path: Path) -> None:
    async def run(api: FastAPI) -> httpx.Response:
        transport = httpx.ASGITransport(api, client=("192.0.2.7", 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.get("/healthz")

    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        assert asyncio.run(run(app(pm))).status_code == 403


def test_the_openapi_document_names_every_status_of_every_path(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        paths = app(pm).openapi()["paths"]
    guarded = {"200", "400", "403", "408", "421", "431", "503"}
    for post in TASKS.posts:
        described = paths[post.path]["post"]
        assert set(described["responses"]) == guarded | {"409", "413", "415", "422"}
        schema = described["requestBody"]["content"]["application/json"]["schema"]
        assert schema["additionalProperties"] is False
        assert schema["required"] == [member.name for member in post.members if member.required]
    for rows in TASKS.rows:
        assert set(paths[rows.path]["get"]["responses"]) == guarded | ({"422"} if rows.inbox else set())
