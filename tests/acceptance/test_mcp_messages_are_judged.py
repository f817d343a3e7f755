"""What a JSON-RPC message may be is judged on both transports as JSON is on every door: equal keys, depth, text that no
store can hold. Every one is answered, and nothing is written."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.process import Served, serving
from acceptance.spoken import PATHS
from pointsman import Pointsman

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
TWICE = '{"title":"shown","title":"run","brief":"b"}'
SURROGATE = '{"title":"\\ud800","brief":"b"}'
DEEP = "[" * 100_000 + "]" * 100_000
LONG = json.dumps({"title": "x" * (1 << 20), "brief": "b"})


def call(arguments: str) -> bytes:
    params = f'{{"name":"create_task","arguments":{arguments}}}'
    return f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{params}}}\n'.encode()


@pytest.fixture
def url(tmp_path: Path) -> str:
    made = f"sqlite:///{tmp_path}/work.db"
    Pointsman(made).close()
    return made


@pytest.fixture
def process(url: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "pointsman", "mcp", "--db", url, "--as", "ann"]
    environment = {**os.environ, "PYTHONPATH": PATHS}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as started:
        told(started, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}).encode() + b"\n")
        yield started
        assert started.stdin
        started.stdin.close()


def told(process: "subprocess.Popen[bytes]", line: bytes) -> Any:
    assert process.stdin
    assert process.stdout
    process.stdin.write(line)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


NO_MESSAGES = {"deep": call(DEEP), "garbage": b"garbage\n", "list": b"[]\n", "bytes": b"\xff\n"}


@pytest.mark.parametrize("line", NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_stdio_answers_what_is_no_message(process: "subprocess.Popen[bytes]", url: str, line: bytes) -> None:
    answer = told(process, line)
    assert (answer["id"], answer["error"]["data"]["code"]) == (None, "malformed")
    _nothing_written(url)


@pytest.mark.parametrize(("arguments", "code"), [(TWICE, "malformed"), (LONG, "too_large")], ids=["twice", "long"])
def test_who_waits_for_an_answer_by_its_id_gets_it(process: "subprocess.Popen[bytes]", url: str, arguments: str, code: str) -> None:
    answer = told(process, call(arguments))
    assert (answer["id"], answer["error"]["data"]["code"]) == (2, code)
    _nothing_written(url)


def test_stdio_answers_text_that_no_store_holds(process: "subprocess.Popen[bytes]", url: str) -> None:
    _refused(told(process, call(SURROGATE)))
    _nothing_written(url)
    fine = told(process, call('{"title":"t","brief":"b"}'))
    assert fine["result"]["structuredContent"]["state"] == "queued", "the connection goes on"


def test_http_answers_text_that_no_store_holds(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        _refused(_posted(served, call(SURROGATE)))
        _nothing_written(served.db)


def _posted(served: Served, body: bytes) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Pointsman-As": "ann"}
    connection.request("POST", "/mcp", body, headers)
    answer = connection.getresponse()
    assert answer.status == 200
    told = json.loads(answer.read())
    connection.close()
    return told


def _refused(answer: Any) -> None:
    result = answer["result"]
    assert (answer["id"], result["isError"], result["structuredContent"]["code"]) == (2, True, "invalid")
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["structuredContent"]["failed"][0]["path"] == "params.arguments.title"


def _nothing_written(url: str) -> None:
    with Pointsman(url, [], create=False) as pm:
        assert pm.history() == []
