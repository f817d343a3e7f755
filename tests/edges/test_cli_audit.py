"""`audit report` and `audit export`."""

import json
from typing import Any

import pytest

from edges.cli import Cli

DRAFT = "Release notes: the queue hands each task to one agent, never to two."


@pytest.fixture
def approved(cli: Cli, id: str) -> str:
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", "1")
    handed_in = cli("task", "propose", id, "request_approval", "--as", "w", "--epoch", "1", "--arg", f"draft={DRAFT}", "--json").data
    cli("task", "propose", id, "approve", "--as", "rita", "--digest", handed_in["digest"])
    return id


def test_a_report_has_the_task_its_history_its_decisions_and_what_is_open(cli: Cli, approved: str) -> None:
    told = cli("audit", "report", approved, "--json").data
    assert told["task"]["state"] == "approved"
    assert [entry["event"] for entry in told["entries"]] == ["create", "claim", "start_draft", "request_approval", "approve"]
    (decision,) = told["decisions"]
    assert (decision["event"], decision["by"], decision["shown"]) == ("approve", "rita", told["task"]["digest"])
    assert (told["created_by"], told["contributors"], told["open"]["complete"]) == ("ann", ["w"], "the owner")
    said = cli("audit", "report", approved).out
    for words in (DRAFT, "contributors  w", f"approve\trita\t{decision['at']}", "complete\tthe owner", "5\t"):
        assert words in said
    assert cli("audit", "report", "01890000-0000-7000-8000-000000000000").status == 4


def exported(cli: Cli, *flags: str) -> list[Any]:
    ended = cli("audit", "export", *flags)
    assert (ended.status, ended.err) == (0, "")
    return [json.loads(line) for line in ended.out.splitlines()]


def test_entries_are_exported_by_whom_of_what_and_when(cli: Cli, approved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = cli("task", "history", "--json").data["entries"]
    monkeypatch.setattr("pointsman.cli.paging.PAGE", 2)
    assert exported(cli) == entries
    assert exported(cli, "-n", "3") == entries[:3]
    assert exported(cli, "--actor", "w") == entries[1:4]
    assert exported(cli, "--event", "approve", "--actor", "w") == []
    assert exported(cli, "--event", "approve") == entries[:1]
    assert exported(cli, "--from", entries[1]["at"]) == entries[:2]
    assert exported(cli, "--to", entries[1]["at"]) == entries[2:]


@pytest.mark.parametrize("time", ["noon", "2026-01-31", "2026-01-31T12:00:00", "99999-01-01T00:00:00Z"])
def test_a_time_that_names_no_instant_is_told(cli: Cli, time: str) -> None:
    assert cli("audit", "export", "--from", time).status == 2
