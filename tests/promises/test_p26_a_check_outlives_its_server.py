"""P26, the part of kill -9: a server that dies during a check loses neither the proposal nor what it was made for. A
second running server, or the one that is started again, settles it within five seconds, without it being sent again."""

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.process import Served, start, stop
from acceptance.v1 import Speaker
from pointsman.store.proposals import HELD
from pointsman.types import SECOND

WITHIN_S = 5.0
PATIENCE_S = 30

WORK = """
import os, pathlib, threading
from pointsman import Event, Machine, State, Verdict, check, minutes, owner

HERE = pathlib.Path(__file__).parent

def is_right(text: str) -> Verdict:
    with open(HERE / "calls", "a") as calls:
        calls.write(f"{os.getpid()} {text}\\n")
    while not (HERE / "gate").exists():
        threading.Event().wait(0.01)
    return Verdict(text == "right", "compared")

class Papers(Machine, name="papers"):
    text: str = ""
    draft = State(initial=True)
    done = State(final=True, outcome="failed")
    right = check(is_right, timeout=minutes(2))
    take = Event(draft >> draft, acquires=True)
    hand_in = Event(draft >> done, by=owner, sets="text", requires=right, otherwise=draft)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work.py").write_text(WORK)
    return tmp_path


@pytest.fixture
def servers(folder: Path) -> Iterator[list[Served]]:
    """Servers to be ended with the test; the first is running."""
    running = [_server(folder)]
    yield running
    (folder / "gate").touch()
    for served in running:
        if served.process.poll() is None:
            status, told = stop(served)
            assert (status, "Traceback" in told) == (0, False), told


def _server(folder: Path) -> Served:
    return start(f"sqlite:///{folder}/work.db", str(folder / "work.py"))


def _calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def _until(what: str, holds: Any) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, f"never: {what}"
        threading.Event().wait(0.02)


def _handed_in(folder: Path, served: Served, text: str = "right") -> tuple[str, str]:
    """A task handed in, its check running in that server; the task's id and where its proposal is."""
    with Speaker(served.url) as speaker:
        id = speaker.ask("POST", "/v1/tasks", "ann", {"fields": {}}).body["id"]
        speaker.move(id, "take", "bob")
        answer = speaker.propose(id, "hand_in", "bob", {"epoch": 1, "args": {"text": text}}, Prefer="wait=0", Idempotency_Key="once")
        assert answer.status == 202
    _until("the check began", lambda: f"{served.pid} {text}" in _calls(folder))
    return id, answer.headers["location"]


def _killed(served: Served) -> None:
    served.process.send_signal(signal.SIGKILL)
    served.process.communicate(timeout=PATIENCE_S)


def _settled(folder: Path, url: str, location: str, since: float) -> dict[str, Any]:
    """The proposal, which must be settled in time."""
    with Speaker(url) as speaker:
        while (told := speaker.told(location))["status"] == "pending":
            assert time.monotonic() - since < WITHIN_S, _calls(folder)
            threading.Event().wait(0.02)
        return told


@pytest.mark.parametrize(("text", "state"), [("right", "done"), ("wrong", "draft")])
def test_a_second_server_settles_it(folder: Path, servers: list[Served], text: str, state: str) -> None:
    dies, lives = servers[0], _server(folder)
    servers.append(lives)
    id, location = _handed_in(folder, dies, text)
    _killed(dies)
    since = time.monotonic()
    (folder / "gate").touch()
    told = _settled(folder, lives.url, location, since)
    assert (told["status"], told["version"]) == ("accepted", 3)
    assert _calls(folder) == [f"{dies.pid} {text}", f"{lives.pid} {text}"], "the one that lives judged it once"
    with Speaker(lives.url) as speaker:
        task = speaker.told(f"/v1/tasks/{id}")
        assert (task["state"], task["fields"]["text"]) == (state, text)
        assert [entry["event"] for entry in speaker.told(f"/v1/tasks/{id}/history")["entries"]] == ["create", "take", "hand_in"]
        replay = speaker.propose(id, "hand_in", "bob", {"epoch": 1, "args": {"text": text}}, Idempotency_Key="once")
        assert (replay.headers["idempotent-replayed"], replay.body["version"]) == ("true", 3)


def test_a_server_that_is_started_again_settles_it(folder: Path, servers: list[Served]) -> None:
    id, location = _handed_in(folder, servers[0])
    _killed(servers[0])
    (folder / "gate").touch()
    again = _server(folder)
    servers.append(again)
    told = _settled(folder, again.url, location, time.monotonic())
    assert told["status"] == "accepted"
    with Speaker(again.url) as speaker:
        assert speaker.told(f"/v1/tasks/{id}")["state"] == "done"


def test_a_server_that_lives_keeps_what_it_judges(folder: Path, servers: list[Served]) -> None:
    """A long check is not begun anew by the server beside it."""
    other = _server(folder)
    servers.append(other)
    _, location = _handed_in(folder, servers[0])
    threading.Event().wait(HELD / SECOND + 0.5)  # longer than a proposal is held without a sign of life
    assert _calls(folder) == [f"{servers[0].pid} right"]
    (folder / "gate").touch()
    assert _settled(folder, other.url, location, time.monotonic())["status"] == "accepted"


def test_a_verdict_of_a_dead_server_is_bound_to_its_content(folder: Path, servers: list[Served]) -> None:
    """The owner hands in anew while nobody judges: the older proposal is superseded, the newer one decides."""
    dies, lives = servers[0], _server(folder)
    servers.append(lives)
    id, older = _handed_in(folder, dies, "wrong")
    _killed(dies)
    with Speaker(lives.url) as speaker:
        newer = speaker.propose(id, "hand_in", "bob", {"epoch": 1, "args": {"text": "right"}}, Prefer="wait=0").headers["location"]
        (folder / "gate").touch()
        assert _settled(folder, lives.url, newer, time.monotonic())["status"] == "accepted"
        assert speaker.told(older)["status"] == "superseded"
        assert speaker.told(f"/v1/tasks/{id}")["fields"]["text"] == "right"
