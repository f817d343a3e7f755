"""A refund, end to end: pay it, note it on the ticket, mail the customer, order a letter. Each is an effect on a service that is
somebody else's, and each is declared with what may be done when nobody knows whether it happened.

The lab runs this file as workers and kills them. LAB_REMOTE is the service's address. LAB_DIE, such as "send.after:ticket", is where this
process kills itself; LAB_WAY is how it works: "ledger" as it should be done, "blind" and "guess" as it is done without.
"""

import json
import os
import signal
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from pointsman import (
    Effect,
    Event,
    Found,
    Machine,
    NonBlank,
    NotFound,
    Outcome,
    State,
    Work,
    Worker,
    note,
    optional,
    owner,
    result,
    role,
    seconds,
)
from pointsman.types import Json

REMOTE, DIE, WAY, TAG = (
    os.environ.get(name, usual) for name, usual in (("LAB_REMOTE", ""), ("LAB_DIE", ""), ("LAB_WAY", "ledger"), ("LAB_TAG", ""))
)
TIMEOUT_S = 1


class Refunds(Machine, name="refunds"):
    """Money back for an order, and everybody told."""

    order: NonBlank
    cents: int
    customer: NonBlank
    doing: str | None = note()
    receipt: dict[str, int] | None = result()

    asked = State(initial=True)
    paying = State(lease=seconds(3))
    done = State(final=True)
    dropped = State(final=True, outcome="cancelled")

    take = Event(asked >> paying, acquires=True)
    say = Event(paying >> paying, by=owner, sets=optional("doing", None))
    complete = Event(paying >> done, by=owner, sets="receipt")
    drop = Event((asked | paying) >> dropped, by=role("operator"))

    refund = Effect("refund", during=paying, request=("order", "cents"), kind="lookup", settle=seconds(1))
    ticket = Effect("ticket", during=paying, request=("order", "customer"), kind="lookup", settle=seconds(1))
    mail = Effect("mail", during=paying, request=("order", "customer", "cents"), kind="keyed")
    letter = Effect("letter", during=paying, request=("order", "customer"), kind="ask")


EFFECTS = ("refund", "ticket", "mail", "letter")
machines = [Refunds]


def post(kind: str, reference: str, request: Json) -> Json:
    """Send it. Whatever goes wrong on the way leaves open whether it arrived."""
    body = json.dumps({"reference": reference, "request": request}).encode()
    with urlopen(Request(f"{REMOTE}/{kind}", body, {"Content-Type": "application/json"}), timeout=TIMEOUT_S) as answer:
        return json.load(answer)["id"]


def looked_up(kind: str, reference: str) -> Found | NotFound:
    with urlopen(f"{REMOTE}/{kind}?reference={quote(reference)}", timeout=TIMEOUT_S) as answer:
        found = json.load(answer)
    return Found(found[0]["id"]) if found else NotFound()


class Doom:
    """Kills this process at one point of one effect, or nowhere."""

    def __init__(self, where: str):
        self.point, _, self.effect = where.partition(":")
        self.now = ""

    def __call__(self, point: str) -> None:
        if point == self.point and self.effect in ("", self.now):
            os.kill(os.getpid(), signal.SIGKILL)


doom = Doom(DIE)
worker = Worker(probe=doom)


@worker.on("refunds", tags=[TAG] if TAG else [])
def handle(work: Work) -> Outcome:
    return {"ledger": by_ledger, "blind": blindly, "guess": by_guess}[WAY](work)


def by_ledger(work: Work) -> Outcome:
    """Each effect is written down before it is sent and after; what a worker that died leaves open is settled by its kind."""
    work.step("load the order", load, work.task.fields["order"])
    receipts: dict[str, Any] = {}
    for effect in EFFECTS:
        doom.now = effect

        def send(op: Any, effect: str = effect) -> Json:
            return post(effect, op.id, op.request)

        def find(op: Any, effect: str = effect) -> Found | NotFound:
            return looked_up(effect, op.id)

        receipts[effect] = work.effect(effect, send, find=find if effect in ("refund", "ticket") else None, timeout_s=TIMEOUT_S)
    return work.propose("complete", {"receipt": receipts})


def load(order: str) -> str:
    return f"the order {order}"


def blindly(work: Work) -> Outcome:
    """Begin from the beginning, as a queue does that delivers at least once."""
    receipts = {effect: directly(work, effect) for effect in EFFECTS}
    return work.propose("complete", {"receipt": receipts})


def by_guess(work: Work) -> Outcome:
    """Read what the last one wrote, and judge by that: whoever said that it was doing something has probably done it."""
    said = work.task.fields["doing"]
    done = EFFECTS[: EFFECTS.index(said) + 1] if said else ()
    for effect in EFFECTS:
        if effect not in done:
            work.propose("say", {"doing": effect})
            directly(work, effect)
    return work.propose("complete", {"receipt": {}})


def directly(work: Work, effect: str) -> Json:
    """The same request and the same points to die at, and no ledger."""
    doom.now = effect
    fields, declared = work.task.fields, Refunds.definition.effect[effect]
    doom("send.before")
    receipt = post(effect, f"{work.task.id}:{effect}", {name: fields[name] for name in declared.request})
    doom("send.after")
    return receipt
