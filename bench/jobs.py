"""Jobs with nothing to do, claimed and finished: one by one, or so many by one call each."""

from pathlib import Path

from bench import closure
from bench.python_api import BY, opened
from bench.table import Effort, Line, beside
from pointsman import Event, Machine, Pointsman, State, Tasks, minutes, owner

BATCHES = (1, 16, 100)
MADE = 1_000


class Jobs(Machine, name="jobs"):
    """Nothing to do: claimed and finished."""

    version = 1

    waiting = State(initial=True)
    working = State(lease=minutes(15))
    done = State(final=True)
    failed = State(final=True, outcome="failed")

    claim = Event(waiting >> working, acquires=True)
    finish = Event(working >> done, by=owner)
    fail = Event(working >> failed, by=owner)


def do(pm: Pointsman, batch: int) -> None:
    """So many jobs: by the verbs for one, or by those for many."""
    if batch == 1:
        task = pm.claim("jobs", by=BY)
        assert task is not None, "there are enough"
        pm.propose(task.id, "finish", by=BY, epoch=task.epoch)
        return
    tasks = pm.claim_many("jobs", batch, by=BY)
    assert tasks, "there are enough"
    pm.finish_many("finish", [(task.id, task.epoch, {}) for task in tasks], by=BY)


def on_sqlite(folder: Path, batch: int, effort: Effort) -> Line:
    """Made beforehand, and done by one caller."""
    with opened(folder, machines=[Jobs, Tasks]) as pm:
        for _ in range(round(6 * effort.seconds) + 1):
            pm.create_many("jobs", [{}] * MADE, by=BY)

        def rate() -> float:
            return batch * closure.rate([lambda: do(pm, batch)], effort.seconds / effort.rounds)

        name = "one by one" if batch == 1 else f"{batch} by one call each"
        return beside(
            f"Python API, no-op jobs, claimed and finished, {name}", lambda: closure.floor(folder, 1, effort.seconds), rate, effort
        )
