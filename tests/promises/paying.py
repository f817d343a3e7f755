"""The work of P4: payments at a remote, one kind of effect each, by workers that kill themselves at the points they are told."""

import sys

from pointsman import (
    Effect,
    Event,
    Finding,
    Found,
    Machine,
    NotFound,
    Outcome,
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
from promises.doomed import Doom, remote, serve

KINDS = ("keyed", "lookup", "ask")
SENT = "sent"
"""The request has left, and nothing has come back."""
POINTS = (*WORKERS, SENT)
TIMEOUT_S, LEASE_S, SETTLE_S = 1, 2, 1


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


doom = Doom()
machines = [Payments]
worker = Worker(probe=doom)


@worker.on("payments")
def pay(work: Work) -> Outcome:
    doom.of(work)
    kind, bank = work.task.fields["kind"], remote()

    def send(operation: Operation) -> int:
        return bank.act(operation.id, operation.request, once=kind == "keyed", sent=lambda: doom(SENT))

    def find(operation: Operation) -> Finding:
        receipt = bank.find(operation.id)
        return NotFound if receipt is None else Found(receipt)

    work.step("load", lambda: {"kind": kind})
    receipt = work.effect(kind, send, find=find, timeout_s=TIMEOUT_S)
    return work.propose("complete", {"receipt": receipt})


if __name__ == "__main__":
    serve(sys.argv[1], machines, worker)
