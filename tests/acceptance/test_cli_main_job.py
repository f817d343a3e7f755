"""From an empty folder to a verified history with the real command: the job `pointsman init` leads a newcomer through."""

import json
import urllib.request
from pathlib import Path

import pytest

from acceptance.cli import run, serving

GOOD = "Steam engines turn heat into motion, and a town into a junction."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    made = run(folder, "init", "board", "--json").data
    assert made == {
        "files": [str(folder / "board" / name) for name in ("work.py", "pointsman.toml")],
        "db": f"sqlite:///{folder}/board/pointsman.db",
    }
    return folder / "board"


def test_the_written_machine_is_driven_to_its_end(folder: Path) -> None:
    assert run(folder, "machine", "check", "--json").data["machines"][0] | {"warnings": []} == {
        "name": "articles",
        "version": 1,
        "faults": [],
        "warnings": [],
    }
    created = run(folder, "task", "create", "--as", "ann", "--arg", "topic=Steam engines", "--json").data
    claimed = run(folder, "task", "claim", "--as", "writer-1", "--json").data
    assert (claimed["id"], claimed["state"], claimed["owner"]) == (created["id"], "writing", "writer-1")
    owner = (claimed["id"], "submit", "--as", "writer-1", "--epoch", str(claimed["epoch"]), "--json")

    poor = run(folder, "task", "propose", *owner, "--arg", "draft=None yet.")
    assert (poor.status, poor.out, poor.refusal["code"], poor.refusal["recorded"]) == (3, "", "evidence_failed", True)
    tried = run(folder, "task", "propose", *owner, "--arg", f"draft={GOOD}", "--dry-run")
    assert (tried.status, tried.refusal["code"], tried.refusal["recorded"]) == (3, "evidence_pending", False)
    assert run(folder, "task", "show", created["id"], "--json").data["version"] == poor.refusal["version"]
    handed_in = run(folder, "task", "propose", *owner, "--arg", "draft=@-", stdin=GOOD).data
    assert (handed_in["state"], handed_in["fields"]["draft"]) == ("in_review", GOOD)

    shown = run(folder, "task", "show", created["id"], "--as", "eve", "--json").data
    assert set(shown["allowed"]) >= {"publish", "send_back"}
    decide = ("task", "propose", created["id"], "publish", "--json", "--digest")
    assert run(folder, *decide, shown["digest"], "--as", "writer-1").refusal["code"] == "self_approval"
    assert run(folder, *decide, claimed["digest"], "--as", "eve").refusal["code"] == "stale_content"
    assert run(folder, *decide, shown["digest"], "--as", "eve").data["state"] == "published"

    told = run(folder, "task", "history", created["id"], "--json").data["entries"]
    assert [entry["version"] for entry in told] == list(range(1, len(told) + 1))
    assert {entry["door"] for entry in told} == {"cli"}
    assert (told[-1]["event"], told[-1]["by"], told[-1]["to"]) == ("publish", "eve", "published")


def test_what_looks_after_the_record_finds_it_whole(folder: Path) -> None:
    run(folder, "task", "create", "--arg", "topic=Signals")
    verified = run(folder, "verify", "--json").data
    assert verified["ok"]
    assert verified["tasks"] >= 1
    assert run(folder, "db", "check", "--json").data == {"ok": True, "db": f"sqlite:///{folder}/pointsman.db", "faults": []}
    assert run(folder, "doctor", "--json").data["warnings"] == []


def test_the_written_machine_is_served(folder: Path) -> None:
    with serving(folder) as ready:
        assert ready["db"] == f"sqlite:///{folder}/pointsman.db"
        with urllib.request.urlopen(f"{ready['url']}/healthz", timeout=5) as answer:
            assert answer.status == 200
        beside = run(folder, "task", "create", "--arg", "topic=Written beside the server", "--json").data
        assert beside["state"] == "waiting"


def test_serve_makes_the_database_and_the_flat_service_meets_the_command_line(tmp_path: Path) -> None:
    with serving(tmp_path) as ready:
        body = json.dumps({"title": "Release notes", "brief": "Say what changed"}).encode()
        request = urllib.request.Request(f"{ready['url']}/enqueue", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            task = json.load(answer)
        assert run(tmp_path, "task", "claim", task["id"], "--as", "ann", "--json").data["owner"] == "ann"
        with urllib.request.urlopen(f"{ready['url']}/inbox?agent_id=ann", timeout=5) as answer:
            assert [row["id"] for row in json.load(answer)["rows"]] == [task["id"]]
    assert (tmp_path / "pointsman.db").exists()
