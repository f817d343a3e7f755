"""The work file of a fleet: jobs with short leases, limits, a deadline and a schedule, and what a worker does with each kind.

    plain   moves on once, then is finished
    flaky   the first attempt ends in an error
    timed   rests until its deadline finishes it
    falls   is given up
    wide    has children and waits for them; only callers over HTTP do those
    poison  kills with SIGKILL whoever works on it

What the store acknowledged is told to the file that FLEET_TOLD names: one line a change, written once it was answered.
"""

import json
import os
import signal
import threading
from typing import Any

from pointsman import Event, Limit, Machine, Outcome, Retry, Schedule, State, Task, Work, Worker, field, owner, seconds

LEASE_S, REST_S, PACE_S = 2, 1, 0.05
TRIES, PLACES, RATE = 4, 2, 40


class Jobs(Machine, name="jobs"):
    kind: str
    shelf: str = ""

    retry = Retry(tries=TRIES, base=seconds(0.1), cap=seconds(0.5))

    todo = State(initial=True)
    doing = State(lease=seconds(LEASE_S))
    resting = State(deadline=seconds(REST_S), on_deadline="wake")
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    dropped = State(final=True, outcome="cancelled")

    take = Event(
        todo >> doing,
        acquires=True,
        limits=(Limit("shelf", key=field.shelf, concurrent=PLACES), Limit("rate", per=seconds(1), max=RATE)),
    )
    step = Event(doing >> doing, by=owner)
    rest = Event(doing >> resting, by=owner)
    wake = Event(resting >> done)
    finish = Event(doing >> done, by=owner)
    give_up = Event(doing >> failed, by=owner)

    minutely = Schedule("* * * * *", fields={"kind": "timed", "shelf": "schedule"})


machines = [Jobs]
worker = Worker()

WAY = {"plain": ("step", "finish"), "flaky": ("finish",), "timed": ("rest",), "falls": ("give_up",), "wide": ("finish",)}
"""The events that lead a job of each kind to its end."""


def told(**line: Any) -> None:
    """One line, at once and whole, whoever else writes to the file."""
    file = os.open(os.environ["FLEET_TOLD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(line) + "\n").encode())
    os.close(file)


def pause() -> None:
    """Work takes a while; then whoever is to die or freeze does so in the middle of it."""
    threading.Event().wait(PACE_S)


def acknowledged(task: Task, event: str, by: str) -> None:
    told(what="done", task=task.id, version=task.version, epoch=task.epoch, event=event, by=by)


@worker.on("jobs")
def handle(work: Work) -> Outcome | None:
    kind, by = work.task.fields["kind"], work.task.owner or ""
    acknowledged(work.task, "take", by)
    if kind == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "flaky" and work.task.attempts.error == 0:
        raise ValueError("as told")
    outcome = None
    for event in WAY[kind]:
        pause()
        outcome = work.propose(event)
        acknowledged(work.task, event, by)
    return outcome
