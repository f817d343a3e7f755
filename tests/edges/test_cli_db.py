"""`db export` and `db backup`: what is printed can be checked without Pointsman's database, and the copy verifies."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from edges.cli import Cli

DRAFT = "Release notes: the queue hands each task to one agent, never to two."
COVERED = ["task", "version", "at", "kind", "event", "from_state", "to_state", "by", "session", "door", "auth", "epoch"]
COVERED += ["payload_digest", "request_key", "request_digest", "format", "previous"]


@pytest.fixture
def worked(cli: Cli, id: str) -> str:
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", "1")
    cli("task", "propose", id, "request_approval", "--as", "w", "--epoch", "1", "--arg", "draft=no")
    cli("task", "propose", id, "request_approval", "--as", "w", "--epoch", "1", "--arg", f"draft={DRAFT}")
    cli("task", "create", "--arg", "title=Züge\n☃", "--arg", "brief=b")
    return id


def exported(cli: Cli) -> list[dict[str, Any]]:
    ended = cli("db", "export")
    assert (ended.status, ended.err) == (0, "")
    return [json.loads(line) for line in ended.out.splitlines()]


def digest(domain: str, text: str) -> str:
    return sha256(f"pointsman:{domain}\0{text}".encode()).hexdigest()


def canonical(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def test_an_export_can_be_verified_from_what_stands_in_it(cli: Cli, worked: str, tmp_path: Path) -> None:
    """The page on the past says how; this follows it with nothing but hashlib and json."""
    first, *rest, last = exported(cli)
    machines = [line["machine"] for line in rest if "machine" in line]
    entries = [line["entry"] for line in rest if "entry" in line]
    assert last == {"end": {"machines": len(machines), "entries": len(entries)}}
    assert [machine["digest"] for machine in machines] == [digest("machine", canonical(machine["form"])) for machine in machines]

    heads: dict[str, str] = {}
    feed = "0" * 64
    for seq, entry in enumerate(entries, 1):
        assert (entry["seq"], entry["previous"]) == (seq, heads.get(entry["task"], "0" * 64))
        assert entry["payload_digest"] == digest("payload", f"{entry['nonce']}\0{canonical(entry['payload'])}")
        assert entry["hash"] == digest("entry", canonical([entry[name] for name in COVERED]))
        heads[entry["task"]] = entry["hash"]
        feed = digest("feed", canonical([feed, seq, entry["hash"]]))
    assert first["export"] == {"format": 1, "seq": len(entries), "hash": feed}

    head = cli("verify", "--write-head", str(tmp_path / "head"), "--json").data
    assert (head["tasks"], head["entries"]) == (len(heads), len(entries))
    assert (head["head"]["seq"], head["head"]["hash"]) == (first["export"]["seq"], feed)


def test_folding_an_export_gives_the_board(cli: Cli, worked: str) -> None:
    folded: dict[str, dict[str, Any]] = {}
    for entry in (line["entry"] for line in exported(cli) if "entry" in line):
        task = folded.setdefault(entry["task"], {"fields": {}})
        changes = entry["payload"]["changes"]
        task["fields"] |= changes.get("fields", {})
        task |= {"state": entry["to_state"], "version": entry["version"], "epoch": entry["epoch"]}
    board = {task["id"]: task for task in cli("task", "list", "--json").data["tasks"]}
    assert folded == {id: {name: task[name] for name in ("fields", "state", "version", "epoch")} for id, task in board.items()}


def test_an_empty_board_is_exported_whole(cli: Cli) -> None:
    first, machine, last = exported(cli)
    assert (first["export"]["seq"], machine["machine"]["name"], last) == (0, "tasks", {"end": {"machines": 1, "entries": 0}})


def test_a_backup_is_a_database_that_verifies(cli: Cli, worked: str, tmp_path: Path) -> None:
    made = cli("db", "backup", "copy.db", "--json").data
    copy = tmp_path / "copy.db"
    assert made == {"db": f"sqlite:///{tmp_path}/pointsman.db", "copy": f"sqlite:///{copy}", "bytes": copy.stat().st_size}
    assert copy.stat().st_mode & 0o077 == 0
    assert cli("verify", "--db", "sqlite:///copy.db").out == cli("verify").out
    assert cli("task", "list", "--db", "sqlite:///copy.db", "--json").data == cli("task", "list", "--json").data
    cli("task", "claim", "--as", "w2", "--db", "sqlite:///copy.db")
    assert cli("task", "list", "--owner", "w2", "--json").data == {"tasks": []}


def test_a_backup_replaces_a_file_only_after_a_yes(cli: Cli, worked: str, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine")
    ended = cli("db", "backup", "copy.db")
    assert (ended.status, "--yes" in ended.err, (tmp_path / "copy.db").read_text()) == (2, True, "mine")
    assert cli("db", "backup", "copy.db", "--yes").status == 0
    assert cli("verify", "--db", "sqlite:///copy.db").status == 0
    assert sorted(path.name for path in tmp_path.glob("copy.db*")) == ["copy.db", "copy.db-next", "copy.db-turn"]


def test_a_backup_never_goes_over_a_database_in_use(cli: Cli, worked: str, tmp_path: Path) -> None:
    itself = cli("db", "backup", "pointsman.db", "--yes")
    assert (itself.status, "itself" in itself.err) == (5, True)
    cli("db", "backup", "copy.db")
    (tmp_path / "copy.db-wal").write_bytes(b"left")
    ended = cli("db", "backup", "copy.db", "--yes")
    assert (ended.status, "in use" in ended.err) == (5, True)


def test_a_backup_that_cannot_be_written_leaves_nothing(cli: Cli, worked: str, tmp_path: Path) -> None:
    assert cli("db", "backup", "no/such/copy.db").status == 5
    (tmp_path / "folder").mkdir()
    assert cli("db", "backup", "folder", "--yes").status == 5
    assert list(tmp_path.glob("*-partial")) == []


def test_what_a_killed_backup_left_is_in_nobodys_way(cli: Cli, worked: str, tmp_path: Path) -> None:
    (tmp_path / "copy.db-partial").write_bytes(b"SQLite format 3\0 and then nothing")
    assert cli("db", "backup", "copy.db").status == 0
    assert cli("verify", "--db", "sqlite:///copy.db").status == 0
    assert list(tmp_path.glob("*-partial")) == []


def test_a_database_that_is_damaged_is_not_copied(cli: Cli, worked: str, tmp_path: Path) -> None:
    """Exchange two keys inside an index page: SQLite opens the file, and its own check finds it."""
    with apsw.Connection(str(tmp_path / "pointsman.db")) as db:
        db.pragma("writable_schema", 1)
        db.execute("UPDATE sqlite_schema SET sql = replace(sql, '(created_at, id)', '(updated_at, id)') WHERE name = 'tasks_by_created'")
    db.close()
    ended = cli("db", "backup", "copy.db")
    assert (ended.status, "not sound" in ended.err) == (5, True)
    assert not (tmp_path / "copy.db").exists()
