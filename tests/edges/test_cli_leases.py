"""`task renew` and `task release`: what an owner does about its lease."""

import json

from edges.cli import Cli
from pointsman import Pointsman


def _claimed(cli: Cli) -> dict[str, object]:
    Pointsman("sqlite:///pointsman.db").close()
    cli("task", "create", "--as", "ann", "--arg", "title=t", "--arg", "brief=b")
    return json.loads(cli("task", "claim", "--as", "w", "--json").out)


def test_renew_and_release(cli: Cli) -> None:
    task = _claimed(cli)
    mine = (str(task["id"]), "--as", "w", "--epoch", str(task["epoch"]), "--json")
    renewed = json.loads(cli("task", "renew", *mine, "--lease", "60").out)
    assert (renewed["version"], renewed["lease"]["live"]) == (task["version"], True)
    assert renewed["lease"]["expires_at"] < task["lease"]["expires_at"]  # type: ignore[index]
    released = json.loads(cli("task", "release", *mine, "--reason", "not mine after all").out)
    assert (released["state"], released["owner"], released["lease"]) == ("queued", None, None)
    assert json.loads(cli("task", "history", str(task["id"]), "--json").out)["entries"][-1]["reason"] == "not mine after all"


def test_a_stranger_and_an_old_epoch_are_refused(cli: Cli) -> None:
    task = _claimed(cli)
    for command in ("renew", "release"):
        ended = cli("task", command, str(task["id"]), "--as", "x", "--epoch", "1")
        assert (ended.status, ended.err.partition(":")[0]) == (3, "not_owner")
        ended = cli("task", command, str(task["id"]), "--as", "w", "--epoch", "7")
        assert (ended.status, ended.err.partition(":")[0]) == (3, "lease_lost")
        assert cli("task", command, str(task["id"])).status == 2
