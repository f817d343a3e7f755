"""`db migrate`, `db copy` and `db prune`, as they are typed."""

from pathlib import Path

import apsw
import pytest

from databases import PostgresServer
from edges.cli import Cli
from pointsman.store.connect import SQL
from pointsman.store.migrate import migrations

NEWEST = [step.name for step in migrations(SQL / "schema")]


@pytest.fixture
def failed(cli: Cli, id: str) -> str:
    """A final task, with three entries."""
    cli("task", "claim", id, "--as", "w")
    assert cli("task", "propose", id, "fail", "--as", "w", "--epoch", "1").status == 0
    return id


def test_migrate_says_what_it_did(cli: Cli, tmp_path: Path) -> None:
    assert cli("db", "migrate", "--json").data == {"db": f"sqlite:///{tmp_path}/pointsman.db", "schema": len(NEWEST), "steps": []}
    assert "nothing to do" in cli("db", "migrate").out
    made = cli("db", "migrate", "--create", "--db", "sqlite:///new.db", "--json").data
    assert made == {"db": f"sqlite:///{tmp_path}/new.db", "schema": len(NEWEST), "steps": NEWEST}
    assert cli("task", "list", "--db", "sqlite:///new.db", "--json").data == {"tasks": []}


def test_migrate_takes_an_older_database_forward(cli: Cli, tmp_path: Path) -> None:
    older = apsw.Connection(str(tmp_path / "older.db"))
    older.pragma("application_id", 0x504F494E)
    older.execute((SQL / "schema" / NEWEST[0]).read_text())
    older.pragma("user_version", 1)
    older.close()
    ended = cli("db", "migrate", "--db", "sqlite:///older.db")
    assert (ended.status, ended.err) == (0, "")
    assert f"took {len(NEWEST) - 1} step" in ended.out
    assert ", ".join(NEWEST[1:]) in ended.out
    assert cli("verify", "--db", "sqlite:///older.db").status == 0


def test_migrate_makes_a_database_only_when_told_to(cli: Cli, tmp_path: Path, postgres: PostgresServer) -> None:
    ended = cli("db", "migrate", "--db", "sqlite:///none.db")
    assert (ended.status, str(tmp_path / "none.db") in ended.err) == (5, True)
    assert not (tmp_path / "none.db").exists()
    url = postgres.create()
    assert "holds nothing of Pointsman" in cli("db", "migrate", "--db", url).err
    assert len(cli("db", "migrate", "--create", "--db", url, "--json").data["steps"]) == len(NEWEST)
    assert cli("db", "migrate", "--db", url, "--json").data["steps"] == []


def test_a_copy_to_postgresql_is_told_and_verifies_there(cli: Cli, failed: str, postgres: PostgresServer) -> None:
    url = postgres.create()
    cli("verify", "--write-head", "head")
    told = cli("db", "copy", "--to", url, "--json").data
    assert (told["ok"], told["faults"], told["head"]["seq"]) == (True, [], 3)
    assert {table: told["rows"][table] for table in ("tasks", "entries", "payloads", "requests")} == {
        "tasks": 1,
        "entries": 3,
        "payloads": 3,
        "requests": 3,
    }
    assert cli("verify", "--head", "head", "--db", url).status == 0
    assert cli("task", "show", failed, "--db", url, "--json").data["state"] == "failed"


def test_a_copy_says_what_arrived(cli: Cli, failed: str, tmp_path: Path) -> None:
    ended = cli("db", "copy", "--to", "sqlite:///there.db")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[:2] == [f"copied sqlite:///{tmp_path}/pointsman.db", f"to sqlite:///{tmp_path}/there.db"]
    assert "entries\t3" in ended.out
    assert ended.out.endswith("verified there, up to feed number 3\n")
    again = cli("db", "copy", "--to", "sqlite:///there.db")
    assert (again.status, "it holds something" in again.err) == (5, True)


def test_progress_is_shown_on_a_terminal_and_taken_away_again(cli: Cli, failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointsman.cli.output.sys.stderr.isatty", lambda: True)
    shown = [line for line in cli("db", "copy", "--to", "sqlite:///there.db").err.split("\r\x1b[K") if line]
    assert (shown[0], shown[-1]) == ("machines: 1", "verifying")
    assert "entries: 3" in shown
    pruned = cli("db", "prune", "--older-than", "0s", "--yes").err.split("\r\x1b[K")
    assert (pruned[-2], pruned[-1]) == ("removed 3 idempotency records", "")


def test_a_copy_that_does_not_verify_ends_with_status_1(cli: Cli, failed: str, tmp_path: Path) -> None:
    raw = apsw.Connection(str(tmp_path / "pointsman.db"))
    raw.execute("UPDATE entries SET by = 'mallory' WHERE key = 2")
    raw.close()
    ended = cli("db", "copy", "--to", "sqlite:///there.db")
    assert (ended.status, "NOT INTACT" in ended.out, "a covered column was altered" in ended.out) == (1, True, True)
    assert "unfinished copy" in cli("verify", "--db", "sqlite:///there.db").err


def test_prune_says_what_it_will_remove_and_asks(cli: Cli, failed: str) -> None:
    ended = cli("db", "prune", "--older-than", "0s", "--payloads")
    assert ended.status == 2
    assert "3 idempotency records, 1 task's payloads would be removed; say --yes" in ended.err
    assert cli("task", "show", failed, "--version", "1").status == 0


def test_prune_on_a_terminal_asks_and_takes_no_for_an_answer(cli: Cli, failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    monkeypatch.setattr("pointsman.cli.output.can_ask", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda question, err: asked.append(question))
    assert cli("db", "prune", "--older-than", "0s").status == 1
    assert asked == ["Remove what is older than 0s for good: 3 idempotency records?"]
    assert cli("db", "prune", "--older-than", "0s", "--yes", "--json").data["removed"]["requests"] == 3


def test_prune_removes_and_says_what(cli: Cli, failed: str) -> None:
    assert cli("db", "prune", "--older-than", "30d", "--yes", "--json").data["removed"]["requests"] == 0
    pruned = cli("db", "prune", "--older-than", "0s", "--yes", "--json").data
    assert pruned["removed"] == {"requests": 3, "refusals": 0, "proposals": 0, "judgements": 0, "tasks": 0}
    assert cli("db", "prune", "--older-than", "0s", "--payloads", "--yes").out.endswith("removed 1 task's payloads\n")
    gone = cli("task", "show", failed, "--version", "1")
    assert (gone.status, "pruned" in gone.err) == (4, True)
    assert cli("task", "show", failed, "--version", "3", "--json").data["state"] == "failed"
    assert cli("verify").status == 0
    assert cli("db", "prune", "--older-than", "0s", "--payloads", "--yes").out.endswith("removed nothing\n")


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "1.5h", "30 d", "٣d", "1w", "9999999d", "999999d"])
def test_an_age_that_is_none_is_refused(cli: Cli, age: str) -> None:
    ended = cli("db", "prune", "--yes", f"--older-than={age}")
    assert (ended.status, "older" in ended.err) == (2, True)
