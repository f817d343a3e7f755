"""Holds in the deciding transaction: which bear on a proposal, and the pace at which a backlog is let go; and the units of
work that place and lift one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pointsman.engine.record import Chance
from pointsman.errors import Refusal, Refused, StoreError, invalid
from pointsman.kernel import hold as kernel
from pointsman.kernel.case import Case
from pointsman.kernel.definition import Definition
from pointsman.kernel.hold import Aim, Hold, Match
from pointsman.kernel.lease import acquiring, lapses_to
from pointsman.kernel.parking import operator
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.store import holds, machines
from pointsman.store.database import Tx
from pointsman.types import Instant, uuid7

Holds: TypeAlias = tuple[Hold, ...]


def borne(tx: Tx, case: Case, found: Task, in_use: Holds) -> Case:
    """The case with those of the holds in use that bear on it, judged on the task as it was found, before any lapse was
    recorded, and by a time read after any of them had to be waited for."""
    if not in_use:
        return case
    aim = case.aim(found)
    bearing = tuple(hold for hold in at_pace(tx, in_use, aim, case.now) if kernel.matches(hold, aim))
    return replace(case, found=found, holds=bearing, now=max(case.now, tx.now))


def at_pace(tx: Tx, in_use: Holds, aim: Aim, now: Instant) -> Holds:
    """Where a backlog is let go, the pace is read under a lock: others may be taking from it."""
    releasing = {hold.id: _locked(tx, hold) for hold in kernel.releasing(in_use, aim, now)}
    return tuple(releasing.get(hold.id, hold) for hold in in_use)


def stops(tx: Tx, definition: Definition, task: Task) -> bool:
    """Whether a hold stops whoever would take a task that waits. Read anew for each: the turn may have been another's."""
    aim = taking(definition, task.state, task.owner, task.tags, task.updated_at)
    return kernel.stopping(holds.in_use(tx), aim, tx.now) is not None


def taking(definition: Definition, state: str, owner: str | None, tags: Sequence[str], touched: Instant) -> Aim:
    """Taking a task that waits, as holds look at it; a lapsed one is taken from the state it lapses to. No event where none acquires."""
    there, event = state if owner is None else lapses_to(definition, state), acquiring(definition, state, owned=owner is not None)
    return Aim(definition.name, "" if event is None else event.name, True, (state, there), tags, touched)


def _locked(tx: Tx, hold: Hold) -> Hold:
    found = holds.find(tx, hold.id)
    assert found is not None, "a hold is kept for ever"
    return found


def paced(tx: Tx, case: Case) -> None:
    """An accepted acquisition from the backlog of a hold uses up its turn."""
    if not case.holds:
        return
    for hold in kernel.releasing(case.holds, case.aim(case.found), tx.now):
        if not holds.pace(tx, hold, tx.now):
            raise StoreError("store_busy", "the hold moved inside the deciding transaction; nothing was written, try again")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A hold as an operator asks for it. Without `begins` it begins now."""

    match: Match
    reason: str
    begins: Instant | None
    until: Instant | None
    release_per_s: int


def place(chance: Chance, by: Principal, wanted: Wanted, tx: Tx, _look: bool) -> Hold:
    """A new hold, or the one that stands already in the same words: a unit that runs again places no second."""
    operators_only(by, "place a hold")
    holds.lock(tx)
    now = tx.now
    if (standing := _standing(tx, by, wanted, now)) is not None:
        return standing
    _known(tx, wanted.match)
    begins = now if wanted.begins is None else wanted.begins
    if wanted.until is not None and wanted.until <= max(now, begins):
        raise invalid(("until", "must lie ahead, and behind the beginning"))
    made = Hold(uuid7(now, chance(74)), wanted.match, wanted.reason, begins, wanted.until, wanted.release_per_s, by.name, now)
    holds.add(tx, made)
    return made


def _standing(tx: Tx, by: Principal, wanted: Wanted, now: Instant) -> Hold | None:
    """The hold that this operator placed in the same words, if it has not ended."""
    words = (wanted.match, wanted.reason, wanted.until, wanted.release_per_s, by.name)
    for hold in holds.in_use(tx):
        begins = hold.stops_at(now) if wanted.begins is None else hold.begins == wanted.begins and (hold.ends is None or now < hold.ends)
        if begins and (hold.match, hold.reason, hold.until, hold.release_per_s, hold.placed_by) == words:
            return hold
    return None


def lift(by: Principal, hold_id: str, tx: Tx, _look: bool) -> Hold:
    """Lifted once; again, it is answered as it stands."""
    operators_only(by, "lift a hold")
    now = tx.now  # before the row is locked: whoever decides has the time first, and the hold after it
    found = holds.find(tx, hold_id)
    if found is None:
        raise Refused(Refusal("unknown_hold", "no hold has this id"))
    return holds.lift(tx, found, by.name, now) or found


def operators_only(by: Principal, verb: str) -> None:
    if refusal := operator(by, verb):
        raise Refused(refusal)


def _known(tx: Tx, match: Match) -> None:
    """What is misspelled would stop nothing, and nobody would notice."""
    published = [row.definition for row in machines.every(tx)]
    if match.machine is not None and all(item.name != match.machine for item in published):
        raise Refused(Refusal("unknown_machine", "no such machine was published here"))
    meant = [item for item in published if match.machine in (None, item.name)]
    if found := list(_strangers(meant, match)):
        raise invalid(*found)


def _strangers(meant: Iterable[Definition], match: Match) -> Iterable[tuple[str, str]]:
    for name, known in (("event", [item.event for item in meant]), ("state", [item.state for item in meant])):
        word: Any = getattr(match, name)
        if word is not None and not any(word in names for names in known):
            yield f"match.{name}", f"no published machine that it means has such {'an event' if name == 'event' else 'a state'}"
