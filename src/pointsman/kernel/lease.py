"""Leases: how long an owner holds a task without a call, and what happens when the time has run out.

A lapse is claimability and nothing more. Until somebody else acquires the task it keeps state and owner, and its
owner's next call is accepted and renews; the epoch, not the clock, keeps a replaced owner out. The next claimer's
transaction records the lapse and the claim together.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound
from pointsman.kernel.definition import Definition, Event, State
from pointsman.kernel.refuse import owns, refuse
from pointsman.kernel.retry import Cause, delay, told
from pointsman.kernel.rules import Principal
from pointsman.kernel.steps import Accept
from pointsman.kernel.task import Lease, Task, changes
from pointsman.types import Duration, Instant, Json

SHORTEST: Duration = 1_000_000
LONGEST: Duration = 86_400_000_000
POINTSMAN = Principal("pointsman", kind="service", roles=frozenset(), auth="internal")
"""Who records a lapse: nobody asked for it."""


def granted(state: State, owner: str | None, now: Instant, asked: Duration | None = None) -> Lease | None:
    """The lease of whoever owns a task in this state from now on, no longer than its `max_hold`; None where waiting needs none."""
    if owner is None or state.lease is None:
        return None
    span = state.lease if asked is None else asked
    return Lease(now + (span if state.max_hold is None else min(span, state.max_hold)), live=True)


def renewed(state: State, task: Task, now: Instant, asked: Duration | None) -> Lease | None:
    """A silent renewal: capped by the state's `max_hold` since the last entry."""
    lease = granted(state, task.owner, now, asked)
    if lease is None or state.max_hold is None:
        return lease
    end = min(lease.expires_at, task.updated_at + state.max_hold)
    return Lease(end, live=end > now)


class Claim(Protocol):
    """What an owner's call says of itself."""

    @property
    def by(self) -> Principal: ...
    @property
    def session(self) -> str | None: ...
    @property
    def epoch(self) -> int | None: ...
    @property
    def strict(self) -> bool: ...


def not_mine(definition: Definition, task: Task, claim: Claim, *, only_owner: bool = True) -> Refusal | None:
    """Why this caller may not act as the owner. An old epoch is refused whoever sends it; a name and a session are
    asked for only where ownership is what the caller's right rests on."""
    if claim.epoch is not None and claim.epoch != task.epoch:
        detail = f"the task is in epoch {task.epoch}, not {claim.epoch}"
        return refuse(definition, task, claim.by, "lease_lost", detail, epoch=task.epoch)
    if not only_owner:
        return None
    if not owns(task, claim.by, claim.session):
        free = "; its lease ran out and nobody has taken it: claim it by id" if task.lapsed else ""
        return refuse(definition, task, claim.by, "not_owner", f"the owner is {task.owner or 'nobody'}{free}")
    if claim.strict and claim.epoch is None:
        fault = {"path": "epoch", "message": "an owner names the epoch that its claim returned"}
        return refuse(definition, task, claim.by, "invalid", f"epoch: {fault['message']}", failed=[fault])
    return None


def lapses_to(definition: Definition, state: str) -> str:
    """Where a task goes when its owner lost or released it here: the initial state unless `on_lapse` says otherwise."""
    target = definition.state[state].on_lapse
    return state if target == "same" else target or definition.initial


def acquiring(definition: Definition, state: str, *, owned: bool) -> Event | None:
    """The event by which somebody takes a task: where it is or, while somebody owns it, where it goes when that one's time
    runs out. Of several the first; None where none is open."""
    there = lapses_to(definition, state) if owned and definition.state[state].lease is not None else state
    return next((event for event in definition.events if event.acquires and event.target(there) is not None), None)


def queued(definition: Definition) -> tuple[str, ...]:
    """The leased states from which a lapse leads back to the queue: claim-next serves them too."""
    return tuple(state.name for state in definition.states if state.lease and lapses_to(definition, state.name) == definition.initial)


def entered(definition: Definition, task: Task, state: str, now: Instant) -> dict[str, Any]:
    """What coming into a state sets: since when, and until when it may last. Staying there sets nothing."""
    if state == task.state:
        return {}
    span = definition.state[state].deadline
    return {"state": state, "since": now, "deadline": None if span is None else now + span}


def lapsed(machine: Bound, task: Task, now: Instant) -> Accept:
    """The entry that says that an owner's time ran out."""
    return _given_back(machine, task, "lapse", now, {"owner": task.owner, "epoch": task.epoch}, "lost")


@dataclass(frozen=True, slots=True)
class Back:
    """How an owner gives a task back: what the attempt came to, and for how long or until when nobody is to claim it."""

    cause: Cause
    rest: Duration | None = None
    until: Instant | None = None


def released(machine: Bound, task: Task, now: Instant, reason: str | None, back: Back, chance: float) -> Accept:
    """The entry of an owner who gives the task back; it moves as a lapse does, all fields are kept. After an error it
    rests for a while, unless its owner says for how long."""
    rest = delay(machine.definition.retry, task.attempts.error, chance) if back.cause == "error" and back.rest is None else back.rest
    until = back.until if back.until is not None else None if rest is None else max(now, task.updated_at + 1) + rest
    said: dict[str, Json] = {"reason": reason} if reason is not None else {}
    return _given_back(machine, task, "release", now, said, back.cause, until)


def _given_back(
    machine: Bound, task: Task, kind: str, now: Instant, said: dict[str, Json], cause: Cause, until: Instant | None = None
) -> Accept:
    at = max(now, task.updated_at + 1)
    after = task.but(
        **entered(machine.definition, task, lapses_to(machine.definition, task.state), at),
        owner=None,
        owner_root=None,
        session=None,
        lease=None,
        joining=None,
        run_at=task.run_at if until is None else until,
        attempts=told(task.attempts, cause),
        version=task.version + 1,
        updated_at=at,
    )
    return Accept(after, kind, kind, task.state, {"changes": changes(task, after), **said})
