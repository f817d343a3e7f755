"""`serve --workers`: several processes answer at one address, whichever dies is replaced, and none outlives its parent."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from acceptance.flat import BRIEF, TITLE, Client
from acceptance.process import Served, running, start, stop
from acceptance.v1 import Speaker
from databases import PostgresServer
from pointsman import Pointsman

PATIENCE_S = 30
BODY = json.dumps({"title": TITLE, "brief": BRIEF}).encode()


@contextmanager
def two_workers(url: str) -> Iterator[Served]:
    served = start(url, "--workers", "2")
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.terminate()
        try:
            served.process.communicate(timeout=PATIENCE_S)
        finally:
            served.process.kill()


@pytest.fixture
def served(url: str) -> Iterator[Served]:
    with two_workers(url) as process:
        yield process


def parent_and_state(pid: int) -> tuple[int, str]:
    state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    return int(parent), state


def alive(pid: int) -> bool:
    try:
        return parent_and_state(pid)[1] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def workers(parent: int) -> set[int]:
    found = set[int]()
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        try:
            if parent_and_state(pid)[0] == parent and alive(pid):
                found.add(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_500):
        if holds():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it never came to that")


def enqueued(served: Served) -> str:
    """A task over a connection of its own."""
    with Client(served.url) as client:
        answer = client.post("/enqueue", title=TITLE, brief=BRIEF)
    assert answer.status == 200, answer
    return answer.body["id"]


def test_one_line_says_that_all_are_ready(served: Served, url: str) -> None:
    assert served.pid == served.process.pid
    assert served.db == (url if url.startswith("sqlite") else served.db)
    assert "password" not in served.db
    assert len(workers(served.pid)) == 2


@contextmanager
def standing_still(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_each_of_them_answers(served: Served) -> None:
    """While one stands still, the other does: a read, since the first may have been writing."""
    task = enqueued(served)
    for still in workers(served.pid):
        with standing_still(still), Client(served.url) as client:
            assert [row["id"] for row in client.rows("/open")] == [task]


def test_their_work_is_one_record(served: Served, url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: enqueued(served), range(64)))
    assert stop(served)[0] == 0
    with Pointsman(url, create=False) as pm:
        assert {entry.task for entry in pm.feed()} == set(made)
        assert [entry.seq for entry in pm.feed()] == list(range(1, 65))
        assert pm.verify().ok


def test_one_that_is_killed_is_replaced(served: Served) -> None:
    before = workers(served.pid)
    killed = min(before)
    os.kill(killed, signal.SIGKILL)
    enqueued(served)
    until(lambda: len(workers(served.pid)) == 2 and killed not in workers(served.pid))
    with standing_still(*(before - {killed})), Client(served.url) as client:
        assert len(client.rows("/open")) == 1
    status, told = stop(served)
    assert status == 0
    assert f"worker {killed} was ended by SIGKILL; another one starts" in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_all_end_when_their_parent_is_told_to(served: Served, number: signal.Signals) -> None:
    started = workers(served.pid)
    served.process.send_signal(number)
    _, told = served.process.communicate(timeout=PATIENCE_S)
    assert served.process.returncode == 0
    assert "Traceback" not in told
    assert not any(alive(pid) for pid in started)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", served.port), timeout=5)


def test_a_request_in_flight_is_answered(served: Served, url: str) -> None:
    with socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S) as connection:
        head = b"POST /enqueue HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
        connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY))
        assert connection.recv(1_000).startswith(b"HTTP/1.1 100")
        connection.sendall(BODY[:10])
        started = workers(served.pid)
        served.process.terminate()
        until(lambda: len([pid for pid in started if alive(pid)]) == 1)
        connection.sendall(BODY[10:])
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 200")
    assert stop(served)[0] == 0
    with Pointsman(url, create=False) as pm:
        assert [task.id for task in pm.list()] == [json.loads(answer.rpartition(b"\r\n")[2])["id"]]


def test_none_outlives_a_parent_that_was_killed(served: Served) -> None:
    started = workers(served.pid)
    served.process.kill()
    until(lambda: not any(alive(pid) for pid in started))


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--workers", "0"], 2, "must be from 1 to 64"),
        (["--workers", "65"], 2, "must be from 1 to 64"),
        (["--workers", "2", "--db", "sqlite:////nowhere/work.db"], 5, "/nowhere/work.db"),
        (["--workers", "2", "missing.py"], 2, "there is no file"),
    ],
)
def test_what_cannot_be_served_is_said_once(tmp_path: Path, options: list[str], status: int, said: str) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-m", "pointsman", "serve", "--port", "0", *options]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_who_waits_at_one_server_gets_what_was_made_at_another(postgres: PostgresServer) -> None:
    url = postgres.empty()
    with running(url) as one, running(url) as other, Speaker(one.url) as waiting, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(waiting.ask, "POST", "/v1/claims", "bob", {"wait_s": 20})
        made = enqueued(other)
        answer = asked.result(2 * PATIENCE_S)
        assert [task["id"] for task in answer.body["tasks"]] == [made]
