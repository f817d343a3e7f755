"""A reader of the feed who is cut at random sees every entry once and in order, while eight writers commit; and a server
that stops does not wait for its readers."""

import random
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from acceptance.process import Served, serving
from acceptance.v1 import PATIENCE_S, Feed, Speaker
from pointsman import Pointsman

WRITERS, ROUNDS = 8, 12


def _written(served: Served, number: int) -> None:
    """Half of the writers speak HTTP, half share the file as programs do."""
    if number % 2:
        with Speaker(served.url) as speaker:
            for _ in range(ROUNDS):
                speaker.lead("claimed")
    else:
        with Pointsman(served.db) as pm:
            for _ in range(ROUNDS):
                task = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
                pm.claim("tasks", by=f"w{number}", id=task.id)


def _cut_at_random(served: Served, chance: random.Random, writing: list[Future[None]]) -> tuple[list[tuple[int, dict[str, Any]]], int]:
    """What a reader saw who takes a few bytes at a time and drops the connection every now and then."""
    seen, cuts, wanted = list[tuple[int, dict[str, Any]]](), 0, WRITERS * ROUNDS * 2
    until = time.monotonic() + 2 * PATIENCE_S
    while len(seen) < wanted or not all(writer.done() for writer in writing):
        assert time.monotonic() < until, f"saw {len(seen)} of {wanted}"
        with Feed(served, seen[-1][0] if seen else None) as feed:
            for _ in range(chance.randint(1, 12)):
                if len(seen) < wanted:
                    seen += feed.events(chance.randint(1, 3_000))
        cuts += 1
    return seen, cuts


def test_every_entry_comes_once_and_in_order(tmp_path: Path) -> None:
    with serving(tmp_path) as served, ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(_written, served, number) for number in range(WRITERS)]
        seen, cuts = _cut_at_random(served, random.Random(7), writing)
        assert all(writer.exception() is None for writer in writing)
        with Pointsman(served.db) as pm:
            recorded = [(entry.seq, entry.as_json()) for entry in pm.feed(limit=1_000)]
            assert pm.verify().ok
    assert cuts >= 5, "or nothing was cut"
    assert [number for number, _ in seen] == list(range(1, len(recorded) + 1))
    assert seen == recorded


def test_readers_beside_one_another_see_the_same(tmp_path: Path) -> None:
    with serving(tmp_path) as served, ThreadPoolExecutor(WRITERS) as pool:
        writing = [pool.submit(_written, served, number) for number in range(2)]
        reading = [pool.submit(_cut_at_random_until, served, random.Random(seed), 2 * ROUNDS * 2) for seed in range(6)]
        assert all(writer.exception() is None for writer in writing)
        numbers = [reader.result(PATIENCE_S) for reader in reading]
    assert numbers == [list(range(1, 2 * ROUNDS * 2 + 1))] * 6


def _cut_at_random_until(served: Served, chance: random.Random, wanted: int) -> list[int]:
    seen = list[int]()
    while len(seen) < wanted:
        with Feed(served, seen[-1] if seen else None) as feed:
            for _ in range(chance.randint(1, 20)):
                if len(seen) < wanted:
                    seen += [number for number, _ in feed.events(chance.randint(1, 4_000))]
    return seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_stops_ends_its_streams(tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path) as served, Feed(served) as reader, Speaker(served.url) as speaker:
        speaker.create()
        assert [number for number, _ in _until_some(reader)] == [1]
        served.process.send_signal(number)
        with pytest.raises(EOFError):
            _drain(reader)
        _, told = served.process.communicate(timeout=10)  # it does not wait for its readers
        assert (served.process.returncode, "Traceback" in told) == (0, False)


def _drain(reader: Feed) -> None:
    while True:
        list(reader.events())


def _until_some(reader: Feed) -> list[tuple[int, Any]]:
    while True:
        if events := list(reader.events()):
            return events
