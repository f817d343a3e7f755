"""The holds table. A hold is kept when it has ended, and by then says who lifted it.

All but the pace of a hold's release is covered by the row's own hash. `read_until` is when nobody has to read it any more:
an hour after it ended, or after the last task of its backlog was taken; so that those of last year cost no decision anything.
"""

from dataclasses import dataclass, replace
from typing import Any

from pointsman.kernel.chain import digest
from pointsman.kernel.hold import MEMBERS, Hold, Match
from pointsman.store.database import Tx
from pointsman.types import Duration, Instant, hours

LINGERS: Duration = hours(1)
ALWAYS: Instant = 2**62
_SEALED = ("reason", "begins", "until", "release_per_s", "placed_by", "placed_at", "lifted_by", "lifted_at")


@dataclass(frozen=True, slots=True)
class Kept:
    """One row, with the two columns that follow from the others."""

    hold: Hold
    hash: str
    read_until: Instant

    @property
    def sound(self) -> bool:
        return self == _kept(self.hold)


def _kept(hold: Hold) -> Kept:
    sealed = [hold.id, *(getattr(hold.match, name) for name in MEMBERS), *(getattr(hold, name) for name in _SEALED)]
    read_until = ALWAYS if hold.ends is None else max(hold.ends, hold.next_at) + LINGERS
    return Kept(hold, digest("hold", sealed), read_until)


def _read(row: Any) -> Kept:
    id_, machine, event, state, tag, *rest, hash_, read_until = row
    return Kept(Hold(id_, Match(machine, event, state, tag), *rest), hash_, read_until)


def add(tx: Tx, hold: Hold) -> None:
    """From the commit on nothing that the hold stops is accepted: whoever is deciding now is waited for, and whoever comes
    later waits."""
    tx("wait_for_writers")
    row = _kept(hold)
    members = {name: getattr(hold, name) for name in (*_SEALED, "id", "next_at")}
    tx("add_hold", **members, **{name: getattr(hold.match, name) for name in MEMBERS}, hash=row.hash, read_until=row.read_until)


def find(tx: Tx, hold_id: str) -> Hold | None:
    """Locked, so that its pace is what it says."""
    row = tx("find_hold", id=hold_id)
    return None if row is None else _read(row).hold


def in_use(tx: Tx) -> tuple[Hold, ...]:
    """The holds that may bear on a decision now, in the order in which they are locked."""
    return tuple(sorted((_read(row).hold for row in tx("holds_in_use", now=tx.now)), key=lambda hold: hold.id))


def lift(tx: Tx, hold: Hold, by: str, at: Instant) -> Hold | None:
    """End a hold; None when somebody has."""
    lifted = replace(hold, lifted_by=by, lifted_at=at)
    row = _kept(lifted)
    found = tx("lift_hold", id=hold.id, lifted_by=by, lifted_at=at, hash=row.hash, read_until=row.read_until)
    return None if found is None else lifted


def pace(tx: Tx, hold: Hold, now: Instant) -> bool:
    """Count one acquisition from a hold's backlog; False when somebody has counted another since it was read."""
    paced = replace(hold, next_at=hold.after(now))
    return tx("pace_hold", id=hold.id, expected=hold.next_at, next_at=paced.next_at, read_until=_kept(paced).read_until) is not None


def after(tx: Tx, last: str | None, limit: int) -> list[Kept]:
    return [_read(row) for row in tx("holds_after", after=last or "", limit=limit)]
