"""Holds: an operator's stop on the events of some tasks, from a time and until another, for a shown reason.

    begins ── stops what it matches ── ends (lifted, or until) ── lets its backlog go at a rate ──

Which hold stops an event is a pure question. The backlog of a hold that ended are the tasks whose last entry is not
younger than its end: nothing counts them, and nothing has to say when the last of them is gone. They are acquired no
faster than `release_per_s`, paced by one stored time, `next_at` (the generic cell rate algorithm, ITU-T I.371, with room
for one).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.types import SECOND, Instant, iso

MEMBERS = ("machine", "event", "state", "tag")


@dataclass(frozen=True, slots=True)
class Match:
    """What a hold stops: an event on a task that fits all members that are given."""

    machine: str | None = None
    event: str | None = None
    state: str | None = None
    tag: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {name: value for name in MEMBERS if (value := getattr(self, name)) is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.as_json().items())


@dataclass(frozen=True, slots=True)
class Hold:
    """`begins` and `until` are when it stops, `release_per_s` how many acquisitions a second its backlog gets after that;
    the next of them not before `next_at`."""

    id: str
    match: Match
    reason: str
    begins: Instant
    until: Instant | None
    release_per_s: int
    placed_by: str
    placed_at: Instant
    lifted_by: str | None = None
    lifted_at: Instant | None = None
    next_at: Instant = 0

    @property
    def ends(self) -> Instant | None:
        """When it stops no more; None while nobody has said."""
        return min((at for at in (self.until, self.lifted_at) if at is not None), default=None)

    def stops_at(self, now: Instant) -> bool:
        return self.begins <= now and (self.ends is None or now < self.ends)

    def after(self, now: Instant) -> Instant:
        """When the acquisition after one that happens now may come."""
        gap = -(-SECOND // self.release_per_s)
        return max(self.next_at, now) + gap


@dataclass(frozen=True, slots=True)
class Aim:
    """An event on a task, as far as holds look at it. `states` are the one that the task is in and, when a lapse is recorded
    on the way, the one it lapses to; `touched` is the time of the last entry that the caller found."""

    machine: str
    event: str
    acquires: bool
    states: tuple[str, ...]
    tags: Sequence[str]
    touched: Instant


@dataclass(frozen=True, slots=True)
class Stop:
    """A hold that says no, and until when as far as is known: to everything it matches, or to a backlog for its turn."""

    hold: Hold
    until: Instant | None
    releasing: bool = False

    def detail(self) -> str:
        if self.releasing:
            rate = f"at most {self.hold.release_per_s} a second"
            return f"a hold on {self.hold.match} ended, and what it held back is let go, {rate}: try again"
        until = "an operator lifts it" if self.until is None else iso(self.until)
        reason = " ".join(self.hold.reason.split())
        return f"held until {until}: {reason} (hold {self.hold.id} on {self.hold.match})"

    def told(self, now: Instant) -> dict[str, Any]:
        """What a refusal says beside its detail."""
        wait = None if self.until is None else -(-max(self.until - now, 1) // SECOND)
        return {
            "hold": self.hold.id,
            "reason": self.hold.reason,
            "until": None if self.until is None else iso(self.until),
            **({} if wait is None else {"retry_after_s": wait}),
        }


def matches(hold: Hold, aim: Aim) -> bool:
    match = hold.match
    return (
        match.machine in (None, aim.machine)
        and match.event in (None, aim.event)
        and (match.state is None or match.state in aim.states)
        and (match.tag is None or match.tag in aim.tags)
    )


def stopping(holds: Iterable[Hold], aim: Aim, now: Instant) -> Stop | None:
    """The hold that stops this now: of several the one that lasts longest."""
    stops = [stop for hold in holds if matches(hold, aim) and (stop := _stop(hold, aim, now))]
    return max(stops, key=_lasting, default=None)


def releasing(holds: Iterable[Hold], aim: Aim, now: Instant) -> list[Hold]:
    """The ended holds of whose backlog this acquisition is one."""
    return [hold for hold in holds if matches(hold, aim) and _of_backlog(hold, aim, now)]


def _stop(hold: Hold, aim: Aim, now: Instant) -> Stop | None:
    if hold.stops_at(now):
        return Stop(hold, hold.ends)
    if _of_backlog(hold, aim, now) and now < hold.next_at:
        return Stop(hold, hold.next_at, releasing=True)
    return None


def _of_backlog(hold: Hold, aim: Aim, now: Instant) -> bool:
    return aim.acquires and hold.ends is not None and hold.begins < hold.ends <= now and aim.touched <= hold.ends


def _lasting(stop: Stop) -> tuple[bool, Instant]:
    return stop.until is None, stop.until or 0
