"""`pointsman hook`: add, see, test, remove; what could not be delivered, and again."""

import json
from pathlib import Path

import pytest

from edges.cli import Cli
from pointsman import Pointsman
from pointsman.engine.relaying import Answer, Inline, Relay
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.sinks import outlet
from pointsman.types import Instant

SECRETIVE = "https://hooks.example.org/services/T/B/canary"
DRAFT = "Release notes: the scheduler now shares its queue between six agents without double claims."


def relayed(answer: str | None = None) -> None:
    """What a server does once a second."""

    def no(hook: Hook, message: Message, now: Instant) -> Answer:
        return Answer("gone", answer or "")

    with Pointsman("sqlite:///pointsman.db") as pm:
        relay = Relay(pm.engine, outlet() if answer is None else lambda hook: no, Inline())
        while relay.run_once():
            pass
        relay.stop()


def submitted(cli: Cli, id: str) -> None:
    cli("task", "claim", id, "--as", "w")
    cli("task", "propose", id, "start_draft", "--as", "w", "--epoch", "1")
    assert cli("task", "propose", id, "request_approval", "--arg", f"draft={DRAFT}", "--as", "w", "--epoch", "1").status == 0


def test_a_hook_is_added_tested_told_and_removed(cli: Cli, id: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    made = cli("hook", "add", file.as_uri(), "--kind", "cloudevents", "--on", "approval_needed,parked", "--as", "olga", "--json").data
    assert (made["on"], made["to"], made["waiting"]) == (["approval_needed", "parked"], file.as_uri(), 0)
    assert "secret" not in made
    assert cli("hook", "test", made["id"]).out == "taken\n"
    submitted(cli, id)
    assert cli("hook", "list", "--json").data["hooks"][0]["waiting"] == 1
    relayed()
    test, told = [json.loads(line) for line in file.read_text().splitlines()]
    assert (test["type"], told["type"], told["subject"]) == ("pointsman.test", "pointsman.approval_needed", id)
    assert cli("hook", "remove", made["id"], "--as", "olga").out == f"removed: hook {made['id']}\n"
    assert cli("hook", "list", "--json").data == {"hooks": []}


def test_a_secret_is_shown_once(cli: Cli) -> None:
    made = cli("hook", "add", "https://example.org/hook", "--on", "parked", "--on", "in_doubt", "--as", "olga", "--json").data
    assert made["secret"].startswith("whsec_")
    rotated = cli("hook", "rotate", made["id"], "--as", "olga")
    assert "secret, shown this once: whsec_" in rotated.out
    assert made["secret"] not in rotated.out
    for said in (cli("hook", "list"), cli("hook", "list", "--json"), cli("hook", "dead"), cli("doctor"), cli("hook", "test", made["id"])):
        assert "whsec_" not in said.out + said.err


def test_the_path_of_a_url_is_not_shown(cli: Cli) -> None:
    added = cli("hook", "add", SECRETIVE, "--kind", "slack", "--on", "parked", "--as", "olga")
    assert added.out.endswith("to https://hooks.example.org/…\n")
    assert "canary" not in cli("hook", "list").out + cli("hook", "list", "--json").out


def test_what_could_not_be_delivered_is_listed_and_goes_out_again(cli: Cli, id: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    hook = cli("hook", "add", file.as_uri(), "--kind", "cloudevents", "--on", "approval_needed", "--as", "olga", "--json").data["id"]
    submitted(cli, id)
    assert cli("hook", "dead", "--json").data == {"lanes": []}
    relayed("HTTP 410")
    (lane,) = cli("hook", "dead", hook, "--json").data["lanes"]
    assert (lane["task"], lane["waiting"], lane["why"]) == (id, 1, "HTTP 410")
    assert cli("hook", "list", "--json").data["hooks"][0]["disabled_at"] is not None
    assert id in cli("hook", "dead").out
    assert cli("hook", "redrive", "--as", "olga").out == "redriven: 1 lanes\n"
    assert cli("hook", "dead", "--json").data == {"lanes": []}
    relayed()
    assert json.loads(file.read_text())["subject"] == id


BAD = [
    ("https://example.org/", "--as", "olga"),
    ("https://example.org/", "--on", "parked"),
    ("https://example.org/", "--on", "parties", "--as", "olga"),
    ("https://example.org/", "--on", ",", "--as", "olga"),
    ("https://169.254.169.254/latest", "--on", "parked", "--as", "olga"),
    ("file:///etc/passwd", "--on", "parked", "--as", "olga"),
    ("https://example.org/", "--kind", "fax", "--on", "parked", "--as", "olga"),
]


@pytest.mark.parametrize("said", BAD)
def test_what_does_not_fit_is_a_usage_error(cli: Cli, said: tuple[str, ...]) -> None:
    ended = cli("hook", "add", *said)
    assert (ended.status, ended.err.partition(":")[0]) == (2, "invalid")
    assert cli("hook", "list", "--json").data == {"hooks": []}


def test_what_is_unknown_is_not_found(cli: Cli) -> None:
    unknown = "01890000-0000-7000-8000-000000000000"
    for said in (("remove", unknown, "--as", "olga"), ("test", unknown), ("dead", unknown), ("redrive", unknown, "--as", "olga")):
        assert cli("hook", *said).status == 4


def test_a_test_that_is_not_taken_fails(cli: Cli, tmp_path: Path) -> None:
    hook = cli("hook", "add", tmp_path.as_uri(), "--kind", "cloudevents", "--on", "parked", "--as", "olga", "--json").data["id"]
    ended = cli("hook", "test", hook)
    assert (ended.status, ended.out) == (1, "not taken: it cannot be written (Is a directory)\n")
    made = cli("hook", "add", "call:mine", "--kind", "call", "--on", "parked", "--as", "olga", "--json").data["id"]
    assert cli("hook", "test", made).status == 2
