"""With a server at work on the same file: a backup, an export, a head and a wait are what they say they are."""

import json
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from acceptance.cli import run, serving

WRITERS = 4


def post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[Path]:
    """A folder whose database a server fills without rest."""
    stop, first = Event(), Event()

    def fill(url: str, number: int) -> int:
        made = 0
        while not stop.is_set():
            post(f"{url}/enqueue", {"title": f"Task {number}.{made}", "brief": "Filled in while it is copied"})
            made += 1
            first.set()
        return made

    with serving(tmp_path) as ready, ThreadPoolExecutor(WRITERS) as pool:
        filling = [pool.submit(fill, ready["url"], number) for number in range(WRITERS)]
        try:
            assert first.wait(30)
            yield tmp_path
        finally:
            stop.set()
            assert all(future.result() for future in filling)


def test_every_copy_verifies_and_what_is_exported_is_whole(busy: Path) -> None:
    sizes = []
    for name in ("one.db", "two.db", "three.db"):
        assert run(busy, "db", "backup", name, "--json").data["copy"] == f"sqlite:///{busy}/{name}"
        verified = run(busy, "verify", "--db", f"sqlite:///{name}", "--json").data
        assert (verified["ok"], verified["tasks"]) == (True, verified["entries"])
        sizes.append(verified["tasks"])
    assert sizes == sorted(set(sizes)), "the server went on while it was copied"

    first, *rest, last = [json.loads(line) for line in run(busy, "db", "export").out.splitlines()]
    entries = [line["entry"] for line in rest if "entry" in line]
    assert [entry["seq"] for entry in entries] == list(range(1, first["export"]["seq"] + 1))
    assert last["end"]["entries"] == len(entries) >= sizes[-1]


def test_a_head_kept_outside_holds_while_the_feed_grows(busy: Path) -> None:
    assert run(busy, "verify", "--write-head", "head.json", "--json").data["ok"]
    assert run(busy, "verify", "--head", "head.json", "--write-head", "head.json", "--json").data["ok"]
    kept = json.loads((busy / "head.json").read_text())
    assert run(busy, "task", "list", "--at", f"#{kept['seq']}", "--json").data["tasks"][-1]["version"] == 1


def test_a_wait_in_another_process_ends_when_the_server_moves_the_task(tmp_path: Path) -> None:
    with serving(tmp_path) as ready, ThreadPoolExecutor(1) as pool:
        id = post(f"{ready['url']}/enqueue", {"title": "Signal box", "brief": "Describe the levers"})["id"]
        waiting = pool.submit(run, tmp_path, "task", "wait", id, "--state", "claimed", "--json")
        post(f"{ready['url']}/claim", {"agent_id": "w", "task_id": id})
        assert waiting.result().data["owner"] == "w"


def test_a_proposal_left_behind_is_settled_by_the_running_server(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(SLOW)
    with serving(tmp_path, "jobs.py"):
        at = ("--work", "jobs.py", "--json")
        id = run(tmp_path, "task", "create", *at).data["id"]
        run(tmp_path, "task", "claim", id, "--as", "w", *at)
        left = run(tmp_path, "task", "propose", id, "finish", "--as", "w", "--epoch", "1", "--arg", "text=x", "--wait", "0", *at)
        assert (left.status, left.refusal["code"]) == (3, "evidence_pending")
        (tmp_path / "go").touch()
        assert run(tmp_path, "task", "wait", id, "--state", "end", "--timeout", "20", *at).data["fields"] == {"text": "x"}
        told = run(tmp_path, "task", "wait", "--proposal", left.refusal["proposal"], *at).data
        assert (told["id"], told["state"]) == (id, "end")


SLOW = """\
from pathlib import Path
from threading import Event

from pointsman import Machine, State, Verdict, check, owner
from pointsman import Event as Move


def when_told(text: str | None) -> Verdict:
    for _ in range(600):
        if Path("go").exists():
            return Verdict(True, "as told")
        Event().wait(0.05)
    raise TimeoutError


class Jobs(Machine, name="jobs"):
    version = 1
    text: str | None = None
    start = State(initial=True)
    busy = State()
    end = State(final=True, outcome="failed")
    told = check(when_told)
    take = Move(start >> busy, acquires=True)
    finish = Move(busy >> end, by=owner, sets="text", requires=told)
"""
