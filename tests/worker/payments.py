"""A machine whose owner pays: one declared effect for every rule of repetition, and a lease as long as none of their timeouts."""

from collections.abc import Callable
from typing import Any

from pointsman import Effect, Event, Finding, Machine, NonBlank, NotFound, State, minutes, owner, result, seconds
from pointsman.kernel.operation import Operation


class Payments(Machine, name="payments"):
    order: NonBlank
    amount: int
    receipt: str | None = result()

    asked = State(initial=True)
    paying = State(lease=minutes(5))
    brief = State(lease=seconds(10), max_hold=seconds(40), on_lapse="same")
    waiting = State()
    paid = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> paying, brief >> brief, acquires=True)
    hurry = Event(paying >> brief, by=owner)
    wait = Event(paying >> waiting, by=owner)
    complete = Event((paying | brief) >> paid, by=owner, sets="receipt")
    drop = Event((asked | paying | brief | waiting) >> dropped)

    keyed = Effect("keyed", during=paying | brief | waiting, request=("order", "amount"), kind="keyed")
    lookup = Effect("lookup", during=paying | brief, request=("order", "amount"), kind="lookup", settle=minutes(10))
    ask = Effect("ask", during=paying, request="order", kind="ask")


class Remote:
    """What a remote got, in order, by operation id. `broken` is raised once something has arrived, `knows` answers `find`."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.requests: list[Any] = []
        self.looked = 0
        self.broken: Exception | None = None
        self.knows: Callable[[Operation], Finding] = lambda _: NotFound

    def send(self, operation: Operation) -> str:
        self.got.append(operation.id)
        self.requests.append(operation.request)
        if self.broken is not None:
            raise self.broken
        return f"receipt {len(self.got)}"

    def find(self, operation: Operation) -> Finding:
        self.looked += 1
        return self.knows(operation)
