"""`machine diff` and `machine publish`: a work file beside what the database has."""

import json
from pathlib import Path
from typing import Any

import pytest

from edges.cli import Cli

WORK = """\
from pointsman import Event, Machine, State, Verdict, check, owner


def long_enough(text: str | None) -> Verdict:
    return Verdict(len(text or "") > 3, "longer than three")


class Jobs(Machine, name="jobs"):
    version = 1
    text: str | None = None
    start = State(initial=True)
    busy = State()
    end = State(final=True, outcome="failed")
    length = check(long_enough)
    take = Event(start >> busy, acquires=True)
    finish = Event(busy >> end, by=owner, sets="text", requires=length)
"""


@pytest.fixture
def work(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POINTSMAN_WORK", "jobs.py")
    (tmp_path / "jobs.py").write_text(WORK)
    return tmp_path / "jobs.py"


def compared(cli: Cli, status: int = 0) -> Any:
    ended = cli("machine", "diff", "--json")
    assert ended.status == status
    (machine,) = json.loads(ended.out)["machines"]
    return machine


def edited(work: Path, *edits: tuple[str, str]) -> None:
    text = work.read_text()
    for was, now in edits:
        assert was in text
        text = text.replace(was, now)
    work.write_text(text)


def test_a_machine_is_new_then_published_then_the_same(cli: Cli, work: Path) -> None:
    assert compared(cli) == {"name": "jobs", "version": 1, "published": None, "publishable": True, "changes": []}
    assert cli("machine", "diff").out == "jobs, version 1: not published yet\n"
    assert cli("machine", "publish", "--json").data == {"published": [{"name": "jobs", "version": 1}]}
    assert cli("machine", "publish").out == "nothing new to publish\n"
    assert cli("machine", "diff").out == "jobs, version 1: published as it is\n"
    assert compared(cli)["published"] == 1


def test_what_was_added_changed_and_taken_away(cli: Cli, work: Path) -> None:
    cli("machine", "publish")
    edited(work, ("version = 1", "version = 2"), ("busy", "working"), (", requires=length", ""), ("str | None = None", "str = ''"))
    assert cli("machine", "diff").out.splitlines() == [
        "jobs, version 2: not published yet; against version 1:",
        "  ~ field text: default, schema",
        "  + state working",
        "  - state busy",
        "  ~ event take: moves",
        "  ~ event finish: moves, requires",
    ]
    told = {(change["part"], change["name"]): change for change in compared(cli)["changes"]}
    assert told["state", "working"]["was"] is None
    assert told["state", "busy"]["now"] is None
    assert told["event", "finish"]["was"]["requires"] == ["length"]
    assert cli("machine", "publish").out == "published jobs, version 2\n"


def test_a_number_may_get_another_structure_only_while_no_task_of_it_is_open(cli: Cli, work: Path) -> None:
    cli("machine", "publish")
    edited(work, ("by=owner, ", ""))
    assert compared(cli)["publishable"] is True
    assert cli("machine", "publish").status == 0
    cli("task", "create")
    edited(work, (", requires=length", ""))
    assert compared(cli, status=1)["publishable"] is False
    assert "it has open tasks, so raise `version`" in cli("machine", "diff").out
    ended = cli("machine", "publish")
    assert (ended.status, ended.out, "raise `version`" in ended.err) == (1, "", True)


def test_only_the_machine_named_is_compared(cli: Cli, work: Path) -> None:
    assert cli("machine", "diff", "--machine", "jobs", "--json").data["machines"][0]["name"] == "jobs"
    assert cli("machine", "diff", "--machine", "none").status == 4
