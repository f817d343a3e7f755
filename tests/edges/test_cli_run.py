"""`run` and `worker`: what is wrong with their arguments is told before any task is taken."""

import pytest

from edges.cli import Cli


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "Missing argument"),
        (("--wait-s", "nan", "--", "true"), "--wait-s: must be from 0"),
        (("--wait-s", "-1", "--", "true"), "--wait-s: must be from 0"),
        (("--grace", "inf", "--", "true"), "--grace: must be from 0 to 86400 seconds"),
        (("--lease-s", "0.5", "--", "true"), "lease_s: must be from 1 to 86400 seconds"),
        (("--machine", "articles", "--", "true"), "unknown_machine"),
        (("--", "no-such-program"), "COMMAND: there is no program no-such-program"),
    ],
)
def test_run(cli: Cli, id: str, argv: tuple[str, ...], said: str) -> None:
    ended = cli("run", "--as", "w", *argv)
    assert (ended.status in (2, 4), said in ended.err, ended.err.count("\n")) == (True, True, 1), ended.err
    assert cli("task", "show", id, "--json").data["version"] == 1


def test_only_what_suits_is_taken(cli: Cli, id: str) -> None:
    work = ("--arg", "title=t", "--arg", "brief=b", "--as", "ann", "--json")
    wanted = cli("task", "create", *work, "--tag", "docs", "--need", "gpu").data["id"]
    ended = cli("run", "--as", "w", "--tag", "docs", "--", "true")
    assert (ended.status, "nothing_to_claim" in ended.err) == (3, True)
    ended = cli("run", "--as", "w", "--tag", "docs", "--capability", "gpu", "--", "true")
    assert ended.status == 0
    assert (cli("task", "show", wanted, "--json").data["version"], cli("task", "show", id, "--json").data["version"]) == (3, 1)


@pytest.mark.parametrize(
    ("argv", "said"), [(("--grace", "nan"), "--grace: must"), (("--concurrency", "65"), "concurrency"), ((), "name the file")]
)
def test_worker(cli: Cli, argv: tuple[str, ...], said: str) -> None:
    ended = cli("worker", "--as", "w", *argv)
    assert (ended.status, said in ended.err) == (2, True), ended.err


def test_both_want_to_know_who_acts(cli: Cli) -> None:
    for argv in (("run", "--", "true"), ("worker", "work.py")):
        ended = cli(*argv)
        assert (ended.status, "say who acts" in ended.err) == (2, True)
