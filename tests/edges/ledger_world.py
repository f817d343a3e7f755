"""A machine with effects, for the doors: somebody else decides on a refund, and the task's owner makes it."""

from pointsman import Effect, Event, Machine, NonBlank, State, contributor, minutes, note, optional, owner, result, role


class Refunds(Machine, name="refunds"):
    order: NonBlank
    amount: int
    why: str | None = note()
    receipt: str | None = result()

    asked = State(initial=True, lease=minutes(10))
    judged = State()
    approved = State(lease=minutes(10), on_lapse="same")
    done = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> asked, acquires=True)
    go_on = Event(approved >> approved, acquires=True)
    submit = Event(asked >> judged, by=owner, sets=optional("why", None))
    approve = Event(judged >> approved, by=role("lead") & ~contributor)
    deny = Event(judged >> asked, by=role("lead") & ~contributor)
    complete = Event(approved >> done, by=owner, sets=optional("receipt", None))
    drop = Event((asked | judged | approved) >> dropped)

    take_back = Effect("take_back", during=approved, request=("order", "amount"), kind="ask")
    refund = Effect("refund", during=approved, request=("order", "amount"), kind="lookup", settle=minutes(10), undo=take_back)
    mail = Effect("mail", during=approved, request="order", kind="ask")
