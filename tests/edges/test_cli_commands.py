"""Every command, run in this process: what it prints, as text and as JSON, and its exit status."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from edges.cli import Cli
from pointsman.cli.root import app

DRAFT = "Release notes: the queue hands each task to one agent, never to two."


def paths(command: Any, name: str = "") -> Iterator[str]:
    yield name
    for sub in getattr(command, "commands", {}).values():
        yield from paths(sub, f"{name} {sub.name}".strip())


@pytest.mark.parametrize("path", list(paths(typer.main.get_command(app))))
def test_every_command_has_help_that_says_what_it_does(cli: Cli, path: str) -> None:
    ended = cli(*path.split(), "--help")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.startswith(f"Usage: pointsman {path}".rstrip())
    assert len(ended.out.splitlines()[2].strip()) > 10


def test_the_command_alone_prints_its_help(cli: Cli) -> None:
    assert cli() == cli("--help")


def test_create_answers_where_the_task_stands(cli: Cli) -> None:
    ended = cli("task", "create", "--arg", "title=5", "--arg", "brief=x", "--priority", "3")
    assert ended.out.startswith("created: task ")
    assert ended.out.endswith(" is queued, version 1\n")
    created = cli("task", "list", "--json").data["tasks"][0]
    assert (created["fields"]["title"], created["priority"]) == ("5", 3)


def test_who_acts_comes_from_the_flag_or_the_settings(cli: Cli, id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = cli("task", "claim", id)
    assert (nameless.status, "--as NAME" in nameless.err) == (2, True)
    monkeypatch.setenv("POINTSMAN_AS", "writer-1")
    assert cli("task", "claim", id, "--json").data["owner"] == "writer-1"
    assert cli("task", "history", "--json").data["entries"][-1]["by"] == "ann"


def test_claim_without_an_id_takes_the_oldest_and_says_when_none_waits(cli: Cli, id: str) -> None:
    assert cli("task", "claim", "--as", "w", "--json").data["id"] == id
    ended = cli("task", "claim", "--as", "w")
    assert (ended.status, ended.err.partition(":")[0]) == (3, "nothing_to_claim")


def test_an_owner_names_the_epoch_and_a_reviewer_the_digest(cli: Cli, id: str) -> None:
    epoch = str(cli("task", "claim", id, "--as", "w", "--json").data["epoch"])
    assert cli("task", "propose", id, "start_draft", "--as", "w").status == 2
    assert cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", "99").err.startswith("lease_lost: ")
    assert cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", epoch).status == 0
    handed_in = cli("task", "propose", id, "request_approval", "--as", "w", "--epoch", epoch, "--arg", f"draft={DRAFT}", "--json").data
    assert cli("task", "propose", id, "approve", "--as", "rita").status == 2
    assert cli("task", "propose", id, "approve", "--as", "rita", "--digest", handed_in["digest"]).status == 0


def test_a_dry_run_changes_nothing(cli: Cli, id: str) -> None:
    cli("task", "claim", id, "--as", "w")
    ended = cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", "1", "--dry-run")
    assert ended.out.startswith("dry run, nothing changed: start_draft would be accepted")
    assert cli("task", "show", id, "--json").data["state"] == "claimed"


def test_an_idempotency_key_makes_a_repeated_command_one_change(cli: Cli) -> None:
    create = ("task", "create", "--arg", "title=t", "--arg", "brief=b", "--as", "ann", "--idempotency-key", "k-1", "--json")
    assert cli(*create).data["id"] == cli(*create).data["id"]
    assert len(cli("task", "list", "--json").data["tasks"]) == 1


def test_an_expected_version_must_hold(cli: Cli, id: str) -> None:
    ended = cli("task", "claim", id, "--as", "w", "--expect-version", "7", "--json")
    assert (ended.status, json.loads(ended.err)["code"], json.loads(ended.err)["version"]) == (3, "stale_version", 1)


def test_list_filters(cli: Cli, id: str) -> None:
    other = cli("task", "create", "--arg", "title=Second", "--arg", "brief=b", "--json").data["id"]
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "fail", "--as", "w", "--epoch", "1")

    def listed(*flags: str) -> list[str]:
        return [task["id"] for task in cli("task", "list", "--json", *flags).data["tasks"]]

    assert listed() == [id, other]
    assert listed("--open") == [other]
    assert listed("--state", "failed") == listed("--owner", "w") == [id]
    assert listed("--state", "failed", "--state", "queued", "-n", "1") == [id]
    assert listed("--order", "updated_at") == [other, id]
    lines = cli("task", "list").out.splitlines()
    assert lines[0] == "id\tstate\towner\tversion\tupdated\tabout"
    assert [line.split("\t")[-1] for line in lines[1:]] == ["Release notes", "Second"]


def test_list_reads_past_one_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointsman.cli.paging.PAGE", 2)
    for n in range(5):
        cli("task", "create", "--arg", f"title={n}", "--arg", "brief=b")
    assert [task["fields"]["title"] for task in cli("task", "list", "--json").data["tasks"]] == list("01234")
    assert [task["fields"]["title"] for task in cli("task", "list", "-n", "3", "--json").data["tasks"]] == list("012")


def test_show_says_what_can_happen_next_and_who_can_ask(cli: Cli, id: str) -> None:
    cli("task", "claim", id, "--as", "w")
    shown = cli("task", "show", id, "--as", "rita").out
    digest = cli("task", "show", id, "--json").data["digest"]
    for words in (digest, "--digest", "w, epoch 1", "title        Release notes", "start_draft\tdrafting\tthe owner"):
        assert words in shown
    assert "topic\tfail\tno draft" in shown
    assert cli("task", "show", id, "--as", "w", "--json").data["allowed"] == ["start_draft", "fail"]
    assert cli("task", "show", id, "--version", "1", "--json").data["state"] == "queued"


def test_fields_stand_in_the_order_of_their_declaration(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.py").write_text(TWO.replace("size: int", "what: str\n    about: str"))
    monkeypatch.setenv("POINTSMAN_WORK", "two.py")
    id = cli("task", "create", "--machine", "jobs", "--arg", "about=second", "--arg", "what=first", "--json").data["id"]
    assert cli("task", "list").out.splitlines()[1].split("\t")[-1] == "first"
    assert "what   first\nabout  second\n" in cli("task", "show", id).out


def test_show_of_a_finished_task_says_that_it_is_over(cli: Cli, id: str) -> None:
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "fail", "--as", "w", "--epoch", "1")
    assert "failed is final" in cli("task", "show", id).out


def test_text_of_strangers_moves_no_cursor(cli: Cli) -> None:
    id = cli("task", "create", "--arg", "title=a\x1b[2Jb\u202ec", "--arg", "brief=[red]x[/red]", "--json").data["id"]
    for argv in (("task", "list"), ("task", "show", id), ("task", "history", id)):
        out = cli(*argv).out
        assert "\x1b" not in out
        assert "\u202e" not in out
    assert "[red]x[/red]" in cli("task", "show", id).out


def test_history_of_a_task_is_oldest_first_and_of_the_board_newest_first(cli: Cli, id: str) -> None:
    cli("task", "claim", id, "--as", "w")
    assert [entry["event"] for entry in cli("task", "history", id, "--json").data["entries"]] == ["create", "claim"]
    assert [entry["event"] for entry in cli("task", "history", "--json").data["entries"]] == ["claim", "create"]
    assert [entry["event"] for entry in cli("task", "history", "-n", "1", "--json").data["entries"]] == ["claim"]
    assert cli("task", "history", id).out.splitlines()[0] == "v\tat\tevent\tstate\tby\tdoor\tnote"
    assert cli("task", "history").out.splitlines()[1].startswith(f"2\t{id}\t2\t")


def test_several_machines_need_a_name(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    ended = cli("task", "create", "--work", "two.py", "--db", "sqlite:///pointsman.db")
    assert (ended.status, "jobs, tasks" in ended.err) == (2, True)
    assert cli("task", "create", "--work", "two.py", "--machine", "jobs", "--arg", "size=5", "--json").data["fields"] == {"size": 5}
    drawn = cli("machine", "draw", "two.py", "--json").data["machines"]
    assert [item["name"] for item in drawn] == ["jobs", "tasks"]
    assert cli("machine", "draw", "two.py", "--machine", "jobs").out.startswith("stateDiagram-v2")
    assert cli("machine", "draw", "two.py", "--machine", "none").status == 4


TWO = """\
from pointsman import Event, Machine, State, Tasks


