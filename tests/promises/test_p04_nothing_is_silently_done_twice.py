"""P4: when its process dies at any point, a `keyed` effect happens once as the remote sees it, a `lookup` effect is looked up before
anything is repeated, an `ask` effect waits for a person; nothing is silently retried.

The remote is a process of its own, and its book is the judge. Workers die by SIGKILL at every named point around intent, send and
record, each noted before it dies, so that a point that nobody reached fails a test.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from acceptance.board import Board, board, ended, until
from pointsman import Pointsman, Principal
from pointsman.types import seconds
from pointsman.worker.effects import slack_s
from promises.doomed import deaths, fleet
from promises.paying import KINDS, POINTS, SETTLE_S, TIMEOUT_S, Payments
from promises.remote import Remote, book, running, times
from promises.test_p03_a_replaced_owner_writes_nothing import rows

OLGA = Principal("olga", kind="person")
ONCE = tuple(point for point in POINTS if not point.startswith("find."))
"""The points that every payment passes."""
DOUBTFUL = ("intent.after", "send.before", "sent", "send.after", "outcome.before")
"""Whoever dies there leaves it open whether anything was sent."""
LOOKING = ("find.before", "find.after", "outcome.before", "outcome.after")
FATAL: dict[str, list[str]] = {
    "keyed": ["", *ONCE, "send.after,send.after", "send.before,outcome.before"],
    "lookup": [
        "",
        *ONCE,
        *(f"{first},{second}" for first in ("send.before", "send.after") for second in LOOKING),
        "intent.after,send.after",
    ],
    "ask": ["", *ONCE],
}
"""Of each kind, the points at which the workers of a payment die, one payment for each."""


@dataclass
class World:
    pm: Pointsman
    folder: Path
    ids: dict[tuple[str, str], str]

    def of(self, kind: str) -> dict[str, str]:
        return {id: fatal for (of, fatal), id in self.ids.items() if of == kind}

    def effect(self, id: str) -> Any:
        found = [shown for shown in self.pm.operations(id) if shown.operation.effect]
        return found[0] if found else None

    def settled(self, id: str) -> bool:
        """It is paid, or waits for a person."""
        task, effect = self.pm.get(id), self.effect(id)
        asks = effect is not None and effect.operation.kind == "ask" and effect.standing == "in_doubt" and task.run_at is not None
        return task.state == "paid" or (asks and task.owner is None)


@pytest.fixture(scope="module")
def world(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Every payment made by workers that die on the way, as far as that goes without a person."""
    folder = tmp_path_factory.mktemp("deaths")
    with Pointsman(shared_url, [Payments]) as pm, running(folder) as remote:
        ids = {(kind, fatal): pm.create("payments", {"kind": kind, "fatal": fatal}, by="ann").id for kind in KINDS for fatal in FATAL[kind]}
        with fleet("promises.paying", shared_url, folder, remote):
            made = World(pm, folder, ids)
            left = set(ids.values())
            until("all are settled", lambda: settle(made, left), patience_s=180)
        yield made
        assert pm.verify().ok


def settle(world: World, left: set[str]) -> bool:
    left -= {id for id in left if world.settled(id)}
    return not left


def test_a_worker_died_at_every_point_it_was_told_to(world: World) -> None:
    died = {id: deaths(world.folder, id) for id in world.ids.values()}
    assert died == {id: list(filter(None, fatal.split(","))) for (_, fatal), id in world.ids.items()}
    assert {point for points in died.values() for point in points} == set(POINTS)


def test_what_is_keyed_happens_once_as_the_remote_sees_it(world: World) -> None:
    for id, fatal in world.of("keyed").items():
        assert (world.pm.get(id).state, times(world.folder)[world.effect(id).operation.id]) == ("paid", 1), fatal


def test_what_is_looked_up_happens_neither_twice_nor_never(world: World) -> None:
    for id, fatal in world.of("lookup").items():
        task, operation = world.pm.get(id), world.effect(id).operation
        assert (task.state, times(world.folder)[operation.id]) == ("paid", 1), fatal
        receipts = [line["receipt"] for line in book(world.folder) if line["id"] == operation.id]
        assert receipts == [task.fields["receipt"]] == [operation.result], fatal


def test_not_found_counted_only_once_nothing_could_arrive_any_more(world: World) -> None:
    span = seconds(TIMEOUT_S + slack_s(TIMEOUT_S) + SETTLE_S)
    begun = [[entry.at for entry in world.pm.history(id) if entry.kind == "begin"] for id in world.of("lookup")]
    gaps = [after - before for times in begun for before, after in pairwise(times)]
    assert gaps
    assert min(gaps) >= span


