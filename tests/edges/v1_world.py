"""A client of `/v1` in the test's own process: the application on a fresh database, asked over ASGI."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from pointsman import Machine, Pointsman, Tasks
from pointsman.http import app

NOBODY = "01890000-0000-7000-8000-000000000000"
FIELDS = {"title": "Release notes", "brief": "Summarise the scheduler changes"}
GOOD = "Release notes: the scheduler now shares its queue between six agents without double claims."
PROBLEM = "application/problem+json"

Response = httpx.Response


class Board:
    """Blocking calls on one event loop; `by` is the name in Pointsman-As."""

    def __init__(self, pm: Pointsman, api: Any, runner: asyncio.Runner):
        self.pm, self.api, self.runner = pm, api, runner
        transport = httpx.ASGITransport(api, raise_app_exceptions=False)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")

    def send(self, method: str, path: str, by: str | None = None, **options: Any) -> Response:
        headers = {**({"Pointsman-As": by} if by else {}), **options.pop("headers", {})}
        if "json" in options:
            options["content"] = json.dumps(options.pop("json")).encode()
            headers = {"Content-Type": "application/json", **headers}
        return self.runner.run(self.client.request(method, path, headers=headers, **options))

    def get(self, path: str, by: str | None = None, **query: Any) -> Response:
        return self.send("GET", path, by, params=query or None)

    def told(self, path: str, by: str | None = None, **query: Any) -> Any:
        """A GET that must succeed."""
        answer = self.get(path, by, **query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def create(self, by: str = "ann", headers: dict[str, str] | None = None, **members: Any) -> Response:
        return self.send("POST", "/v1/tasks", by, json={"fields": FIELDS, **members}, headers=headers or {})

    def propose(self, id: str, event: str, by: str | None = None, /, *, headers: dict[str, str] | None = None, **members: Any) -> Response:
        query = "?dry_run=true" if members.pop("dry_run", False) else ""
        return self.send("POST", f"/v1/tasks/{id}/events/{event}{query}", by, json={"args": {}, **members}, headers=headers or {})

    def done(self, id: str, event: str, by: str, **members: Any) -> dict[str, Any]:
        """A proposal that must be accepted."""
        answer = self.propose(id, event, by, **members)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def bring(self, state: str) -> dict[str, Any]:
        """A new task of `bob`, brought to a state."""
        task = self.create().json()
        for event, by in WAY[: STATES.index(state)]:
            guard = {"digest": task["digest"]} if by == "rita" else {"epoch": task["epoch"]} if event != "claim" else {}
            task = self.done(task["id"], event, by, args={"draft": GOOD} if event == "request_approval" else {}, **guard)
        assert task["state"] == state
        return task


STATES = ("queued", "claimed", "drafting", "awaiting_approval", "approved", "done")
WAY = (("claim", "bob"), ("start_draft", "bob"), ("request_approval", "bob"), ("approve", "rita"), ("complete", "bob"))


@contextmanager
def board(folder: Path, *machines: type[Machine], **options: Any) -> Iterator[Board]:
    with Pointsman(f"sqlite:///{folder}/work.db", machines or (Tasks,), **options) as pm, asyncio.Runner() as runner:
        yield Board(pm, app(pm), runner)


def refused(answer: Response, status: int, code: str) -> dict[str, Any]:
    """The members of a problem, which must be one."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM), answer.text
    told: dict[str, Any] = answer.json()
    assert (told["status"], told["code"], told["type"]) == (status, code, f"urn:pointsman:{code}"), told
    assert told["title"]
    assert told["detail"]
    return told


def paths(problem: dict[str, Any]) -> list[str]:
    return [item["path"] for item in problem["failed"]]
