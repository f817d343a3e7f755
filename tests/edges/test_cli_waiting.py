"""`task wait`, and a proposal whose check outlives its caller."""

import json
from pathlib import Path
from threading import Thread

import pytest

from edges.cli import Cli
from pointsman import Pointsman

SLOW = """\
from pathlib import Path
from threading import Event

from pointsman import Machine, State, Verdict, check, owner
from pointsman import Event as Move


def when_told(text: str | None) -> Verdict:
    for _ in range(600):
        if Path("verdict").exists():
            return Verdict(Path("verdict").read_text() == "yes", "as told")
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


@pytest.fixture
def pending(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """A task and its proposal, which its caller has left waiting for a check."""
    (tmp_path / "jobs.py").write_text(SLOW)
    monkeypatch.setenv("POINTSMAN_WORK", "jobs.py")
    id = cli("task", "create", "--json").data["id"]
    cli("task", "claim", id, "--as", "w")
    ended = cli("task", "propose", id, "finish", "--as", "w", "--epoch", "1", "--arg", "text=x", "--wait", "0", "--json")
    assert (ended.status, ended.refusal["code"], ended.refusal["recorded"]) == (3, "evidence_pending", False)
    return id, ended.refusal["proposal"]


def test_what_outlives_its_caller_is_followed_by_the_words_told(cli: Cli, pending: tuple[str, str], tmp_path: Path) -> None:
    id, proposal = pending
    told = cli("task", "propose", id, "finish", "--as", "w", "--epoch", "1", "--arg", "text=x", "--wait", "0").err
    newer = told.partition("pointsman task wait --proposal ")[2].rstrip(")\n")
    superseded = cli("task", "wait", "--proposal", proposal, "--json")
    assert (superseded.status, superseded.refusal["code"]) == (3, "stale_content")
    waiting = cli("task", "wait", "--proposal", newer, "--timeout", "0", "--json")
    assert (waiting.status, waiting.refusal["code"], waiting.refusal["proposal"]) == (3, "evidence_pending", newer)
    (tmp_path / "verdict").write_text("yes")
    settled = cli("task", "wait", "--proposal", newer, "--timeout", "30", "--json").data
    assert (settled["id"], settled["state"], settled["fields"]) == (id, "end", {"text": "x"})
    assert cli("task", "show", id, "--json").data["state"] == "end"


def test_a_refused_proposal_ends_as_its_proposer_would_have_been_answered(cli: Cli, pending: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "verdict").write_text("no")
    ended = cli("task", "wait", "--proposal", pending[1], "--timeout", "30", "--json")
    assert (ended.status, ended.refusal["code"], ended.refusal["task"]) == (3, "evidence_failed", pending[0])


def test_an_unknown_proposal_is_not_found(cli: Cli) -> None:
    assert cli("task", "wait", "--proposal", "01890000-0000-7000-8000-000000000000").status == 4


def test_wait_ends_when_somebody_moves_the_task(cli: Cli, id: str, tmp_path: Path) -> None:
    def claim() -> None:
        with Pointsman(f"sqlite:///{tmp_path}/pointsman.db") as pm:
            pm.claim("tasks", by="w", id=id)

    mover = Thread(target=claim)
    mover.start()
    moved = cli("task", "wait", id, "--version", "1", "--timeout", "30", "--json").data
    mover.join()
    assert (moved["state"], moved["version"]) == ("claimed", 2)
    assert cli("task", "wait", id, "--state", "claimed", "--state", "done").out.startswith("now: task ")


def test_wait_says_at_the_timeout_that_nothing_came(cli: Cli, id: str) -> None:
    ended = cli("task", "wait", id, "--timeout", "0")
    assert (ended.status, ended.out.startswith("still waiting: task "), ended.err) == (1, True, "")
    ended = cli("task", "wait", id, "--state", "done", "--timeout", "0", "--json")
    assert (ended.status, json.loads(ended.out)["state"]) == (1, "queued")
