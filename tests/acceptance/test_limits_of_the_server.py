"""Size and shape of what comes over the wire, byte by byte: none of it is answered 5xx, none hangs, none changes a task."""

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from acceptance.flat import BRIEF, TITLE, Client
from acceptance.process import Served

MEBIBYTE = 1 << 20
FINE = json.dumps({"title": TITLE, "brief": BRIEF}).encode()
HEAD = b"POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@contextmanager
def wire(served: Served) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        yield connection


def everything(connection: socket.socket) -> bytes:
    """All that the server says until it hangs up."""
    told = b""
    while part := connection.recv(65_536):
        told += part
    return told


def statuses(told: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", told)]


def say(served: Served, said: bytes) -> list[int]:
    with wire(served) as connection:
        connection.sendall(said)
        return statuses(everything(connection))


@pytest.fixture(autouse=True)
def _no_task_is_made(served: Served) -> Iterator[None]:
    with Client(served.url) as client:
        before = len(client.rows("/open"))
        yield
        assert len(client.rows("/open")) == before


def chunked(size: int, step: int = 65_536) -> Iterator[bytes]:
    for _ in range(size // step):
        yield b"%x\r\n" % step + b" " * step + b"\r\n"


def test_a_body_of_ten_megabytes(client: Client) -> None:
    answer = client.send("POST", "/enqueue", b" " * (10 * MEBIBYTE))
    assert answer.status == 413
    assert set(answer.body) == {"detail"}


def test_a_body_of_a_byte_too_many(client: Client) -> None:
    assert client.send("POST", "/enqueue", b" " * (MEBIBYTE + 1)).status == 413
    client.connection.close()
    assert client.send("POST", "/enqueue", b" " * MEBIBYTE).status == 422


@pytest.mark.parametrize("path", ["/claim", "/start-draft", "/request-approval", "/approve", "/reject", "/complete", "/fail"])
def test_a_large_body_on_every_path(client: Client, path: str) -> None:
    assert client.send("POST", path, b" " * (2 * MEBIBYTE)).status == 413


def test_a_chunked_body_without_length(served: Served) -> None:
    with wire(served) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for chunk in chunked(3 * MEBIBYTE):
            connection.sendall(chunk)
        connection.sendall(b"0\r\n\r\n")
        assert statuses(everything(connection)) == [413]


def test_a_chunked_body_that_never_ends(served: Served) -> None:
    """Answered at the limit, while the client is still sending, and hung up on soon after."""
    with wire(served) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for chunk in chunked(MEBIBYTE + 65_536):
            connection.sendall(chunk)
        assert statuses(everything(connection)) == [413]


def test_a_body_in_single_bytes(served: Served, client: Client) -> None:
    body = b'{"task_id": "x"}'
    with wire(served) as connection:
        connection.sendall(HEAD.replace(b"/enqueue", b"/fail") + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in body:
            connection.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")
        connection.sendall(b"0\r\n\r\n")
        assert statuses(everything(connection)) == [422]


@pytest.mark.parametrize(
    "headers",
    [
        {"x-big": "a" * 70_000},
        {"cookie": "a" * 33_000},
        {f"x-{n}": "a" * 500 for n in range(80)},
    ],
    ids=["one of 70 kB", "one of 33 kB", "eighty of 500 B"],
)
def test_a_large_head(client: Client, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/open"), ("POST", "/enqueue"), ("GET", "/healthz"), ("GET", "/nowhere")):
        client.connection.close()
        assert client.send(method, path, FINE if method == "POST" else None, headers).status == 431


def test_a_large_target(client: Client) -> None:
    assert client.send("GET", "/inbox?agent_id=" + "a" * 40_000).status == 431


def test_a_head_within_the_limit(client: Client) -> None:
    assert client.send("GET", "/open", headers={"x-big": "a" * 30_000}).status == 200


def test_a_head_that_never_ends(served: Served) -> None:
    with wire(served) as connection:
        connection.sendall(b"GET /open HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):  # noqa: PT012 - it ends when the server hangs up
            while True:
                connection.sendall(b"a" * 1_000)


def test_length_and_coding_at_once(served: Served) -> None:
    chunk = b"%x\r\n%s\r\n0\r\n\r\n" % (len(FINE), FINE)
    for pair in (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"):
        assert say(served, HEAD + pair + b"\r\n" + chunk) == [400]


@pytest.mark.parametrize(
    "said",
    [
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxx",
        HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nxxxxx",
        HEAD + b"Content-Length: -5\r\n\r\nxxxxx",
        HEAD + b"Content-Length: +5\r\n\r\nxxxxx",
        HEAD + b"Content-Length: 0x5\r\n\r\nxxxxx",
        HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\nxxxxx",
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEAD + b"Host: localhost\r\nContent-Length: 0\r\n\r\n",
        HEAD + b" folded: x\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Bad Name: x\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\rSet: b\r\nContent-Length: 0\r\n\r\n",
        b"POST /enqueue HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        b"POST /enqueue HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"hello\r\n\r\n",
    ],
)
def test_what_is_no_clean_http(served: Served, said: bytes) -> None:
    assert say(served, said) == [400]


@pytest.mark.parametrize(
    "target",
    [
        b"//evil.example/open",
        b"/static/../../etc/passwd",
        b"/%2e%2e/%2e%2e/etc/passwd",
        b"/open%00",
        b"/..\\..\\windows",
        b"/%ff%fe",
        b"/open;x=1",
        b"/OPEN",
    ],
)
def test_targets_that_lead_nowhere(served: Served, target: bytes) -> None:
    assert say(served, b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n") == [404]


@pytest.mark.parametrize("target", [b"http://evil.example/open", b"*", b"evil.example:80"])
def test_targets_for_proxies(served: Served, target: bytes) -> None:
    told = say(served, b"GET " + target + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert told in ([200], [400], [404])


def test_a_body_that_stops_half_way_is_dropped(served: Served) -> None:
    with wire(served) as connection:
        connection.sendall(HEAD + b"Content-Length: 500\r\n\r\n" + FINE)


def test_two_requests_at_once_are_answered_in_order(served: Served) -> None:
    one = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    two = b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    assert say(served, one + two) == [200, 404]


def test_what_follows_a_whole_request_does_not_unsay_its_answer(served: Served) -> None:
    one = b"GET /open HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert say(served, one + b"hello\r\n\r\n") == [200]
    assert say(served, HEAD + b"Content-Length: 2\r\n\r\n{}" + b"hello\r\n\r\n") == [422]


def test_a_wish_to_upgrade_is_passed_over(served: Served) -> None:
    for wanted in (b"websocket", b"h2c"):
        head = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: " + wanted + b"\r\n\r\n"
        assert statuses_of_first(served, head) == [200]


def statuses_of_first(served: Served, said: bytes) -> list[int]:
    with wire(served) as connection:
        connection.sendall(said)
        return statuses(connection.recv(65_536))
