"""Figures of the flat service: the six-call lifecycle beside FastAPI with a small JSON body on the same settings."""

import json
import time
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Any

from bench import raw, servers
from bench.raw import Answer, post
from bench.table import Effort, Line, beside

CLIENTS = 8
DRAFT = "The release notes say what changed in version two, and why it matters."


def figures(folder: Path, effort: Effort) -> list[Line]:
    return [lifecycle(folder, effort), *start(folder)]


def lifecycle(folder: Path, effort: Effort) -> Line:
    floor_port, port = servers.free_port(), servers.free_port()
    with (
        servers.running(servers.small_json(floor_port), floor_port),
        servers.running(servers.pointsman(folder / f"flat-{uuid.uuid4()}.db", port), port),
    ):
        return beside(
            f"flat service, calls of the six-call lifecycle, {CLIENTS} clients",
            lambda: raw.drive(floor_port, [small() for _ in range(CLIENTS)], effort.seconds),
            lambda: raw.drive(port, [whole(f"agent-{n}") for n in range(CLIENTS)], effort.seconds),
            effort,
            "≥ 0.35",
        )


def small() -> raw.Client:
    request = post("/start-draft", {"task_id": str(uuid.uuid4()), "agent_id": "bench"})
    while True:
        _ok((yield request))


def whole(agent: str) -> raw.Client:
    """Enqueue, claim by id, start, request approval, approve, complete; again and again."""
    while True:
        task = yield from _call("/enqueue", {"title": "Release notes", "brief": "Say what changed in version two"})
        mine = {"task_id": task["id"], "agent_id": agent}
        yield from _call("/claim", mine)
        yield from _call("/start-draft", mine)
        yield from _call("/request-approval", mine | {"draft": DRAFT})
        yield from _call("/approve", {"task_id": task["id"], "reviewer": "reviewer"})
        done = yield from _call("/complete", mine)
        assert done["state"] == "done", done


def _call(path: str, body: dict[str, Any]) -> Generator[bytes, Answer, dict[str, Any]]:
    return json.loads(_ok((yield post(path, body))))


def _ok(answer: Answer) -> bytes:
    status, body = answer
    if status != 200:
        raise AssertionError(f"{status}: {body.decode()}")
    return body


def start(folder: Path) -> list[Line]:
    """From starting `serve` on a new database to its first healthy answer, and what it then weighs."""
    port = servers.free_port()
    began = time.perf_counter()
    with servers.running(servers.pointsman(folder / f"start-{uuid.uuid4()}.db", port), port) as process:
        took = time.perf_counter() - began
        raw.ask(port, post("/enqueue", {"title": "Release notes", "brief": "Say what changed"}))
        weight = servers.resident_mib(process.pid)
    return [
        Line("serve, start to first healthy answer", f"{took:.2f} s", aim="≤ 1.0 s"),
        Line("serve, resident memory after one call", f"{weight:.0f} MiB", aim="≤ 100 MiB"),
    ]
