"""P16: resume yields the last acknowledged checkpoint, under whichever epoch was then current, and the exact sets of finished,
doubtful and pending operations.

A process works through the ledger of a task and kills itself with SIGKILL at a crash point. What it was told is kept outside
the database. Only of the one call that was under way may resume say either; and what it says then, it says for good.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from pointsman import Pointsman, Refused, Task
from pointsman.engine.operations import Resumed
from pointsman.store import postgres_units, sqlite_commit
from promises import resuming
from promises.resuming import KINDS, ROUNDS, WORKER, Shipments

STATEMENTS = {
    **dict.fromkeys(("find_operation", "add_operation", "find_checkpoint", "put_checkpoint"), (1, 9)),
    **dict.fromkeys(("operation", "advance_operation"), (1, 8)),
    **dict.fromkeys(("add_entry", "add_payload", "add_request"), (1, 18)),
    "operations_alike": (1,),
}
"""Where a process dies, and at which passing."""
COMMITS = (1, 5, 12, 25)
SIDE_BY_SIDE = 3
DECLARED = frozenset({"label"})
Call = dict[str, Any]


@dataclass
class Model:
    """What whoever resumes must find, from what the process was told."""

    begun: dict[str, str] = field(default_factory=dict[str, str])
    ended: dict[str, str] = field(default_factory=dict[str, str])
    checkpoint: tuple[int, str] | None = None

    def told(self, call: Call) -> None:
        match call["did"]:
            case "begin":
                self.begun[call["name"]] = call["id"]
            case "finish":
                self.ended[call["name"]] = call["status"]
            case "checkpoint":
                self.checkpoint = call["number"], call["after"]
            case _:
                pass

    def finished(self) -> set[str]:
        return {name for name, status in self.ended.items() if status != "not_done"}

    def in_doubt(self) -> set[str]:
        return self.begun.keys() - self.ended.keys()

    def pending(self) -> set[tuple[str, str]]:
        again = {(name, "not_done") for name, status in self.ended.items() if status == "not_done"}
        declared = {(name, "declared") for name in DECLARED - self.begun.keys()}
        return again | declared | ({(f"after {self.checkpoint[1]}", "planned")} if self.checkpoint else set())


@dataclass
class Died:
    """A process that is gone: what it was told, and the call that it was about to make, if one was under way."""

    status: int
    task: str
    calls: list[Call]
    under_way: Call | None
    err: str

    def possible(self) -> list[Model]:
        """Without the call that was under way, and with it."""
        without, along = Model(), Model()
        for call in self.calls:
            without.told(call)
            along.told(call)
        if self.under_way is None:
            return [without]
        number = 1 if along.checkpoint is None else along.checkpoint[0] + 1
        along.told({"id": "", "number": number, **self.under_way})
        return [without, along]


def ran(url: str, crash_point: str, passings: int) -> Died:
    command = [sys.executable, resuming.__file__, url, crash_point, str(passings)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    lines = [json.loads(line) for line in done.stdout.splitlines(keepends=True) if line.endswith("\n")]
    told = [line for line in lines if line["word"] == "told"]
    last = lines[-1] if lines and lines[-1]["word"] == "about" else None
    return Died(done.returncode, next((line["task"] for line in told if line["did"] == "claim"), ""), told, last, done.stderr)


def found(facts: Resumed) -> tuple[Any, ...]:
    last = facts.checkpoint
    return (
        {item.name for item in facts.finished},
        {item.name for item, _ in facts.in_doubt},
        {(item.name, item.why) for item in facts.pending},
        None if last is None else (last.number, last.data["after"]),  # type: ignore[index, call-overload]
    )


def expected(model: Model) -> tuple[Any, ...]:
    return model.finished(), model.in_doubt(), model.pending(), model.checkpoint


@pytest.fixture
def board(url: str) -> Iterator[Pointsman]:
    with Pointsman(url, [Shipments]) as pm:
        yield pm


def audited(pm: Pointsman, died: Died) -> None:
    """What is found is what was told, before and after another owner took the task over."""
    before = pm.resume(died.task)
    assert found(before) in [expected(model) for model in died.possible()]
    ids = {item.name: item.id for item in (*before.finished, *(doubtful for doubtful, _ in before.in_doubt))}
    for call in died.calls:
        if call["did"] == "begin" and call["name"] in ids:
            assert ids[call["name"]] == call["id"]
    if before.checkpoint is not None:
        assert (before.checkpoint.epoch, before.checkpoint.by) == (before.task.epoch, WORKER)
    later = taken_over(pm, before.task)
    after = pm.resume(died.task)
    assert found(after) == found(before)
    assert after.checkpoint == before.checkpoint, "kept under the epoch in which it was written"
    assert {standing for _, standing in after.in_doubt} <= {"in_doubt"}
    assert later.epoch == before.task.epoch + 1
    gone_on(pm, later, after)


def taken_over(pm: Pointsman, task: Task) -> Task:
    """By somebody else, after its owner gave it back, as it does when its lease has run out."""
    pm.release(task.id, by=WORKER, epoch=task.epoch)
    found = pm.claim("shipments", by="worker-2", id=task.id)
    assert found is not None
    return found


def gone_on(pm: Pointsman, task: Task, facts: Resumed) -> None:
    """Nothing is repeated silently: whoever begins what is there is told how it stands, under the same id."""
    mine = {"by": "worker-2", "epoch": task.epoch}
    for item in facts.finished:
        again = pm.begin(task.id, item.name, kind=item.kind, request=item.request, **mine)
        assert (again.standing, again.operation.result) == (item.status, {"of": item.name})
    for item, _ in facts.in_doubt:
        declared = {"effect": item.effect} if item.effect else {"kind": item.kind, "request": item.request}
        again = pm.begin(task.id, item.name, **declared, **mine)  # type: ignore[arg-type]
        assert (again.standing, again.operation.id) == ("in_doubt", item.id)
        assert again.operation.attempt == (2 if item.kind in ("repeatable", "keyed") else 1)
    if facts.in_doubt:
        with pytest.raises(Refused) as refused:
            pm.propose(task.id, "send", **mine)
        assert refused.value.code == "operation_in_doubt"


def test_a_process_that_is_left_alone_leaves_what_it_was_told(board: Pointsman, url: str) -> None:
    """The control: without a crash it ends well, and every kind of fact is there."""
    board.create("shipments", {"order": "A-1"}, by="ann")
    done = ran(url, "", 0)
    assert (done.status, done.err, done.under_way) == (0, "", None)
    (model,) = done.possible()
    assert len(model.finished()) == len(KINDS) * (ROUNDS - 1) - 1
    assert model.in_doubt() == {f"{kind} {ROUNDS - 1}" for kind in KINDS} | DECLARED
    assert (f"keyed {ROUNDS - 2}", "not_done") in model.pending()
    audited(board, done)
    assert board.verify().ok


def test_kill_9_at_every_crash_point_of_the_ledger(board: Pointsman, url: str) -> None:
    """Several at once, each with a task of its own."""
    commits = sqlite_commit.POINTS if url.startswith("sqlite") else postgres_units.POINTS
    statements = {f"{side}:{name}": passings for name, passings in STATEMENTS.items() for side in ("before", "after")}
    deaths = [(point, passing) for point, listed in (statements | dict.fromkeys(commits, COMMITS)).items() for passing in listed]
    board.create_many("shipments", [{"order": f"A-{number}"} for number in range(len(deaths))], by="ann")
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        ended = list(pool.map(lambda death: ran(url, *death), deaths))
    alive = {death: died.err[-300:] for death, died in zip(deaths, ended, strict=True) if died.status != -signal.SIGKILL}
    assert alive == {}, "a crash point was not passed so often"
    assert all(died.under_way for died in ended), "each died in the middle of a call"
    for died in ended:
        audited(board, died)
    assert board.verify().ok
