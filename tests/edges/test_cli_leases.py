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


def test_a_claim_waits_no_less_than_no_time(cli: Cli) -> None:
    cli("db", "migrate", "--create")
    cli("task", "create", "--as", "ann", "--arg", "title=t", "--arg", "brief=b")
    ended = cli("task", "claim", "--as", "w", "--wait-s", "-1")
    assert (ended.status, ended.err) == (2, "invalid: wait_s: must not be negative\n")
    assert cli("task", "claim", "--as", "w", "--wait-s", "0").status == 0


def test_giving_back_says_what_it_came_to(cli: Cli) -> None:
    task = _claimed(cli)
    mine = (str(task["id"]), "--as", "w", "--epoch", str(task["epoch"]), "--json")
    assert cli("task", "release", *mine, "--deferred", "--error").status == 2
    assert cli("task", "release", *mine, "--deferred").data["attempts"] == {"lost": 0, "error": 0, "deferred": 1}


def test_cancel_and_unpark(cli: Cli) -> None:
    task = _claimed(cli)
    assert cli("task", "cancel", str(task["id"]), "--as", "olga").status == 2
    ended = cli("task", "unpark", str(task["id"]), "--as", "olga", "--reason", "mended")
    assert (ended.status, ended.err.partition(":")[0]) == (3, "wrong_state")
    report = cli("task", "cancel", str(task["id"]), "--as", "olga", "--reason", "not wanted", "--cascade", "--json").data
    assert (report["task"]["state"], report["happened"]) == ("failed", [])
    other = _claimed(cli)
    assert cli("task", "cancel", str(other["id"]), "--as", "olga", "--reason", "no").out.startswith("cancelled: task")


def test_a_parked_task_is_put_back(cli: Cli) -> None:
    task = _claimed(cli)
    for _ in range(5):
        cli("task", "release", str(task["id"]), "--as", "w", "--epoch", str(task["epoch"]))
        task = json.loads(cli("task", "claim", "--as", "w", "--json").out or json.dumps(task))
    assert "parked" in cli("task", "show", str(task["id"])).out
    back = cli("task", "unpark", str(task["id"]), "--as", "olga", "--reason", "mended", "--json").data
    assert (back["parked"], back["attempts"]["lost"]) == (None, 0)


def test_a_task_that_waits_and_one_that_is_known(cli: Cli) -> None:
    first = str(_claimed(cli)["id"])
    asked = (
        "task",
        "create",
        "--as",
        "ann",
        "--arg",
        "title=t",
        "--arg",
        "brief=b",
        "--blocked-by",
        f"{first}:cancel",
        "--dedupe-key",
        "k",
    )
    made = cli(*asked, "--json").data
    assert made["blocked_by"] == [{"task": first, "on_failure": "cancel"}]
    assert cli(*asked).out.startswith(f"known: task {made['id']}")
    assert f"{first} (when it fails: cancel)" in cli("task", "show", made["id"]).out
    ended = cli("task", "claim", made["id"], "--as", "w")
    assert (ended.status, ended.err.partition(":")[0]) == (3, "blocked")
    child = ("task", "create", "--arg", "title=t", "--arg", "brief=b", "--as", "w", "--parent", first)
    assert cli(*child).status == 2
    assert cli(*child, "--epoch", "1", "--json").data["parent"] == first
    assert "1 open, 0 done" in cli("task", "show", first).out
