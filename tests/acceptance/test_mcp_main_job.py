"""The whole job over MCP with the official client and two names: over stdio, over HTTP, and both on one SQLite file."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from acceptance.process import Served, start, stop
from acceptance.spoken import MODES, PATHS, Spoken, over_http, over_stdio
from pointsman import Pointsman
from support import BAD, BRIEF, GOOD


async def whole_job(worker: Spoken, reviewer: Spoken, *, holds: bool) -> dict[str, Any]:
    """A refusal by evidence, a rejection, an approval. A server that holds the epoch is not sent it."""
    made = await worker.call("create_task", title="Release notes", brief=BRIEF)
    task = await worker.call("claim_task", task_id=made["id"])
    mine = {"task_id": task["id"], **({} if holds else {"epoch": task["epoch"]})}
    await worker.call("start_draft", **mine)
    assert (await reviewer.refused("start_draft", task_id=task["id"], epoch=task["epoch"]))["code"] == "not_owner"
    no = await worker.refused("request_approval", **mine, draft=BAD)
    assert (no["code"], no["recorded"]) == ("evidence_failed", True)
    asked = await worker.call("request_approval", **mine, draft=GOOD)
    assert (await worker.refused("approve", task_id=task["id"], digest=asked["digest"]))["code"] == "self_approval"
    seen = await reviewer.call("get_task", task_id=task["id"])
    assert {"approve", "reject"} <= set(seen["tools"])
    rejected = await reviewer.call("reject", task_id=task["id"], digest=seen["digest"], review_note="name the agents")
    assert rejected["state"] == "drafting"
    assert (await worker.call("wait_task", task_id=task["id"], version=asked["version"]))["fields"]["review_note"] == "name the agents"
    again = await worker.call("request_approval", **mine, draft=GOOD + " Claude, Codex and four more.")
    assert (await reviewer.refused("approve", task_id=task["id"], digest=seen["digest"]))["code"] == "stale_content"
    await reviewer.call("approve", task_id=task["id"], digest=again["digest"], expect_version=again["version"])
    return await worker.call("complete_task", **mine)


@pytest.mark.parametrize("mode", MODES)
def test_over_stdio(tmp_path: Path, mode: str) -> None:
    async def run() -> dict[str, Any]:
        async with (
            over_stdio("--as", "worker-a", folder=tmp_path, mode=mode) as worker,
            over_stdio("--as", "rita", folder=tmp_path, mode=mode) as reviewer,
        ):
            assert worker.client.protocol_version == MODES[mode]
            assert "claim_task" in (worker.client.instructions or "")
            return await whole_job(worker, reviewer, holds=True)

    recorded(asyncio.run(run()), f"sqlite:///{tmp_path}/pointsman.db")


@pytest.mark.parametrize("mode", MODES)
def test_over_http(served: Served, mode: str) -> None:
    async def run() -> dict[str, Any]:
        async with over_http(served.url, "worker-a", mode) as worker, over_http(served.url, "rita", mode) as reviewer:
            assert worker.client.protocol_version == MODES[mode]
            return await whole_job(worker, reviewer, holds=False)

    recorded(asyncio.run(run()), served.db)


def test_a_stdio_process_and_a_server_share_one_file(served: Served, tmp_path: Path) -> None:
    async def run() -> dict[str, Any]:
        async with (
            over_stdio("--db", served.db, "--as", "worker-a", folder=tmp_path) as worker,
            over_http(served.url, "rita") as reviewer,
        ):
            return await whole_job(worker, reviewer, holds=True)

    recorded(asyncio.run(run()), served.db)


def test_a_stdio_process_passes_calls_on_to_a_server(served: Served, tmp_path: Path) -> None:
    async def run() -> dict[str, Any]:
        async with (
            over_stdio("--url", served.url, "--as", "worker-a", folder=tmp_path) as worker,
            over_stdio("--url", f"{served.url}/mcp", "--as", "rita", folder=tmp_path) as reviewer,
        ):
            return await whole_job(worker, reviewer, holds=False)

    recorded(asyncio.run(run()), served.db)
    assert not list(tmp_path.iterdir()), "a proxy opens no database"


def recorded(task: dict[str, Any], db: str) -> None:
    """Done, every step on record as come by MCP, the chain whole."""
    assert task["state"] == "done"
    with Pointsman(db, create=False) as pm:
        entries = pm.history(task["id"])
        assert {entry.door for entry in entries} == {"mcp"}
        assert [entry.by for entry in entries if entry.event in ("approve", "reject")] == ["rita", "rita"]
        assert [entry.event for entry in entries] == [
            *("create", "claim", "start_draft", "request_approval", "request_approval"),
            *("reject", "request_approval", "approve", "complete"),
        ]
        assert pm.verify().ok


def test_a_proxy_says_when_its_server_is_gone(tmp_path: Path) -> None:
    gone = start(f"sqlite:///{tmp_path}/work.db")

    async def run() -> dict[str, Any]:
        async with over_stdio("--url", gone.url, "--as", "worker-a", folder=tmp_path) as worker:
            await worker.call("list_work")
            stop(gone)
            return await worker.refused("create_task", title="A", brief="B")

    answer = asyncio.run(run())
    assert (answer["code"], answer["outcome"]) == ("store_unavailable", "unknown")
    command = [sys.executable, "-m", "pointsman", "mcp", "--url", gone.url]
    done = subprocess.run(command, env={"PYTHONPATH": PATHS}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (5, f"store_unavailable: no Pointsman server answers at {gone.url}/mcp\n")
