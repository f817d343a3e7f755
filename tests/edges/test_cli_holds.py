"""`pointsman hold`: place, see, lift; and the setting that says how fast a backlog is let go."""

import pytest

from edges.cli import Cli

DOWN = ("--reason", "the provider is down", "--as", "olga")


def test_a_hold_stops_claims_until_it_is_lifted(cli: Cli, id: str) -> None:
    hold = cli("hold", "add", "--event", "claim", "--state", "queued", *DOWN, "--json").data
    assert (hold["match"], hold["placed"]["by"], hold["release_per_s"]) == ({"event": "claim", "state": "queued"}, "olga", 10)
    refused = cli("task", "claim", id, "--as", "w")
    assert (refused.status, refused.err.partition(":")[0]) == (3, "held")
    assert "the provider is down" in refused.err
    told = cli("task", "claim", id, "--as", "w", "--json").refusal
    assert (told["code"], told["hold"]) == ("held", hold["id"])
    assert cli("task", "claim", "--as", "w").status == 3
    assert hold["id"] in cli("hold", "list").out
    assert cli("hold", "lift", hold["id"], "--as", "olga").out.startswith(f"lifted: hold {hold['id']} on event claim, state queued")
    assert cli("hold", "list", "--json").data["holds"][0]["lifted"]["by"] == "olga"
    assert cli("task", "claim", id, "--as", "w").status == 0


def test_a_hold_has_times_and_a_rate(cli: Cli) -> None:
    times = ("--from", "2030-01-01T00:00:00Z", "--until", "2030-01-02T00:00:00+01:00", "--release-per-s", "2")
    assert cli("hold", "add", "--tag", "gpu", *DOWN, *times).out.startswith("placed: hold ")
    (hold,) = cli("hold", "list", "--json").data["holds"]
    assert (hold["from"], hold["until"], hold["release_per_s"]) == ("2030-01-01T00:00:00.000000Z", "2030-01-01T23:00:00.000000Z", 2)


def test_the_rate_is_a_setting(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_RELEASE_PER_S", "25")
    assert cli("hold", "add", "--tag", "gpu", *DOWN, "--json").data["release_per_s"] == 25
    monkeypatch.setenv("POINTSMAN_RELEASE_PER_S", "0")
    assert cli("hold", "list").status == 2


BAD = [
    ("--tag", "gpu", "--as", "olga"),
    DOWN,
    ("--tag", "gpu", "--reason", " ", "--as", "olga"),
    ("--tag", "gpu", "--reason", "x"),
    ("--event", "fly", *DOWN),
    ("--state", "flying", *DOWN),
    ("--tag", "gpu", "--from", "yesterday", *DOWN),
    ("--tag", "gpu", "--until", "2020-01-01T00:00:00Z", *DOWN),
    ("--tag", "gpu", "--release-per-s", "0", *DOWN),
]


@pytest.mark.parametrize("said", BAD)
def test_what_does_not_fit_is_a_usage_error(cli: Cli, said: tuple[str, ...]) -> None:
    ended = cli("hold", "add", *said)
    assert (ended.status, ended.err.partition(":")[0]) == (2, "invalid")
    assert cli("hold", "list", "--json").data == {"holds": []}


def test_what_is_unknown_is_not_found(cli: Cli) -> None:
    assert cli("hold", "add", "--machine", "letters", *DOWN).status == 4
    assert cli("hold", "lift", "01890000-0000-7000-8000-000000000000", "--as", "olga").status == 4


def test_show_says_what_a_task_waits_for(cli: Cli, id: str) -> None:
    assert "waits for  owner: anyone, since " in cli("task", "show", id).out