class Jobs(Machine, name="jobs"):
    version = 1
    size: int
    start = State(initial=True)
    end = State(final=True, outcome="failed")
    go = Event(start >> end)


machines = [Jobs, Tasks]
"""


def test_the_built_in_machine_is_sound_and_drawn(cli: Cli) -> None:
    assert cli("machine", "check").out.startswith("tasks, version 1: no fault, 7 states, 7 events")
    assert "awaiting_approval --> approved" in cli("machine", "draw").out


def test_a_machine_with_faults_is_told_by_every_command_that_loads_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(TWO.replace("go = Event(start >> end)", 'go = Event(start >> end, sets="nothing")'))
    checked = cli("machine", "check", "bad.py", "--json")
    assert (checked.status, checked.err) == (1, "")
    assert [fault["line"] for fault in json.loads(checked.out)["machines"][0]["faults"]] == [9]
    assert "line 9" in cli("machine", "check", "bad.py").out
    said = cli("task", "list", "--work", "bad.py")
    assert (said.status, said.out) == (1, "")
    assert said.err.startswith("failed: machine jobs cannot be served\n")
    assert "line 9" in said.err
    assert json.loads(cli("task", "list", "--work", "bad.py", "--json").err)["faults"][0]["line"] == 9


def test_a_work_file_that_does_not_load_is_one_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("x = 1\nimport no_such_module\n")
    ended = cli("machine", "check", "bad.py")
    assert (ended.status, ended.out, ended.err.count("\n")) == (1, "", 1)
    assert ended.err.startswith(f"failed: {tmp_path}/bad.py, line 2: ")
    assert json.loads(cli("machine", "check", "bad.py", "--json").err)["code"] == "failed"


def test_verify_db_check_and_doctor_say_that_all_is_well(cli: Cli, id: str) -> None:
    assert cli("verify").out == "verified: 1 task, 1 entry, 0 faults\n"
    assert cli("verify", "--json").data == {"ok": True, "tasks": 1, "entries": 1, "faults": []}
    assert cli("db", "check").out.endswith("pointsman.db is sound\n")
    assert cli("doctor").out == "nothing to see to\n"


def test_doctor_sees_a_body_that_changed_under_its_version(cli: Cli, tmp_path: Path) -> None:
    work = tmp_path / "work.py"
    work.write_text(CHECKED)
    assert cli("task", "create", "--work", "work.py").status == 0
    work.write_text(CHECKED.replace("fine", "good"))
    ended = cli("doctor", "--work", "work.py", "--json")
    assert ended.status == 1
    assert "changed" in json.loads(ended.out)["warnings"][0]


CHECKED = """\
from pointsman import Event, Machine, State, Verdict, check


