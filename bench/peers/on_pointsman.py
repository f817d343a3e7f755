"""Ours, under the same orders as the peers: a machine of three states; a job is one task, claimed and finished, each step an entry."""

import tempfile
import time
from threading import Event as Signal
from threading import Semaphore

from driver import rate, say, start

from pointsman import Event, Machine, Outcome, Pointsman, State, Work, Worker, minutes, owner, seconds

AT_ONCE = 1_000
STEPS = 10
LEASE_S = 5
LOOK_S = 0.05


class Jobs(Machine, name="jobs"):
    version = 1
    queued = State(initial=True)
    running = State()
    done = State(final=True, outcome="failed")
    take = Event(queued >> running, acquires=True)
    finish = Event(running >> done, by=owner)


class Flow(Machine, name="flow"):
    version = 1
    queued = State(initial=True)
    running = State(lease=minutes(10))
    done = State(final=True, outcome="failed")
    take = Event(queued >> running, acquires=True)
    finish = Event(running >> done, by=owner)


class Stuck(Machine, name="stuck"):
    version = 1
    queued = State(initial=True)
    running = State(lease=seconds(LEASE_S))
    done = State(final=True, outcome="failed")
    take = Event(queued >> running, acquires=True)
    finish = Event(running >> done, by=owner)


def _opened(url: str) -> Pointsman:
    return Pointsman(url, [Jobs, Flow, Stuck])


def create(pm: Pointsman, count: int, machine: str = "jobs") -> None:
    """So many jobs at once."""
    for begun in range(0, count, AT_ONCE):
        pm.create_many(machine, [{}] * min(AT_ONCE, count - begun), by="bench")


def claim_and_finish(pm: Pointsman, batch: int, count: int) -> None:
    """`batch` jobs at a time: one by the verbs for one, more by those for many."""
    if batch == 1:
        for _ in range(count):
            one(pm)
        return
    while tasks := pm.claim_many("jobs", min(batch, count), by="bench"):
        pm.finish_many("finish", [(task.id, task.epoch, {}) for task in tasks], by="bench")


def one(pm: Pointsman) -> None:
    task = pm.claim("jobs", by="bench")
    assert task is not None
    pm.propose(task.id, "finish", by="bench", epoch=task.epoch)


def setup(url: str) -> None:
    _opened(url).close()


def enqueue(url: str, count: int) -> None:
    with _opened(url) as pm:
        began = time.perf_counter()
        create(pm, count)
        rate(count, began)
        claim_and_finish(pm, AT_ONCE, count)


def jobs(url: str, batch: int, count: int) -> None:
    with _opened(url) as pm:
        create(pm, count)
        began = time.perf_counter()
        claim_and_finish(pm, batch, count)
        rate(count, began)


def steps(url: str, callers: int, count: int) -> None:
    """Tasks of ten steps by a worker: each is claimed, its steps are remembered one by one, and it is finished."""
    flows, told = count // STEPS, Semaphore(0)
    with _opened(url) as pm:
        create(pm, flows, "flow")
        worker = Worker(pm)
        worker.told = lambda _: told.release()

        @worker.on("flow")
        def ten(work: Work) -> Outcome:
            assert sum(work.step(f"step {number}", lambda: 1) for number in range(STEPS)) == STEPS
            return work.propose("finish")

        began = time.perf_counter()
        worker.start("bench", concurrency=callers)
        for _ in range(flows):
            assert told.acquire(timeout=60)
        rate(flows * STEPS, began)
        worker.stop()


def steps_on_a_file(_url: str, callers: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        steps(f"sqlite:///{folder}/steps.db", callers, count)


def hang(url: str) -> None:
    with _opened(url) as pm:
        pm.create("stuck", {}, by="bench")
        pm.claim("stuck", by="first")
        say(started=True)
        Signal().wait()


def recover(url: str) -> None:
    """Claim the next task again and again, until the lease of the one that died has run out."""
    with _opened(url) as pm:
        while (task := pm.claim("stuck", by="second")) is None:
            Signal().wait(LOOK_S)
        pm.propose(task.id, "finish", by="second", epoch=task.epoch)
        say(again=True)


start(setup=setup, enqueue=enqueue, jobs=jobs, steps=steps, steps_on_a_file=steps_on_a_file, hang=hang, recover=recover)
