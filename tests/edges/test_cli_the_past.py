"""The board and a task as they were, and `verify` against a head that was kept elsewhere."""

import json
from pathlib import Path

import apsw
import pytest

from edges.cli import Cli


@pytest.fixture
def moved(cli: Cli, id: str) -> str:
    """A task that was created (#1), claimed (#2) and failed (#3)."""
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "fail", "--as", "w", "--epoch", "1")
    return id


def test_the_board_as_of_a_feed_number_and_of_a_time(cli: Cli, moved: str) -> None:
    later = cli("task", "create", "--arg", "title=Second", "--arg", "brief=b", "--json").data

    def board(*flags: str) -> list[tuple[str, str]]:
        return [(task["id"], task["state"]) for task in cli("task", "list", "--json", *flags).data["tasks"]]

    assert board("--at", "#0") == []
    assert board("--at", "#1") == [(moved, "queued")]
    assert board("--at", "#2") == [(moved, "claimed")]
    assert board("--at", "#3") == [(moved, "failed")]
    assert board("--at", later["created_at"]) == [(moved, "failed"), (later["id"], "queued")]
    assert board("--at", "#4", "--open") == [(later["id"], "queued")]
    assert board("--at", "2020-01-01T00:00:00Z") == []


def test_a_task_as_of_a_version_and_of_a_feed_number(cli: Cli, moved: str) -> None:
    assert cli("task", "show", moved, "--version", "2", "--json").data["state"] == "claimed"
    assert cli("task", "show", moved, "--at", "#1", "--json").data["version"] == 1
    past = cli("task", "show", moved, "--at", "#2").out
    assert "state    claimed" in past
    assert "who may ask" not in past  # what could happen then cannot happen now
    assert cli("task", "show", moved, "--at", "#0").status == 4
    assert cli("task", "show", moved, "--version", "99").status == 4
    assert cli("task", "show", moved, "--at", "#99").status == 2
    assert cli("task", "show", moved, "--at", "#1", "--version", "1").status == 2


def test_words_are_looked_for_in_text(cli: Cli, id: str) -> None:
    cli("task", "create", "--arg", "title=Signal box", "--arg", "brief=Describe the levers")
    found = cli("task", "list", "--q", "LEVERS signal", "--json").data["tasks"]
    assert [task["fields"]["title"] for task in found] == ["Signal box"]
    assert cli("task", "list", "--q", "levers release", "--json").data["tasks"] == []


def test_the_feed_number_stands_in_the_history_of_the_board(cli: Cli, moved: str) -> None:
    header, *rows = [line.split("\t") for line in cli("task", "history").out.splitlines()]
    assert header[:3] == ["feed", "task", "v"]
    assert [row[:3] for row in rows] == [[str(n), moved, str(n)] for n in (3, 2, 1)]


def test_the_history_of_the_board_reads_past_one_page(cli: Cli, moved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointsman.cli.paging.PAGE", 1)
    assert [entry["seq"] for entry in cli("task", "history", "--json").data["entries"]] == [3, 2, 1]
    assert [entry["seq"] for entry in cli("task", "history", "-n", "2", "--json").data["entries"]] == [3, 2]
    assert cli("task", "history", "-n", "0").status == 2


def test_a_head_is_written_only_when_all_is_well_and_finds_a_cut_tail(cli: Cli, moved: str, tmp_path: Path) -> None:
    head = tmp_path / "head.json"
    written = cli("verify", "--write-head", str(head), "--json").data["head"]
    assert json.loads(head.read_text()) == written
    assert written["seq"] == 3
    assert cli("verify", "--head", str(head)).out == "verified: 1 task, 3 entries, 0 faults\n"
    cli("task", "create", "--arg", "title=t", "--arg", "brief=b")
    assert cli("verify", "--head", str(head)).status == 0  # what came later is no fault

    later = tmp_path / "later.json"
    assert "feed number 4" in cli("verify", "--head", str(head), "--write-head", str(later)).out
    cut_last_task(tmp_path / "pointsman.db")
    assert cli("verify").status == 0  # a cut tail leaves no trace in the database itself
    ended = cli("verify", "--head", str(later), "--write-head", str(head), "--json")
    assert (ended.status, "the tail was cut" in json.loads(ended.out)["faults"][0]["what"]) == (1, True)
    assert json.loads(head.read_text()) == written


def cut_last_task(path: Path) -> None:
    """Take away the newest task and all that is known of it, as somebody with the file can."""
    db = apsw.Connection(str(path))
    key = db.execute("SELECT max(key) FROM tasks").fetchall()[0][0]
    (id,) = db.execute("SELECT id FROM tasks WHERE key = ?", (key,)).fetchall()[0]
    db.execute("DELETE FROM feed WHERE task = ?", (key,))
    db.execute("DELETE FROM payloads WHERE entry IN (SELECT key FROM entries WHERE task = ?)", (key,))
    db.execute("DELETE FROM entries WHERE task = ?", (key,))
    db.execute("DELETE FROM requests WHERE task = ?", (id,))
    db.execute("DELETE FROM tasks WHERE key = ?", (key,))
    db.close()


GOOD = '{"format": 1, "seq": 0, "hash": "%s"}' % ("0" * 64)
BAD_HEADS = {
    "empty": "",
    "no JSON": "feed number 3",
    "a list": "[]",
    "another format": GOOD.replace("1", "2", 1),
    "a negative number": GOOD.replace('"seq": 0', '"seq": -1'),
    "true for a number": GOOD.replace('"seq": 0', '"seq": true'),
    "a short hash": GOOD.replace("0000", "", 1),
    "no hash": '{"format": 1, "seq": 0}',
}


@pytest.mark.parametrize("text", BAD_HEADS.values(), ids=BAD_HEADS.keys())
def test_a_file_that_is_no_head_is_told(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "head").write_text(text)
    ended = cli("verify", "--head", "head")
    assert (ended.status, ended.out, "--head" in ended.err) == (2, "", True)


def test_the_least_head_fits_and_a_missing_file_does_not(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "head").write_text(GOOD)
    assert cli("verify", "--head", "head").status == 0
    assert cli("verify", "--head", "nowhere").status == 2
    assert cli("verify", "--write-head", "no/such/folder").status == 2
