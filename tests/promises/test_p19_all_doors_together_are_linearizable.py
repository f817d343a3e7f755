"""P19 over all doors at once: Python, the flat service, `/v1`, MCP over HTTP and over stdio, and the command line move
one task together; some order of single steps explains every answer, and the versions form one chain.

Each door looks at the task, then proposes at the version it saw, so that proposals are refused and accepted alike. The
flat service knows no versions: it just proposes.
"""

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import support
from acceptance.cli import environment
from acceptance.flat import Client
from acceptance.process import Served, running
from acceptance.spoken import Spoken, over_http, over_stdio
from pointsman import Pointsman, Refused, Task
from promises.linear import Operation, explained, moved, moved_to, saw

TURNS = 8
Log = list[Operation]
Turn = Callable[[Log], None]


def test_the_search_tells_orders_that_exist_from_those_that_do_not() -> None:
    """The judge itself: two winners of one version, a stale read after the write, and sound runs."""
    assert explained([Operation(0, 5, moved_to(2)), Operation(1, 4, moved_to(3)), Operation(6, 7, saw(3))], 1)
    assert explained([Operation(0, 5, moved()), Operation(0, 5, saw(1)), Operation(0, 5, saw(2))], 1)
    assert not explained([Operation(0, 5, moved_to(2)), Operation(0, 5, moved_to(2))], 1)
    assert not explained([Operation(0, 1, moved_to(2)), Operation(2, 3, saw(1))], 1)
    assert not explained([Operation(0, 1, saw(2)), Operation(0, 9, moved_to(2)), Operation(2, 3, saw(1))], 1)


def _noted(log: Log, act: Callable[[], tuple[str, int | None]]) -> int | None:
    """Do something and note when, and what was told: ("moved", version), ("moved", None) or ("saw", version)."""
    began = time.monotonic()
    what, version = act()
    ended = time.monotonic()
    step = moved() if version is None else moved_to(version) if what == "moved" else saw(version)
    log.append(Operation(began, ended, step, f"{what} {version}"))
    return version


def _python(pm: Pointsman, task: Task) -> Turn:
    def propose(expected: int | None) -> tuple[str, int | None]:
        try:
            done = pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch, expect_version=expected)
        except Refused as refused:
            assert refused.code == "stale_version"
            return "saw", refused.version
        return "moved", done.version

    def turn(log: Log) -> None:
        seen = _noted(log, lambda: ("saw", pm.get(task.id).version))
        _noted(log, lambda: propose(seen))

    return turn


def _flat(client: Client, task: Task) -> Turn:
    def propose() -> tuple[str, None]:
        assert client.post("/start-draft", task_id=task.id, agent_id=support.OWNER).status == 200
        return "moved", None

    return lambda log: (_noted(log, propose), None)[1]


def _v1(client: Client, task: Task) -> Turn:
    headers = {"Pointsman-As": support.OWNER}
    body = json.dumps({"args": {}, "epoch": task.epoch}).encode()

    def look() -> tuple[str, int]:
        return "saw", client.send("GET", f"/v1/tasks/{task.id}").body["version"]

    def propose(expected: int | None) -> tuple[str, int]:
        matched = {} if expected is None else {"If-Match": f'"{expected}"'}
        answer = client.send("POST", f"/v1/tasks/{task.id}/events/start_draft", body, headers | matched)
        assert answer.status in (200, 412), answer
        return ("moved" if answer.status == 200 else "saw"), answer.body["version"]

    def turn(log: Log) -> None:
        seen = _noted(log, look)
        _noted(log, lambda: propose(seen))
        _noted(log, lambda: propose(None))

    return turn


