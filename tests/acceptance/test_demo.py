"""`pointsman demo` really runs the main job: as data, as plain text, and drawn on a terminal."""

import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from acceptance.cli import COMMAND, PATIENCE_SECONDS, environment, run

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("demo")
    data = run(folder, "demo", "--json").data
    assert list(folder.iterdir()) == []
    return data


def codes(step: dict[str, Any]) -> list[str]:
    return [answer.get("code", "accepted") for answer in step["answers"]]


def test_the_steps_are_the_main_job(told: Any) -> None:
    race, *rest = [codes(step) for step in told["steps"][1:]]
    assert race == ["accepted", *["already_claimed"] * 7]
    assert rest == [[code] for code in EXPECTED]
    assert told["steps"][-1]["answers"][0]["state"] == "done"


EXPECTED = ("accepted", "evidence_failed", "accepted", "self_approval", "accepted", "accepted", "stale_content", "accepted", "accepted")


def test_a_refused_draft_is_recorded_and_every_other_refusal_leaves_no_trace(told: Any) -> None:
    answers = [answer for step in told["steps"] for answer in step["answers"]]
    recorded = {answer["code"]: answer["recorded"] for answer in answers if not answer["accepted"]}
    assert recorded == {"already_claimed": False, "evidence_failed": True, "self_approval": False, "stale_content": False}
    changes = [answer for answer in answers if answer["accepted"] or answer["recorded"]]
    assert [entry["version"] for entry in told["history"]] == [answer["version"] for answer in changes]


def test_the_history_is_whole(told: Any) -> None:
    assert told["verify"] == {"ok": True, "tasks": 1, "entries": len(told["history"])}


def test_nobody_who_worked_on_the_draft_approved_it(told: Any) -> None:
    by = {entry["event"]: entry["by"] for entry in told["history"]}
    assert by["approve"] == "rita"
    assert by["claim"] == by["request_approval"] == by["complete"] != "rita"


WORDS = ("One gets it", "already_claimed (7 times)", "draft shorter than 40 characters", "self_approval", "stale_content", "verified")


def test_elsewhere_than_on_a_terminal_it_is_plain_text(tmp_path: Path) -> None:
    ended = run(tmp_path, "demo")
    assert (ended.status, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    for words in WORDS:
        assert words in ended.out
    assert "\t".join(["v", "at", "event"]) in ended.out


def test_on_a_terminal_it_is_drawn(tmp_path: Path) -> None:
    screen = on_terminal(tmp_path, "demo")
    assert COLOUR.search(screen)
    plain = COLOUR.sub("", screen)
    assert "───" in plain
    assert "verified" in plain


def on_terminal(cwd: Path, *argv: str) -> str:
    """What the command prints on a terminal of 100 columns."""
    ours, theirs = pty.openpty()
    env = environment({"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "50"})
    process = subprocess.Popen([*COMMAND, *argv], cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    printed = b""
    try:
        while chunk := os.read(ours, 65536):
            printed += chunk
    except OSError:  # Linux answers EIO once the other side is closed
        pass
    os.close(ours)
    assert process.wait(PATIENCE_SECONDS) == 0, printed
    return printed.decode()
