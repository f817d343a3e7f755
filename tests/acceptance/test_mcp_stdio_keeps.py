"""A stdio process keeps what its client acquired for as long as the client lives, and no longer."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from acceptance.board import LONGER_S, PATIENCE_S, Board, board
from acceptance.spoken import PATHS, Spoken, command
from pointsman import Refused


@pytest.fixture
def jobs(url: str, tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, url) as made:
        yield made


def nobody_else_gets(jobs: Board, id: str) -> None:
    for _ in range(round(LONGER_S / 0.05)):
        with pytest.raises(Refused, match="already_claimed"):
            jobs.pm.claim("jobs", by="worker-b", id=id)
        threading.Event().wait(0.05)


async def holding(jobs: Board, id: str) -> None:
    """Take a task and do nothing for longer than its lease, then end the connection well."""
    async with Client(command("work.py", "--db", jobs.url, "--as", "worker-a", folder=jobs.folder), mode="legacy") as client:
        spoken = Spoken(client)
        assert "renews it for you" in (client.instructions or "")
        task = await spoken.call("claim_task", wait_s=20, states=["todo"])
        assert task["id"] == id
        await asyncio.to_thread(nobody_else_gets, jobs, id)
        await spoken.call("step", task_id=id)
        await asyncio.to_thread(nobody_else_gets, jobs, id)


def test_a_client_that_lives_keeps_its_task_and_gives_it_back_at_the_end(jobs: Board) -> None:
    id = jobs.create()
    asyncio.run(holding(jobs, id))
    task = jobs.pm.get(id)
    assert (task.state, task.owner, jobs.counted(id), jobs.pm.history(id)[-1].kind) == ("todo", None, (0, 0, 1), "release")


CLIENT = """
import asyncio, sys
from pathlib import Path
from acceptance.spoken import Spoken, command
from mcp import Client

async def take(url, folder):
    async with Client(command("work.py", "--db", url, "--as", "worker-a", folder=Path(folder)), mode="legacy") as client:
        task = await Spoken(client).call("claim_task")
        print(task["id"], flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(take(*sys.argv[1:]))
"""


def test_one_that_is_killed_loses_it_after_the_lease_and_the_attempt_counts(jobs: Board) -> None:
    id = jobs.create()
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, jobs.url, str(jobs.folder)],
        env={"PYTHONPATH": PATHS, "PATH": ""},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    jobs.started.append(client)
    assert client.stdout is not None
    assert client.stdout.readline().strip() == id
    nobody_else_gets(jobs, id)
    client.kill()
    taken = jobs.taken_over(id)
    assert (taken.owner, taken.epoch, jobs.counted(id)[0]) == ("worker-b", 2, 1 + 1)
    assert [entry.kind for entry in jobs.pm.history(id)] == ["create", "acquire", "lapse", "acquire"]


class Wire:
    """A client that writes lines, so that its server can be frozen between two of them."""

    def __init__(self, jobs: Board):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pointsman", "mcp", "work.py", "--db", jobs.url, "--as", "worker-a"],
            cwd=jobs.folder,
            env={"PYTHONPATH": PATHS, "PATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        jobs.started.append(self.process)
        self.asked = 0
        self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.asked += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["result"]

    def call(self, tool: str, **arguments: Any) -> tuple[bool, Any]:
        answer = self.ask("tools/call", name=tool, arguments=arguments)
        return answer["isError"], answer["structuredContent"]


def test_after_a_takeover_every_tool_of_the_owner_is_refused_and_nothing_given_back(jobs: Board) -> None:
    """The process was frozen while the lease ran out; its client goes on asking."""
    id, wire = jobs.create(), Wire(jobs)
    wire.call("claim_task")
    wire.process.send_signal(signal.SIGSTOP)
    taken = jobs.taken_over(id)
    wire.process.send_signal(signal.SIGCONT)
    for tool in ("finish", "step", "submit", "renew_lease", "release_task"):
        refused, content = wire.call(tool, task_id=id)
        assert (refused, content["code"]) == (True, "lease_lost"), tool
    refused, content = wire.call("propose", task_id=id, event="finish")
    assert (refused, content["code"]) == (True, "lease_lost")
    assert wire.process.stdin is not None
    wire.process.stdin.close()
    assert wire.process.wait(PATIENCE_S) == 0
    assert jobs.pm.get(id) == taken


def test_a_client_asks_for_a_time_of_its_own_and_keeps_to_it(jobs: Board) -> None:
    id, wire = jobs.create(), Wire(jobs)
    _, task = wire.call("claim_task", lease_s=60)
    assert task["lease"]["expires_at"] > wire.call("renew_lease", task_id=id, lease_s=3)[1]["lease"]["expires_at"]
    nobody_else_gets(jobs, id)
    wire.process.kill()
    assert jobs.taken_over(id).epoch == 2
