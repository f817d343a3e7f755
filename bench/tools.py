"""What a call of an MCP tool costs beside a tool that does nothing, over HTTP and over standard input and output."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import raw, servers
from bench.python_api import BY, drafting
from bench.raw import Answer, post
from bench.table import Effort, Line, beside
from pointsman import Pointsman

REVISION = "2025-11-25"
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION, "Pointsman-As": BY}
Rate = Callable[[float], float]
"""Calls per second over so many seconds."""


def figures(folder: Path, effort: Effort) -> list[Line]:
    lines: list[Line] = []
    for wire, opened in (("HTTP", _over_http), ("stdio", _over_stdio)):
        db = folder / f"tools-{uuid.uuid4()}.db"
        with Pointsman(f"sqlite:///{db}") as pm:
            task = drafting(pm)
        with opened(db) as (nothing, called):
            floor = nothing("nothing", {})
            for name, arguments in (("get_task", {"task_id": task.id}), ("start_draft", {"task_id": task.id, "epoch": task.epoch})):
                lines.append(_line(f"MCP over {wire}, {name}, 1 client", floor, called(name, arguments), effort))
    return lines


def _line(name: str, floor: Rate, figure: Rate, effort: Effort) -> Line:
    return beside(name, lambda: floor(effort.seconds), lambda: figure(effort.seconds), effort)


Caller = Callable[[str, dict[str, Any]], Rate]


@contextmanager
def _over_http(db: Path) -> Iterator[tuple[Caller, Caller]]:
    ports = servers.free_port(), servers.free_port()
    with servers.running(servers.noop_tool(ports[0]), ports[0]), servers.running(servers.pointsman(db, ports[1]), ports[1]):
        nothing, called = (lambda name, arguments, port=port: _posted(port, name, arguments) for port in ports)
        yield nothing, called


def _posted(port: int, name: str, arguments: dict[str, Any]) -> Rate:
    return lambda seconds: raw.drive(port, [_calling(name, arguments)], seconds)


def _calling(name: str, arguments: dict[str, Any]) -> raw.Client:
    request = post("/mcp", called(name, arguments, 1), HEADERS)
    while True:
        _done((yield request))


def _done(answer: Answer) -> None:
    status, body = answer
    assert status == 200, (status, body)
    _succeeded(json.loads(body))


def called(name: str, arguments: dict[str, Any], number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def _succeeded(message: dict[str, Any]) -> None:
    assert not message["result"].get("isError"), message


@contextmanager
def _over_stdio(db: Path) -> Iterator[tuple[Caller, Caller]]:
    ours = [sys.executable, "-m", "pointsman", "mcp", "--db", f"sqlite:///{db}", "--as", BY]
    with ExitStack() as stack:
        nothing, called = (stack.enter_context(_piped(command)) for command in ([sys.executable, "-m", "bench.noop_tool"], ours))
        yield nothing.calling, called.calling


class Piped:
    """A client on the pipes of a server process."""

    def __init__(self, process: "subprocess.Popen[str]"):
        assert process.stdin is not None
        assert process.stdout is not None
        self.tell, self.told = process.stdin, process.stdout
        client = {"name": "bench", "version": "1"}
        self.ask("initialize", {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return json.loads(self.told.readline())

    def calling(self, name: str, arguments: dict[str, Any]) -> Rate:
        def rate(seconds: float) -> float:
            calls, began = 0, time.perf_counter()
            while (took := time.perf_counter() - began) < seconds:
                _succeeded(self.ask("tools/call", {"name": name, "arguments": arguments}))
                calls += 1
            return calls / took

        return rate

    def _send(self, message: dict[str, Any]) -> None:
        self.tell.write(json.dumps(message) + "\n")
        self.tell.flush()


@contextmanager
def _piped(command: list[str]) -> Iterator[Piped]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=servers.environment()
    )
    try:
        yield Piped(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(servers.PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()
