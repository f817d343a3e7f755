"""P1 over HTTP: of 200 claimers of one task one wins, and N claimers of N tasks all win, every time, at two servers on one
database, also while somebody locks tasks and lets them go again unchanged."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import cycle
from threading import Barrier

import pytest

from acceptance.process import Served, running
from acceptance.v1 import FIELDS, PATIENCE_S, Speaker
from faults.mischief import Locker
from pointsman import Pointsman

CLAIMERS, RACERS, ROUNDS = 200, 24, 6
Won = list[list[str]]


@pytest.fixture
def servers(url: str) -> Iterator[list[Served]]:
    with running(url) as one, running(url) as other:
        yield [one, other]


def _race(servers: list[Served], claimers: int) -> Won:
    """What each got, all let go at once, each on a connection of its own."""
    gate = Barrier(claimers)

    def claim(number: int, served: Served) -> list[str]:
        with Speaker(served.url) as speaker:
            speaker.told("/healthz")
            gate.wait(PATIENCE_S)
            answer = speaker.ask("POST", "/v1/claims", f"claimer-{number}", {})
            assert answer.status == 200, answer
            return [task["id"] for task in answer.body["tasks"]]

    with ThreadPoolExecutor(claimers) as pool:
        return list(pool.map(claim, range(claimers), cycle(servers)))


def _one_owner_each(url: str, tasks: int) -> None:
    with Pointsman(url, create=False) as pm:
        entries = [entry for entry in pm.feed(limit=1000) if entry.event == "claim"]
        assert len({entry.task for entry in entries}) == len(entries) == tasks
        assert {entry.epoch for entry in entries} == {1}
        assert pm.doctor() == []
        assert pm.verify().ok


def test_of_two_hundred_claimers_of_one_task_one_wins(servers: list[Served], url: str) -> None:
    with Speaker(servers[0].url) as speaker:
        task = speaker.create().body["id"]
    assert sorted(_race(servers, CLAIMERS)) == [[]] * (CLAIMERS - 1) + [[task]]
    _one_owner_each(url, 1)


@pytest.mark.parametrize("locked", [False, True], ids=["alone", "beside somebody who locks and rolls back"])
def test_as_many_claimers_as_tasks_all_win(servers: list[Served], url: str, locked: bool) -> None:
    with Speaker(servers[0].url) as speaker:
        for _ in range(ROUNDS):
            body = {"tasks": [{"machine": "tasks", "fields": FIELDS}] * RACERS}
            made = speaker.ask("POST", "/v1/tasks/batch", "ann", body)
            assert made.status == 201, made
            with Locker(url) if locked else nullcontext() as locker:
                won = _race(servers, RACERS)
            assert sorted(won) == sorted([task["id"]] for task in made.body["tasks"])
            assert locker is None or locker.times
    _one_owner_each(url, ROUNDS * RACERS)
