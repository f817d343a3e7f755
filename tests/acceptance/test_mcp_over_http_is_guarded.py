"""`/mcp` stands among the server's routes: behind its guard, without a redirect, and no other path changes for it."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from acceptance.process import Served
from pointsman import Pointsman

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"accept": "application/json, text/event-stream"}


def post(served: Served, path: str = "/mcp", **options: Any) -> httpx.Response:
    headers = {**ACCEPT, **options.pop("headers", {})}
    return httpx.post(served.url + path, headers=headers, **options)


def test_a_list_needs_no_session_and_is_plain_json(served: Served) -> None:
    answer = post(served, json=LIST)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answer.headers
    assert {"claim_task", "approve"} <= {tool["name"] for tool in answer.json()["result"]["tools"]}
    assert post(served, json=LIST, headers={"mcp-session-id": "unknown"}).status_code == 200, "requests stand alone"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "PATCH"])
def test_other_methods_are_405(served: Served, method: str) -> None:
    assert httpx.request(method, f"{served.url}/mcp").status_code == 405


def test_no_other_path_changes(served: Served) -> None:
    assert httpx.get(f"{served.url}/approve").status_code == 405
    assert httpx.get(f"{served.url}/nowhere").status_code == 404
    assert post(served, "/mcp/", json=LIST).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"x-forwarded-for": "10.0.0.1"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_who_may_not_speak(served: Served, headers: dict[str, str], status: int) -> None:
    answer = post(served, content=json.dumps(LIST), headers={"content-type": "application/json", **headers})
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_task","arguments":{"task_id":NaN}}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":1e400}}', 400),
        (b"[" * 5_000, 400),
        (b"[]", 400),
        (b"{}", 400),
        (b"", 400),
        (b"\xff", 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list"} x', 400),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', 413),
    ],
    ids=range(10),
)
def test_bodies_that_no_door_takes(served: Served, body: bytes, status: int) -> None:
    answer = post(served, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["data"]["code"] == ("malformed" if status == 400 else "too_large")


@pytest.mark.parametrize(("name", "code"), [("anonymous", "invalid"), ("a\u00e9", "invalid"), ("x" * 200, "invalid"), ("-", "invalid")])
def test_a_name_that_is_none_is_a_tools_refusal(served: Served, name: str, code: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "claim_task", "arguments": {}}}
    answer = post(served, json=call, headers={"pointsman-as": name.encode()})
    assert answer.json()["result"]["structuredContent"]["code"] == code


def test_two_names_are_refused(served: Served) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "claim_task", "arguments": {}}}
    answer = httpx.post(f"{served.url}/mcp", json=call, headers=[*ACCEPT.items(), ("pointsman-as", "ann"), ("pointsman-as", "bob")])
    assert answer.json()["result"]["structuredContent"]["code"] == "identity_mismatch"


def test_nothing_of_it_wrote(fresh_served: Served) -> None:
    test_who_may_not_speak(fresh_served, {"origin": "null"}, 403)
    test_two_names_are_refused(fresh_served)
    with Pointsman(fresh_served.db, create=False) as pm:
        assert pm.as_of() == 0


def test_the_sdk_is_loaded_at_the_first_request_only(tmp_path: Path) -> None:
    import subprocess
    import sys

    from acceptance.spoken import PATHS

    seen = "import sys, pointsman.cli.root, pointsman.app, pointsman.http.serve, pointsman.mcp.streamable; print('mcp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], env={"PYTHONPATH": PATHS}, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
