"""P13: a task that kills whoever works on it is parked after its cap of attempts, and the rest get done.

Workers are real processes; a supervisor starts another one for each that dies, as one would in production.
"""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from acceptance.cli import COMMAND, environment
from pointsman import Pointsman
from pointsman.app import machines

TRIES, OTHERS, MOST_DEATHS = 3, 6, 8
WORK = f"""
import os
import signal

from pointsman import Event, Machine, Outcome, Retry, State, Work, Worker, owner, seconds


class Jobs(Machine, name="jobs"):
    deadly: bool = False
    retry = Retry(tries={TRIES})
    todo = State(initial=True)
    doing = State(lease=seconds(1))
    done = State(final=True)
    dropped = State(final=True, outcome="failed")
    take = Event(todo >> doing, acquires=True)
    finish = Event(doing >> done, by=owner)
    drop = Event(todo >> dropped)


worker = Worker()


@worker.on("jobs")
def handle(work: Work) -> Outcome:
    if work.task.fields["deadly"]:
        os.kill(os.getpid(), signal.SIGKILL)
    return work.propose("finish")
"""


@pytest.fixture
def pm(url: str, tmp_path: Path) -> Iterator[Pointsman]:
    work = tmp_path / "work.py"
    work.write_text(WORK)
    with Pointsman(url, machines(work)) as opened:
        yield opened
        assert opened.verify().ok


def work(folder: Path, url: str) -> "subprocess.Popen[bytes]":
    env = environment({"POINTSMAN_DB": url, "POINTSMAN_AS": "worker-a"})
    return subprocess.Popen([*COMMAND, "worker", "work.py"], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_task_that_kills_its_workers_is_parked_and_the_rest_get_done(pm: Pointsman, url: str, tmp_path: Path) -> None:
    deadly = pm.create("jobs", {"deadly": True}, by="ann", priority=1).id
    others = [pm.create("jobs", {}, by="ann").id for _ in range(OTHERS)]
    deaths = 0
    process = work(tmp_path, url)
    try:
        while not (pm.get(deadly).parked and all(pm.get(id).state == "done" for id in others)):
            if process.poll() is not None:
                assert process.returncode == -signal.SIGKILL
                deaths += 1
                assert deaths <= MOST_DEATHS, "it goes on for ever"
                process = work(tmp_path, url)
            pm.wait(deadly, version=pm.get(deadly).version, timeout_s=0.2)
    finally:
        process.terminate()
        process.wait()
    task = pm.get(deadly)
    assert deaths == TRIES
    assert task.parked is not None
    assert (task.attempts.lost, task.parked.reason) == (TRIES, f"tried {TRIES} times without a result: {TRIES} lost, 0 in error")
    assert pm.claim("jobs", by="worker-b") is None, "nobody is given it again"
    freed = pm.unpark(deadly, by="olga", reason="mended")
    assert (freed.parked, freed.attempts.counted) == (None, 0)
