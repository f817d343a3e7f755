"""Ours, under the same orders as the peers: a machine of three states; a job is one task, claimed and finished, each step an entry."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Signal

from driver import rate, say, start

from pointsman import Event, Machine, Pointsman, State, owner
from pointsman.types import seconds

AT_ONCE = 1_000
LEASE_S = 5
LOOK_S = 0.05


class Jobs(Machine, name="jobs"):
    version = 1
    queued = State(initial=True)
    running = State()
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
    return Pointsman(url, [Jobs, Stuck])


def create(pm: Pointsman, count: int) -> None:
    """So many jobs at once."""
    for begun in range(0, count, AT_ONCE):
        pm.create_many("jobs", [{}] * min(AT_ONCE, count - begun), by="bench")


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
    """A durable step is one accepted event, with its entry."""
    with _opened(url) as pm, ThreadPoolExecutor(callers) as pool:
        create(pm, count)
        claimed = [task for _ in range(0, count, AT_ONCE) for task in pm.claim_many("jobs", min(AT_ONCE, count), by="bench")]
        began = time.perf_counter()
        list(pool.map(lambda task: pm.propose(task.id, "finish", by="bench", epoch=task.epoch), claimed))
        rate(count, began)


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


start(setup=setup, enqueue=enqueue, jobs=jobs, steps=steps, hang=hang, recover=recover)
