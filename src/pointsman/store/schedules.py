"""Where the schedules of machines stand: when each is due next. Sealed by the row's own hash.

`spec` is the schedule as its machine declares it, as canonical text: when that changes, the schedule begins anew.
"""

from dataclasses import dataclass, replace

from pointsman.kernel.chain import digest
from pointsman.store.database import Tx
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Kept:
    machine: str
    name: str
    spec: str
    next_at: Instant
    hash: str = ""

    @property
    def sealed(self) -> "Kept":
        return replace(self, hash=digest("schedule", [self.machine, self.name, self.spec, self.next_at]))

    @property
    def sound(self) -> bool:
        return self == self.sealed


def find(tx: Tx, machine: str, name: str) -> Kept | None:
    """Locked: whoever else is about to fire it waits."""
    row = tx("find_schedule", machine=machine, name=name)
    return None if row is None else Kept(*row)


def of_machine(tx: Tx, machine: str) -> list[Kept]:
    return [Kept(*row) for row in tx("schedules_of", machine=machine)]


def add(tx: Tx, schedule: Kept) -> bool:
    """Begin it; False when somebody has."""
    row = schedule.sealed
    found = tx("add_schedule", machine=row.machine, name=row.name, spec=row.spec, next_at=row.next_at, hash=row.hash)
    return found is not None


def move(tx: Tx, before: Kept, after: Kept) -> bool:
    """On to another moment; False when somebody has moved it since it was read."""
    row = after.sealed
    expected = {"expected_next_at": before.next_at, "expected_spec": before.spec}
    moved = tx("move_schedule", machine=row.machine, name=row.name, spec=row.spec, next_at=row.next_at, hash=row.hash, **expected)
    return moved is not None


def end(tx: Tx, schedule: Kept) -> bool:
    """Its machine declares it no more; False when somebody has ended it."""
    return tx("end_schedule", machine=schedule.machine, name=schedule.name, expected_spec=schedule.spec) is not None


def made(tx: Tx, machine: str, dedupe_key: str) -> bool:
    """Whether the task of a moment was made before."""
    return bool(tx("made_on_schedule", machine=machine, dedupe_key=dedupe_key)[0])


def after(tx: Tx, last: Kept | None, limit: int) -> list[Kept]:
    machine, name = ("", "") if last is None else (last.machine, last.name)
    return [Kept(*row) for row in tx("schedules_after", after_machine=machine, after_name=name, limit=limit)]