def _cli(served: Served, task: Task) -> Turn:
    def run(*words: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "pointsman", "task", *words, "--db", served.db, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment(), timeout=60)
        return ended.returncode, ended.stdout, ended.stderr

    def propose(expected: int | None) -> tuple[str, int]:
        asked = ("--as", support.OWNER, "--epoch", str(task.epoch), "--expect-version", str(expected))
        status, out, err = run("propose", task.id, "start_draft", *asked)
        assert status in (0, 3), err
        return ("moved", json.loads(out)["version"]) if status == 0 else ("saw", json.loads(err)["version"])

    def turn(log: Log) -> None:
        seen = _noted(log, lambda: ("saw", json.loads(run("show", task.id)[1])["version"]))
        _noted(log, lambda: propose(seen))

    return turn


async def _spoken(door: Spoken, task: Task, turns: int) -> Log:
    """One MCP client's turns; its clock is read around each await."""
    log = Log()
    for _ in range(turns):
        began = time.monotonic()
        seen = (await door.call("get_task", task_id=task.id))["version"]
        log.append(Operation(began, time.monotonic(), saw(seen), f"saw {seen}"))
        began = time.monotonic()
        asked = {"task_id": task.id, "epoch": task.epoch, "expect_version": seen}
        result = await door.client.call_tool("start_draft", asked)
        answer = json.loads(result.content[0].text)  # type: ignore[union-attr]
        step = saw(answer["version"]) if result.is_error else moved_to(answer["version"])
        log.append(Operation(began, time.monotonic(), step, f"{result.is_error} {answer['version']}"))
    return log


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with running(f"sqlite:///{tmp_path}/work.db") as server:
        yield server


def _taking_turns(gate: Barrier, turn: Turn, turns: int) -> Log:
    log = Log()
    gate.wait()
    for _ in range(turns):
        turn(log)
    return log


def _speaking(gate: Barrier, task: Task, served: Served, folder: Path, *, stdio: bool) -> Log:
    async def speak() -> Log:
        door = over_stdio("--db", served.db, "--as", support.OWNER, folder=folder) if stdio else over_http(served.url, support.OWNER)
        async with door as client:
            await asyncio.to_thread(gate.wait)
            return await _spoken(client, task, TURNS)

    return asyncio.run(speak())


def test_all_doors_move_one_task_in_one_order(served: Served, tmp_path: Path) -> None:
    gate = Barrier(6)
    with Pointsman(served.db, create=False) as pm, Client(served.url) as flat, Client(served.url) as v1, ThreadPoolExecutor(6) as pool:
        task = support.drafting(pm)
        turns = [(_python(pm, task), TURNS), (_flat(flat, task), TURNS), (_v1(v1, task), TURNS), (_cli(served, task), 2)]
        started = [pool.submit(_taking_turns, gate, turn, count) for turn, count in turns]
        started += [pool.submit(_speaking, gate, task, served, tmp_path, stdio=stdio) for stdio in (True, False)]
        logs = [future.result() for future in started]
        operations = [operation for log in logs for operation in log]
        assert explained(operations, task.version), [operation.told for operation in sorted(operations, key=lambda item: item.began)]
        entries = pm.history(task.id)
        assert [entry.version for entry in entries] == list(range(1, len(entries) + 1))
        accepted = sum(operation.told.startswith(("moved", "False")) for operation in operations)
        assert len(entries) == task.version + accepted
        assert {entry.door for entry in entries} >= {"python", "flat", "http"}, "others may lose every race"
        assert pm.verify().ok


def test_one_door_with_many_callers_in_one_order(tmp_path: Path) -> None:
    chosen = random.Random(5)
    with (
        Pointsman(f"sqlite:///{tmp_path}/work.db") as one,
        Pointsman(f"sqlite:///{tmp_path}/work.db") as other,
        ThreadPoolExecutor(6) as pool,
    ):
        for _ in range(20):
            task = support.drafting(one)
            gate = Barrier(6)
            started = [pool.submit(_taking_turns, gate, _python(chosen.choice([one, other]), task), 3) for _ in range(6)]
            operations = [operation for future in started for operation in future.result()]
            assert explained(operations, task.version), [operation.told for operation in operations]