def test_what_only_a_person_knows_waits_for_one_and_is_done_once(world: World, shared_url: str) -> None:
    asked = world.of("ask")
    for id, fatal in asked.items():
        waits = fatal in DOUBTFUL
        count = times(world.folder)[world.effect(id).operation.id]
        assert (world.pm.get(id).state, world.effect(id).standing) == (("asked", "in_doubt") if waits else ("paid", "succeeded")), fatal
        assert count == (0 if fatal in ("intent.after", "send.before") else 1), fatal
    with running(world.folder) as remote:
        for id, fatal in asked.items():
            if fatal in DOUBTFUL:
                operation = world.effect(id).operation
                known = [line["receipt"] for line in book(world.folder) if line["id"] == operation.id]
                world.pm.finish(operation.id, "succeeded" if known else "not_done", known[0] if known else None, by=OLGA)
        with fleet("promises.paying", shared_url, world.folder, remote):
            until("all are paid", lambda: all(world.pm.get(id).state == "paid" for id in asked))
    assert {times(world.folder)[world.effect(id).operation.id] for id in asked} == {1}
    answered = {id for id in asked for entry in world.pm.history(id) if entry.by == "olga"}
    assert answered == {id for id, fatal in asked.items() if fatal in DOUBTFUL}


FREEZING = """
import os
import pathlib
import threading

from pointsman import Effect, Event, Machine, State, Work, Worker, owner, result, seconds
from promises.remote import Remote

here = pathlib.Path(__file__).parent


class Jobs(Machine, name="jobs"):
    place: str
    receipt: int | None = result()
    todo = State(initial=True)
    doing = State(lease=seconds(2))
    done = State(final=True)
    dropped = State(final=True, outcome="failed")
    take = Event(todo >> doing, acquires=True)
    finish = Event(doing >> done, by=owner, sets="receipt")
    drop = Event((todo | doing) >> dropped)
    pay = Effect("pay", during=doing, request="place", kind="keyed")


worker = Worker()


@worker.on("jobs")
def handle(work: Work):
    def hang(place):
        if work.task.fields["place"] == place:
            (here / f"begun-{work.task.id}").write_text(place)
            while not (here / "go").exists():
                threading.Event().wait(0.02)
        return place

    def send(operation):
        hang("send")
        return Remote(int(os.environ["P4_PORT"])).act(operation.id, operation.request, once=True)

    work.step("load", hang, "step")
    receipt = work.effect("pay", send, timeout_s=1)
    return work.propose("finish", {"receipt": receipt})
"""


@contextmanager
def frozen(url: str, folder: Path, place: str) -> Iterator[tuple[Board, Remote, str, "subprocess.Popen[str]"]]:
    """A worker that stands still past its lease, in a step or just before it sends."""
    with running(folder) as remote, board(folder, url, FREEZING) as jobs:
        id = jobs.pm.create("jobs", {"place": place}, by="ann").id
        process = jobs.start("worker", "work.py", env={"P4_PORT": str(remote.port), "PYTHONPATH": os.pathsep.join(sys.path)})
        jobs.said(f"begun-{id}")
        process.send_signal(signal.SIGSTOP)
        yield jobs, remote, id, process


def woken(jobs: Board, id: str, process: "subprocess.Popen[str]") -> None:
    """It goes on, hears that its lease is lost, and stops by itself."""
    process.send_signal(signal.SIGCONT)
    jobs.file("go").touch()
    assert process.stdout is not None
    line = until("it told what came of it", lambda: next((line for line in process.stdout or () if id in line), None))
    assert "lost, it is" in line
    process.send_signal(signal.SIGTERM)
    status, _, err = ended(process)
    assert (status, f"task {id} is lost" in err) == (0, True)


def test_one_that_was_frozen_and_replaced_changes_nothing(url: str, tmp_path: Path) -> None:
    with frozen(url, tmp_path, "step") as (jobs, _, id, process):
        jobs.taken_over(id)
        jobs.pm.history(id)
        before = rows(url)
        woken(jobs, id, process)
        assert rows(url) == before
        assert not (tmp_path / "book.jsonl").read_text()


def test_one_that_was_frozen_just_before_it_sends_is_covered_by_its_key(url: str, tmp_path: Path) -> None:
    with frozen(url, tmp_path, "send") as (jobs, remote, id, process):
        taken = jobs.taken_over(id)
        again = jobs.pm.begin(id, "pay", effect="pay", by="worker-b", epoch=taken.epoch)
        assert again.standing == "in_doubt"
        receipt = remote.act(again.operation.id, again.operation.request, once=True)
        jobs.pm.finish(again.operation.id, "succeeded", receipt, by="worker-b", epoch=taken.epoch)
        jobs.pm.history(id)
        before = rows(url)
        woken(jobs, id, process)
        assert rows(url) == before
        assert times(tmp_path) == {again.operation.id: 1}
