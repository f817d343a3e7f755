"""A process that works through the ledger of one task, and says on stdout what it is about to do and what it was told.

    python resuming.py URL CRASH_POINT PASSINGS

It claims a task that waits, and kills itself with SIGKILL when it has then passed the crash point so many times; "" lets it live.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from pointsman import Effect, Event, Machine, Pointsman, State, minutes, owner

WORKER = "worker-1"
ROUNDS = 3
KINDS = ("repeatable", "keyed", "lookup", "ask")


class Shipments(Machine, name="shipments"):
    order: str
    waiting = State(initial=True)
    packing = State(lease=minutes(10))
    sent = State(final=True)
    dropped = State(final=True, outcome="failed")
    take = Event(waiting >> packing, acquires=True)
    send = Event(packing >> sent, by=owner)
    drop = Event((waiting | packing) >> dropped)
    label = Effect("label", during=packing, request="order", kind="lookup", settle=minutes(1))


def says(word: str, **what: Any) -> None:
    print(json.dumps({"word": word, **what}), flush=True)


class Ledger:
    """The calls, each announced before and acknowledged after it."""

    def __init__(self, pm: Pointsman, task: str, epoch: int):
        self.pm, self.task, self.mine = pm, task, {"by": WORKER, "epoch": epoch}

    def begin(self, name: str, **more: Any) -> str:
        says("about", did="begin", name=name)
        found = self.pm.begin(self.task, name, **self.mine, **more).operation.id
        says("told", did="begin", name=name, id=found)
        return found

    def finish(self, name: str, operation: str, status: Any) -> None:
        says("about", did="finish", name=name, status=status)
        self.pm.finish(operation, status, {"of": name}, **self.mine)
        says("told", did="finish", name=name, status=status)

    def checkpoint(self, after: str) -> None:
        says("about", did="checkpoint", after=after)
        number = self.pm.checkpoint(self.task, {"after": after}, plan=[{"name": f"after {after}"}], **self.mine).number
        says("told", did="checkpoint", after=after, number=number)


def work(ledger: Ledger) -> None:
    """Of every kind some that are finished, one that failed, one that was not done, and one that is left begun."""
    for number in range(ROUNDS):
        for kind in KINDS:
            name = f"{kind} {number}"
            operation = ledger.begin(name, kind=kind, request={"number": number})
            ledger.checkpoint(name)
            if number < ROUNDS - 1:
                ledger.finish(name, operation, "succeeded" if number == 0 else "not_done" if kind == "keyed" else "failed")
    ledger.begin("label", effect="label")


def main(url: str, crash_point: str, passings: int) -> None:
    left, claimed = passings, False

    def killing(point: str) -> None:
        nonlocal left
        left -= claimed and point == crash_point
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    probe: Callable[[str], None] | None = killing if crash_point else None
    with Pointsman(url, [Shipments], probe=probe) as pm:
        task = pm.claim("shipments", by=WORKER)
        assert task is not None
        says("told", did="claim", task=task.id, epoch=task.epoch)
        claimed = True
        work(Ledger(pm, task.id, task.epoch))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
