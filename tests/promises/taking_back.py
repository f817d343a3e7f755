"""The work of P20: trips that are booked and taken back at a remote, by workers that kill themselves at the points they are told."""

import sys
from collections.abc import Callable

from acceptance.board import until
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
    minutes,
    owner,
    result,
    seconds,
)
from pointsman.kernel.operation import Operation
from promises.doomed import HERE, Doom, remote, serve

SENT = "sent"
"""The request has left, and nothing has come back."""
BOOKINGS = ("flight", "hotel", "mail")
TIMEOUT_S, LEASE_S, SETTLE_S = 1, 2, 1


class Trips(Machine, name="trips"):
    """`fatal` are the points at which whoever works on it dies, one after the other: of `booking`, or of what takes the bookings back."""

    fatal: str
    booking: bool
    left: list[str] | None = result()

    retry = Retry(tries=50)

    asked = State(initial=True)
    work = State(lease=minutes(5))
    undoing = State(lease=seconds(LEASE_S), on_lapse="same")
    booked = State(final=True)
    given_up = State(final=True, outcome="cancelled")

    take = Event(asked >> work, undoing >> undoing, acquires=True)
    complete = Event(work >> booked, by=owner)
    give_up = Event(work >> undoing, by=owner)
    end = Event(undoing >> given_up, by=owner, sets="left")

    cancel_flight = Effect("cancel_flight", during=undoing, request=(), kind="keyed")
    cancel_hotel = Effect("cancel_hotel", during=undoing, request=(), kind="lookup", settle=seconds(SETTLE_S))
    flight = Effect("flight", during=work, request=(), kind="keyed", undo=cancel_flight)
    hotel = Effect("hotel", during=work, request=(), kind="keyed", undo=cancel_hotel)
    mail = Effect("mail", during=work, request=(), kind="keyed")


class Waiting(Machine, name="waiting"):
    """Whoever works on it is held up between its two effects."""

    asked = State(initial=True)
    work = State(lease=minutes(5))
    booked = State(final=True)
    given_up = State(final=True, outcome="cancelled")
    take = Event(asked >> work, acquires=True)
    complete = Event(work >> booked, by=owner)
    flight = Effect("flight", during=work, request=(), kind="keyed")
    hotel = Effect("hotel", during=work, request=(), kind="keyed")


doom = Doom()
machines = [Trips, Waiting]
worker = Worker(probe=doom)


def sender(*, once: bool) -> Callable[[Operation], int]:
    return lambda operation: remote().act(operation.id, operation.name, once=once, sent=lambda: doom(SENT))


def find(operation: Operation) -> Finding:
    receipt = remote().find(operation.id)
    return NotFound if receipt is None else Found(receipt)


@worker.on("trips")
def book(work: Work) -> Outcome:
    if work.task.fields["booking"]:
        doom.of(work)
    for name in BOOKINGS:
        work.effect(name, sender(once=True), timeout_s=TIMEOUT_S)
    work.propose("give_up")
    return take_back(work)


@worker.on("waiting")
def wait(work: Work) -> Outcome:
    """One effect, a while, and another effect."""
    id = work.task.id
    try:
        work.effect("flight", sender(once=True), timeout_s=TIMEOUT_S)
        (HERE / f"at-{id}").touch()
        until("somebody says go", (HERE / f"go-{id}").exists, patience_s=60)
        work.effect("hotel", sender(once=True), timeout_s=TIMEOUT_S)
    finally:
        (HERE / f"left-{id}").touch()
    return work.propose("complete")


@worker.on("trips", state="undoing")
def take_back(work: Work) -> Outcome:
    doom.of(work)
    sends = {"cancel_flight": sender(once=True), "cancel_hotel": sender(once=False)}
    left = work.undo(sends, finds={"cancel_hotel": find}, timeout_s=TIMEOUT_S)
    return work.propose("end", {"left": [item.name for item in left]})


if __name__ == "__main__":
    serve(sys.argv[1], machines, worker)