def sound(text: str | None) -> Verdict:
    return Verdict(True, "fine")


class Jobs(Machine, name="jobs"):
    version = 1
    text: str | None = None
    start = State(initial=True)
    end = State(final=True, outcome="failed")
    judged = check(sound)
    go = Event(start >> end, sets="text", requires=judged, otherwise=start)
"""


def test_init_asks_only_when_something_would_be_lost(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", "new").status == 0
    assert cli("init", "new").status == 0
    (tmp_path / "new" / "pointsman.toml").write_text("# mine\n")
    ended = cli("init", "new")
    assert (ended.status, "--yes" in ended.err) == (2, True)
    assert (tmp_path / "new" / "pointsman.toml").read_text() == "# mine\n"
    assert cli("init", "new", "--yes", "--json").data["db"] == f"sqlite:///{tmp_path}/new/pointsman.db"
    assert "mine" not in (tmp_path / "new" / "pointsman.toml").read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_serve_refuses_an_address_that_others_can_reach(cli: Cli, host: str) -> None:
    ended = cli("serve", "--host", host)
    assert (ended.status, ended.out) == (2, "")
    assert "loopback" in ended.err
    assert "key" in ended.err


def test_a_port_in_use_is_one_line(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = cli("serve", "--port", str(taken.getsockname()[1]))
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.splitlines()[-1].startswith("failed: ")
    assert "in use" in ended.err


def test_settings_that_do_not_fit_are_told_with_their_place(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "pointsman.toml").write_text("colour = 1\n")
    ended = cli("task", "list")
    assert (ended.status, f"{tmp_path}/pointsman.toml: colour" in ended.err) == (2, True)


def test_json_can_be_a_setting(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_JSON", "1")
    assert cli("task", "list").data == {"tasks": []}
    assert json.loads(cli("task", "show", "x").err)["code"] == "invalid"


def test_a_database_that_is_not_ours_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "other.db").write_bytes(b"not a database" * 100)
    ended = cli("task", "list", "--db", "sqlite:///other.db")
    assert (ended.status, str(tmp_path / "other.db") in ended.err) == (5, True)
    assert cli("task", "list", "--db", "postgresql://ann:secret@db/work").status == 5
    assert "secret" not in cli("task", "list", "--db", "postgresql://ann:secret@db/work").err


UNFIT = ["fly", "task", "task list --fly", "task list --order size", "task list -n 0", "task list --at noon", "task show", "task wait"]
UNFIT += ["task wait x --proposal y", "task wait x --timeout -1", "serve --port x", "serve --port 70000", "init --agent emacs", "db backup"]


@pytest.mark.parametrize("argv", UNFIT)
def test_a_command_line_that_does_not_fit_is_one_line(cli: Cli, argv: str) -> None:
    ended = cli(*argv.split())
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith("invalid: ")


TASK_VERBS = ("create", "list", "history", "show x", "claim --as w", "propose x y --as w", "wait x")
MAKE_NONE = [*(f"task {verb}" for verb in TASK_VERBS), "verify", "doctor", "machine diff", "machine publish"]
MAKE_NONE += ["db check", "db export", "db backup copy.db"]


@pytest.mark.parametrize("argv", MAKE_NONE)
def test_only_serve_init_and_demo_make_a_database(cli: Cli, tmp_path: Path, argv: str) -> None:
    before = sorted(tmp_path.iterdir())
    ended = cli(*argv.split(), "--db", "sqlite:///none.db")
    assert (ended.status, ended.out, ended.err.partition(":")[0]) == (5, "", "store_unavailable")
    assert str(tmp_path / "none.db") in ended.err
    assert sorted(tmp_path.iterdir()) == before
