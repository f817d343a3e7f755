"""Open mode answers its own machine: by a loopback name, with no proxy between, and to no page of another origin."""

import pytest

from acceptance.flat import BRIEF, TITLE, Client
from acceptance.process import Served

ROUTES = [
    ("GET", "/open"),
    ("GET", "/inbox?agent_id=ann"),
    ("GET", "/approvals"),
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("POST", "/enqueue"),
]
OTHER_HOSTS = [
    "evil.example",
    "evil.example:8470",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.example#localhost",
    "localhost@evil.example",
    "localhost:80@evil.example",
    "0.0.0.0",
    "192.168.1.5",
    "[::]",
    "[fe80::1]",
    "2130706433",
    "127.1",
    "",
]
OTHER_ORIGINS = [
    "null",
    "https://evil.example",
    "http://evil.example",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://localhost:3000",
    "http://127.0.0.1.evil.example",
    "file://",
    "*",
    "",
]


def ask(client: Client, method: str, path: str, headers: dict[str, str]) -> int:
    body = b'{"title": "t", "brief": "b"}' if method == "POST" else None
    client.connection.close()
    return client.send(method, path, body, headers).status


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_other_hosts(client: Client, method: str, path: str, host: str) -> None:
    assert ask(client, method, path, {"host": host}) == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "localhost.", "[::1]", "127.0.0.2"])
def test_names_of_this_machine(served: Served, client: Client, name: str) -> None:
    assert ask(client, "GET", "/open", {"host": f"{name}:{served.port}"}) == 200
    assert ask(client, "GET", "/open", {"host": name}) == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("origin", OTHER_ORIGINS)
def test_other_origins(client: Client, method: str, path: str, origin: str) -> None:
    assert ask(client, method, path, {"origin": origin}) == 403


def test_its_own_origin(served: Served, client: Client) -> None:
    assert ask(client, "POST", "/enqueue", {"origin": served.url}) == 200
    assert ask(client, "POST", "/enqueue", {"origin": served.url.replace("http:", "https:")}) == 403


@pytest.mark.parametrize(
    "header",
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-by", "x-real-ip"],
)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_forwarded_requests(client: Client, method: str, path: str, header: str) -> None:
    body = b'{"title": "t", "brief": "b"}' if method == "POST" else None
    answer = client.send(method, path, body, {header: "127.0.0.1"})
    assert answer.status == 403
    assert "pointsman key create" in answer.detail


def test_a_refused_request_changes_nothing(fresh: Client) -> None:
    assert fresh.send("POST", "/enqueue", b'{"title": "t", "brief": "b"}', {"origin": "http://evil.example"}).status == 403
    assert fresh.rows("/open") == []
    fresh.done("/enqueue", title=TITLE, brief=BRIEF)
    assert len(fresh.rows("/open")) == 1


def test_no_page_elsewhere_is_let_in(client: Client) -> None:
    preflight = client.send("OPTIONS", "/approve", headers={"origin": "http://evil.example", "access-control-request-method": "POST"})
    assert preflight.status == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
