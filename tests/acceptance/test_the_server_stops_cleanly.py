"""SIGTERM: what was begun is answered, what was answered is kept, nothing new is taken, the process ends with 0."""

import json
import signal
import socket
import threading
from http.client import HTTPException
from pathlib import Path

import pytest

from acceptance.flat import BRIEF, TITLE, Client
from acceptance.process import Served, serving, start, stop

BODY = json.dumps({"title": TITLE, "brief": BRIEF}).encode()


def test_it_says_where_it_is_and_ends_when_told(tmp_path: Path) -> None:
    with serving(tmp_path) as served, Client(served.url) as client:
        assert served.url.startswith("http://127.0.0.1:")
        assert served.pid == served.process.pid
        assert served.db == f"sqlite:///{tmp_path}/work.db"
        task = client.bring("drafting")
        status, told = stop(served)
    assert status == 0
    assert "Traceback" not in told
    assert "ERROR" not in told
    assert kept(tmp_path) == {task: "drafting"}


def test_a_request_in_flight_is_answered(tmp_path: Path) -> None:
    """Half a body has arrived when the signal comes; the rest comes after it."""
    with serving(tmp_path) as served, socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        head = b"POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY))
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100")
        connection.sendall(BODY[:10])
        served.process.send_signal(signal.SIGTERM)
        wait_until_it_refuses(served)
        connection.sendall(BODY[10:])
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert stop(served)[0] == 0
    task = json.loads(answer.rpartition(b"\r\n")[2])["id"]
    assert kept(tmp_path) == {task: "queued"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_every_answer_given_under_load_is_kept(tmp_path: Path, number: signal.Signals) -> None:
    acknowledged: list[str] = []
    odd: list[int] = []
    busy = threading.Barrier(5)

    def enqueue(url: str) -> None:
        with Client(url) as client:
            for n in range(1_000_000):
                if n == 20:
                    busy.wait(20)
                try:
                    answer = client.post("/enqueue", title=TITLE, brief=BRIEF)
                except (OSError, HTTPException):
                    return
                acknowledged.append(answer.body["id"]) if answer.status == 200 else odd.append(answer.status)

    with serving(tmp_path) as served:
        callers = [threading.Thread(target=enqueue, args=(served.url,)) for _ in range(4)]
        for caller in callers:
            caller.start()
        busy.wait(20)
        served.process.send_signal(number)
        for caller in callers:
            caller.join(30)
        assert stop(served)[0] == 0
    assert odd == []
    assert len(acknowledged) >= 80
    assert set(acknowledged) <= kept(tmp_path).keys()


def test_an_idle_connection_does_not_hold_it_up(tmp_path: Path) -> None:
    with serving(tmp_path) as served, Client(served.url) as client:
        at = ("127.0.0.1", served.port)
        with socket.create_connection(at) as silent, socket.create_connection(at) as half:
            client.rows("/open")
            half.sendall(b"GET /open HTTP/1.1\r\nHost:")
            assert stop(served)[0] == 0
            assert silent.recv(1) == b""


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com"])
def test_another_host_is_refused_before_it_is_bound(tmp_path: Path, host: str) -> None:
    with pytest.raises(RuntimeError, match="loopback"):
        start(f"sqlite:///{tmp_path}/work.db", "--host", host)


def kept(folder: Path) -> dict[str, str]:
    """Task and state of what a new server finds."""
    with serving(folder) as again, Client(again.url) as client:
        return {row["id"]: row["state"] for row in client.rows("/open")}


def wait_until_it_refuses(served: Served) -> None:
    """Until the listening socket is closed. One that never closes ends this by the server's own limit on stopping."""
    while True:
        try:
            socket.create_connection(("127.0.0.1", served.port), timeout=5).close()
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            continue
