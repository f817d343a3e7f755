"""Half a request is not waited for without end: its connection is answered 408 or closed, and others are served."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman import Pointsman
from pointsman.http import app, protocol
from pointsman.http.serve import Server, bind, settings

SHORT_S = 0.2
HEAD = b"POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 50\r\n"


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", SHORT_S)
    monkeypatch.setattr(protocol, "BODY_SECONDS", SHORT_S)
    ready = threading.Event()
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm, bind("127.0.0.1", 0) as listener:
        api = app(pm)
        server = Server(settings(api), ready.set, api.feed.close)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        number = listener.getsockname()[1]
        thread.start()
        assert ready.wait(20)
        yield number
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def said(port: int, sent: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@pytest.mark.parametrize("half", [b"P", b"POST /enq", HEAD[:60], HEAD], ids=["a letter", "a line", "a header", "no blank line"])
def test_half_a_head(port: int, half: bytes) -> None:
    assert said(port, half).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("half", [b"", b'{"title": '], ids=["none", "a part"])
def test_half_a_body(port: int, half: bytes) -> None:
    assert said(port, HEAD + b"\r\n" + half).startswith(b"HTTP/1.1 408 ")


def test_half_a_request_of_v1_is_told_in_its_own_form(port: int) -> None:
    told = said(port, HEAD.replace(b"/enqueue", b"/v1/tasks") + b'\r\n{"fields": ')
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"content-type: application/problem+json" in head
    assert {name: json.loads(body)[name] for name in ("status", "code", "type")} == {
        "status": 408,
        "code": "timed_out",
        "type": "urn:pointsman:timed_out",
    }


def test_half_a_chunk(port: int) -> None:
    head = HEAD.replace(b"Content-Length: 50", b"Transfer-Encoding: chunked")
    assert said(port, head + b"\r\n20\r\n{").startswith(b"HTTP/1.1 408 ")


def test_silence(port: int) -> None:
    assert said(port, b"") == b""


def test_the_second_request_of_a_connection_is_timed_too(port: int) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    told = said(port, whole + b"GET /hea")
    assert told.count(b"HTTP/1.1 200 ") == 1
    assert told.count(b"HTTP/1.1 ") <= 2


def test_a_body_that_is_refused_unread_is_not_answered_twice(port: int) -> None:
    told = said(port, HEAD.replace(b"application/json", b"text/plain") + b"\r\n")
    assert told.count(b"HTTP/1.1 415 ") == told.count(b"HTTP/1.1 ") == 1


def test_one_connection_too_many(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CONNECTIONS", 2)
    held = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(2)]
    try:
        told = said(port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert told.startswith(b"HTTP/1.1 503 ")
        assert b"\r\nretry-after: 1\r\n" in told
        assert told.endswith(b'{"detail": "too many connections", "outcome": "not_done"}')
    finally:
        for connection in held:
            connection.close()


def test_others_are_served_meanwhile(port: int) -> None:
    held = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(100)]
    try:
        for connection in held:
            connection.sendall(b"POST /enq")
        assert said(port, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        for connection in held:
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
    finally:
        for connection in held:
            connection.close()
