"""The holds table. A hold is kept when it has ended, and by then says who lifted it.

All but the pace of a hold's release is covered by the row's own hash. `read_until` is its end once nobody has to read it any
more, since nothing of its backlog is left, and beyond all times until then; so that those of last year cost no decision anything.
"""

from dataclasses import dataclass, replace
from typing import Any

from pointsman.kernel.chain import digest
from pointsman.kernel.hold import MEMBERS, Hold, Match
from pointsman.store.database import Tx
from pointsman.types import Duration, Instant, minutes

LINGERS: Duration = minutes(1)
"""For how long after its end a hold is read in any case: whoever decides may have read the clock a while ago."""

ALWAYS: Instant = 2**62
_SEALED = ("reason", "begins", "until", "release_per_s", "placed_by", "placed_at", "lifted_by", "lifted_at")


@dataclass(frozen=True, slots=True)
class Kept:
    """One row, with its hash and until when it is read."""

    hold: Hold
    hash: str
    read_until: Instant

    @property
    def sound(self) -> bool:
        return self.hash == _hash(self.hold) and self.read_until in (ALWAYS, self.hold.ends)


def _hash(hold: Hold) -> str:
    return digest("hold", [hold.id, *(getattr(hold.match, name) for name in MEMBERS), *(getattr(hold, name) for name in _SEALED)])


def _read(row: Any) -> Kept:
    id_, machine, event, state, tag, *rest, hash_, read_until = row
    return Kept(Hold(id_, Match(machine, event, state, tag), *rest), hash_, read_until)


def lock(tx: Tx) -> None:
    """Whoever is deciding now is waited for, and whoever comes later waits: from the commit on nothing is accepted that a hold of
    this unit stops. It comes before the unit reads the clock: two that place holds would wait for one another."""
    tx("wait_for_writers")


def add(tx: Tx, hold: Hold) -> None:
    members = {name: getattr(hold, name) for name in (*_SEALED, "id", "next_at")}
    tx("add_hold", **members, **{name: getattr(hold.match, name) for name in MEMBERS}, hash=_hash(hold), read_until=ALWAYS)


def find(tx: Tx, hold_id: str) -> Hold | None:
    """Locked, so that its pace is what it says."""
    row = tx("find_hold", id=hold_id)
    return None if row is None else _read(row).hold


def ahead(tx: Tx) -> None:
    """Whoever is about to lock a task will ask for the holds next."""
    tx.ahead("holds_in_use", always=ALWAYS)


def in_use(tx: Tx) -> tuple[Hold, ...]:
    """The holds that may bear on a decision, in the order in which they are locked. Whoever places one waits for whoever has
    read the clock; it is read before them, so from now on there is no other in this unit."""
    _ = tx.now
    return tuple(_read(row).hold for row in tx("holds_in_use", always=ALWAYS))


def lift(tx: Tx, hold: Hold, by: str, at: Instant) -> Hold | None:
    """End a hold; None when somebody has."""
    lifted = replace(hold, lifted_by=by, lifted_at=at)
    found = tx("lift_hold", id=hold.id, lifted_by=by, lifted_at=at, hash=_hash(lifted))
    return None if found is None else lifted


def pace(tx: Tx, hold: Hold, now: Instant) -> bool:
    """Count one acquisition from a hold's backlog; False when somebody has counted another since it was read."""
    return tx("pace_hold", id=hold.id, expected=hold.next_at, next_at=hold.after(now)) is not None


def over(tx: Tx) -> list[Hold]:
    """The holds that are read though they ended a while ago: something of their backlog may be left."""
    return [hold for hold in in_use(tx) if hold.ends is not None and hold.ends <= tx.now - LINGERS]


def retire(tx: Tx, hold: Hold) -> bool:
    """Nothing of its backlog is left: nobody has to read it any more. False when somebody has said so."""
    return tx("retire_hold", id=hold.id, ends=hold.ends, always=ALWAYS) is not None


def after(tx: Tx, last: str | None, limit: int) -> list[Kept]:
    return [_read(row) for row in tx("holds_after", after=last or "", limit=limit)]
