"""Leases are kept over a connection of their own: handlers that use up all others lose nothing by it."""

import threading
from contextlib import ExitStack

import pytest

from databases import PostgresServer
from pointsman import Event as Move
from pointsman import Machine, Outcome, Pointsman, Refused, State, Work, Worker, owner, seconds

ME = "worker-a"
PATIENCE_S = 20
HANDLERS, CONNECTIONS = 8, 2


class Jobs(Machine, name="jobs"):
    todo = State(initial=True)
    doing = State(lease=seconds(6))
    done = State(final=True)
    dropped = State(final=True, outcome="failed")
    take = Move(todo >> doing, acquires=True)
    finish = Move(doing >> done, by=owner)
    drop = Move((todo | doing) >> dropped)


class Hanging:
    """Holds every connection that a handler has, once told to, until it is let go."""

    def __init__(self) -> None:
        self.armed, self.leave = False, threading.Event()
        self.held = threading.Semaphore(0)

    def __call__(self, point: str) -> None:
        if self.armed and point == "transaction.begun" and threading.current_thread().name.startswith("pointsman-worker"):
            self.held.release()
            assert self.leave.wait(PATIENCE_S)


def test_eight_slow_handlers_and_two_connections_keep_every_lease(postgres: PostgresServer) -> None:
    hanging, begun = Hanging(), threading.Barrier(HANDLERS + 1)
    url = postgres.empty()
    with ExitStack() as stack:
        pm = stack.enter_context(Pointsman(url, [Jobs], probe=hanging, connections=CONNECTIONS))
        beside = stack.enter_context(Pointsman(url, [Jobs]))
        worker, ids = Worker(pm), [beside.create("jobs", {}, by="ann").id for _ in range(HANDLERS)]

        @worker.on("jobs")
        def handle(work: Work) -> Outcome:
            begun.wait(PATIENCE_S)
            if work.task.id not in ids[:CONNECTIONS]:
                assert hanging.leave.wait(PATIENCE_S)
            return work.propose("finish")

        worker.start(ME, concurrency=HANDLERS)
        until = dict.fromkeys(ids, 0)
        while not all(beside.get(id).held for id in ids):
            threading.Event().wait(0.05)
        hanging.armed = True
        begun.wait(PATIENCE_S)
        for _ in range(CONNECTIONS):
            assert hanging.held.acquire(timeout=PATIENCE_S)
        first = {id: lease_of(beside, id) for id in ids}
        while not all(until[id] > first[id] for id in ids):
            threading.Event().wait(0.2)
            until = {id: lease_of(beside, id) for id in ids}
        for id in ids:
            with pytest.raises(Refused, match="already_claimed"):
                beside.claim("jobs", by="worker-b", id=id)
        hanging.armed = False
        hanging.leave.set()
        for id in ids:
            assert beside.wait(id, states=["done"], timeout_s=PATIENCE_S).owner == ME
        worker.stop()


def lease_of(pm: Pointsman, id: str) -> int:
    lease = pm.get(id).lease
    assert lease is not None
    assert lease.live
    return lease.expires_at
