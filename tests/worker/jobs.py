"""A machine with short leases, and clocks that move when told."""

from pointsman import Event, Machine, Pointsman, State, Task, always, note, optional, owner, role, seconds
from pointsman.testing import FakeClock


class Jobs(Machine, name="jobs"):
    """A job is done, given up, or looked at by somebody in between."""

    remark: str | None = note()

    todo = State(initial=True)
    doing = State(lease=seconds(3), max_hold=seconds(12))
    sending = State(lease=seconds(30), on_lapse="same")
    in_review = State()
    done = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(todo >> doing, sending >> sending, acquires=True)
    step = Event(doing >> doing, by=owner, sets=optional("remark", None))
    send = Event(doing >> sending, by=owner)
    submit = Event(doing >> in_review, by=owner)
    send_back = Event(in_review >> doing, by=role("reviewer"))
    finish = Event((doing | sending) >> done, by=owner)
    drop = Event((todo | doing | sending | in_review) >> dropped)

    proves = (always(done, take),)


class Seconds:
    """A monotonic clock that moves together with the store's."""

    def __init__(self, store: FakeClock):
        self.store = store
        self.began = store.now

    def __call__(self) -> float:
        return (self.store.now - self.began) / seconds(1)

    def advance(self, by_s: float) -> None:
        self.store.advance(seconds(by_s))


def claimed(pm: Pointsman, by: str = "worker-a", **how: object) -> Task:
    """A new job, taken under a session."""
    task = pm.claim("jobs", by=by, id=pm.create("jobs", {}, by="ann").id, session=f"{by}-1", **how)  # type: ignore[arg-type]
    assert task is not None
    return task
