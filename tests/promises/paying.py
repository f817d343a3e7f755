"""The work file of P4: payments at a remote, one kind of effect each, by workers that kill themselves at the points they are told.

Run as a program it is a fleet of one: it forks a worker, and another one whenever that was killed, until the file `enough` is there.
"""

import os
import signal
import sys
import threading
from pathlib import Path

from pointsman import (
    Effect,
    Event,
    Finding,
    Found,
    Machine,
    NotFound,
    Outcome,
    Pointsman,
    Retry,
    State,
    Work,
    Worker,
    owner,
    result,
    seconds,
)
from pointsman.kernel.operation import Operation
from pointsman.worker.owned import POINTS as WORKERS
from promises.remote import Remote

KINDS = ("keyed", "lookup", "ask")
SENT = "sent"
"""The request has left, and nothing has come back."""
POINTS = (*WORKERS, SENT)
TIMEOUT_S, LEASE_S, SETTLE_S = 1, 2, 1
HERE = Path(os.environ.get("P4_FOLDER", "."))
"""Where deaths are noted, one file each: the task, which death of its own, the point."""


class Payments(Machine, name="payments"):
    """`fatal` are the points at which whoever works on it dies, one after the other."""

    kind: str
    fatal: str
    receipt: int | None = result()

    retry = Retry(tries=50)

    asked = State(initial=True)
    paying = State(lease=seconds(LEASE_S))
    paid = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> paying, acquires=True)
    complete = Event(paying >> paid, by=owner, sets="receipt")
    drop = Event((asked | paying) >> dropped)

    keyed = Effect("keyed", during=paying, request="fatal", kind="keyed")
    lookup = Effect("lookup", during=paying, request="fatal", kind="lookup", settle=seconds(SETTLE_S))
    ask = Effect("ask", during=paying, request="fatal", kind="ask")


class Doom:
    """Where the task in hand kills its worker next, and whether it was there."""

    task = ""
    points: tuple[str, ...] = ()

    def of(self, work: Work) -> None:
        points = tuple(filter(None, work.task.fields["fatal"].split(",")))
        self.task, self.points = work.task.id, points[len(deaths(HERE, work.task.id)) :]

    def __call__(self, point: str) -> None:
        if self.points and point == self.points[0]:
            number = len(deaths(HERE, self.task))
            file = os.open(HERE / f"{self.task} {number} {point}", os.O_CREAT | os.O_EXCL)
            os.fsync(file)
            os.kill(os.getpid(), signal.SIGKILL)


def deaths(folder: Path, task: str) -> list[str]:
    """The points at which workers on a task died, in order."""
    named = sorted((path.name.split(" ")[1:] for path in folder.glob(f"{task} *")), key=lambda parts: int(parts[0]))
    return [point for _, point in named]


doom = Doom()
machines = [Payments]
worker = Worker(probe=doom)


@worker.on("payments")
def pay(work: Work) -> Outcome:
    doom.of(work)
    kind, remote = work.task.fields["kind"], Remote(int(os.environ["P4_PORT"]))

    def send(operation: Operation) -> int:
        return remote.act(operation.id, operation.request, once=kind == "keyed", sent=lambda: doom(SENT))

    def find(operation: Operation) -> Finding:
        receipt = remote.find(operation.id)
        return NotFound if receipt is None else Found(receipt)

    work.step("load", lambda: {"kind": kind})
    receipt = work.effect(kind, send, find=find, timeout_s=TIMEOUT_S)
    return work.propose("complete", {"receipt": receipt})


def _work(url: str) -> None:
    with Pointsman(url, machines, duties=True) as pm:
        worker.bind(pm)
        worker.start("fleet")
        while not (HERE / "enough").exists():
            threading.Event().wait(0.05)
        worker.stop()


def _fleet(url: str) -> None:
    while True:
        child = os.fork()
        if child == 0:
            _work(url)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    _fleet(sys.argv[1])
