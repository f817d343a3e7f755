"""The units of work behind `claim` and `claim_many`: one task by its id, or the next in line.

The next in line is found look by look, until one has an answer:

    first    unless time has made tasks claimable that `wake` has to bring into the line first
    again    when there were more of those than one unit wakes
    woken    passing over every task that somebody else is deciding on
    last     waiting for them, since each may be left as it was: only now may "nothing waits" be said

Each look is a unit of its own: the last one holds no row when it begins to wait, and judges by a time read after it. So it
takes one task, however many are wanted.
"""

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TypeAlias

from pointsman.engine import holding, line
from pointsman.engine.asking import as_free, case_of, freed, refused
from pointsman.engine.decision import Deciding, Done, find, weighed
from pointsman.engine.line import BEGINNING, Line, Looking, Wanted
from pointsman.engine.propose import told
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.lease import acquiring
from pointsman.kernel.rules import mentions
from pointsman.store import holds, tasks
from pointsman.store.database import Tx
from pointsman.store.hints import of_queue
from pointsman.store.lanes import END, Place
from pointsman.store.tasks import Stored, place


class Look(Enum):
    FIRST = auto()
    AGAIN = auto()
    WOKEN = auto()
    LAST = auto()


REFUSED_AT_ONCE = 200
"""How many candidates one unit passes over, so that no claim keeps others from writing for long; the next unit goes on."""


@dataclass(frozen=True, slots=True)
class Onward:
    """A look that goes on in a unit of its own, beyond a place in the line; `why` is what its caller was refused so far."""

    look: Look
    beyond: Place = BEGINNING
    why: Refusal | None = None


At: TypeAlias = Look | Onward

UNSUITABLE = frozenset({"parked", "held", "limit_reached", "blocked", "already_claimed", "wrong_state"})
"""Refusals that say that a task is not eligible now. Any other tells its caller something that the next task may not."""


def claim(deciding: Deciding, wanted: Wanted, proposal: Proposal, tx: Tx, look: bool) -> Done | None:
    """Take one task by its id."""
    if done := deciding.repeated(tx, look):
        return done
    assert wanted.task is not None, "who names no task asks `claim_next`"
    holds.ahead(tx)
    found = find(tx, wanted.task)
    if found.task.machine != wanted.machine:
        raise Refused(Refusal("unknown_task", f"no task of machine {wanted.machine} has this id", task=found.task.id))
    case = case_of(deciding.registry, tx, found, proposal)
    if done := deciding.replayed(tx, look):
        return done
    answer = _decided(deciding, tx, found, case)
    return told(tx, found, answer) if isinstance(answer, Refusal) else answer


def wake(machine: str, tx: Tx) -> bool:
    """Bring tasks that time has made claimable into the line; True when there may be more."""
    woken = tasks.wake(tx, machine)
    if woken:
        tx.news.add(of_queue(machine))
    return woken == tasks.WOKEN


def claim_next(deciding: Deciding, wanted: Wanted, proposal: Proposal, at: At, tx: Tx, look: bool) -> Done | At | None:
    """Take the first in line; None when nothing waits. A `Look` says that the answer takes another one: AGAIN or WOKEN
    once tasks were woken, LAST when those that were passed over have to be waited for."""
    if done := deciding.replayed(tx, look):
        return done
    found = _looked(_Asked(deciding, wanted, proposal, 1), tx, at)
    return found[0] if isinstance(found, list) else found


def claim_many(asking: Deciding, wanted: Wanted, many: int, proposal: Proposal, at: At, tx: Tx, look: bool) -> list[Done] | At | None:
    """The same for the first `many` there are, each under a request of its own."""
    deciding = asking.gathering()
    if look and (done := _taken_before(deciding, tx)):
        return done
    found = _looked(_Asked(deciding, wanted, proposal, many), tx, at)
    deciding.write_gathered(tx)
    return found


def _taken_before(deciding: Deciding, tx: Tx) -> list[Done]:
    """What the same call took, when its COMMIT is unknown: there is no gap in the numbers of its parts."""
    found = list[Done]()
    while done := deciding.part(len(found)).replayed(tx, True):
        found.append(done)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who wants how many tasks of what is in line."""

    deciding: Deciding
    wanted: Wanted
    proposal: Proposal
    many: int


def _looked(asked: _Asked, tx: Tx, at: At) -> list[Done] | At | None:
    on, deciding, wanted = at if isinstance(at, Onward) else Onward(at), asked.deciding, asked.wanted
    if _wakes(asked, tx, on, first=at is Look.FIRST):
        return Look.WOKEN
    waiting = on.look is Look.LAST
    while waiting and tasks.wake(tx, wanted.machine, waiting=True) == tasks.WOKEN:
        pass
    versions, held = line.versions(deciding.registry, tx, wanted), bool(deciding.holds(tx))
    asked, near = replace(asked, many=1 if waiting else asked.many), _near(asked, on)
    while True:
        lanes, before = line.lanes_of(versions, tx, wanted, near=near)
        looking = Looking(-(-asked.many // max(1, len(lanes))), held, waiting, on.beyond, before)
        taken, then = _taken(asked, tx, lanes, looking, on)
        if taken:
            return taken
        if then.beyond != on.beyond:
            return then
        if before == END:
            return _nothing(asked, tx, then, lanes)
        near, on = False, Onward(on.look, before, then.why)


def _wakes(asked: _Asked, tx: Tx, on: Onward, *, first: bool) -> bool:
    """Whether `wake` has work before the first look; and what a near look asks for, together."""
    near = _near(asked, on)
    if near:
        tasks.wake_ahead(tx, asked.wanted.machine)
        line.ahead(asked.deciding.registry, tx, asked.wanted)
        holds.ahead(tx)
    return (near or first) and tasks.can_wake(tx, asked.wanted.machine) and first


def _near(asked: _Asked, on: Onward) -> bool:
    """Whether the beginning of the line is looked at first. Whoever wants many, goes on from a place, or has to be sure that nothing
    waits, looks at every lane."""
    return asked.many == 1 and on.look is not Look.LAST and on.beyond == BEGINNING


def _nothing(asked: _Asked, tx: Tx, on: Onward, lanes: Line) -> Look | None:
    """What it means that a look took nothing. While the last one waited, the line may have changed."""
    if on.look is Look.LAST:
        if on.why is not None:
            raise Refused(on.why)
        versions = line.versions(asked.deciding.registry, tx, asked.wanted)
        return None if line.lanes_of(versions, tx, asked.wanted, near=False)[0] == lanes else Look.AGAIN
    due = on.look is not Look.FIRST and tasks.can_wake(tx, asked.wanted.machine)
    if on.look is Look.AGAIN and due:
        return Look.WOKEN
    return Look.LAST if lanes or due else None


def _taken(asked: _Asked, tx: Tx, lanes: Line, looking: Looking, on: Onward) -> tuple[list[Done], Onward]:
    """The first candidates that the kernel lets this caller have; and where to go on, once enough were refused for one unit,
    with the first refusal that is about the caller."""
    taken, refusals, why = list[Done](), 0, on.why
    for candidate in line.candidates(tx, asked.wanted, lanes, looking):
        answer = offered(asked.deciding.part(len(taken)), tx, candidate, asked.proposal, held=looking.held)
        if isinstance(answer, Done):
            taken.append(answer)
            if len(taken) == asked.many:
                break
            continue
        refusals, why = refusals + 1, answer if why is None and answer.code not in UNSUITABLE else why
        if answer.code == "role_missing" and not _varies(asked.deciding, tx, candidate):
            looking.barred.add(candidate.task.machine_version)
        if refusals == REFUSED_AT_ONCE:
            return taken, Onward(on.look, (place(candidate.task), candidate.key + 1), why)
    return taken, Onward(on.look, on.beyond, why)


def _varies(deciding: Deciding, tx: Tx, found: Stored) -> bool:
    """Whether the right to take tasks of a machine depends on the task."""
    definition = deciding.registry.definition(tx, found.task.machine, found.task.machine_version)
    event = acquiring(definition, found.task.state, owned=found.task.owner is not None)
    return event is None or mentions(event.by, "contributor")


def offered(deciding: Deciding, tx: Tx, found: Stored, proposal: Proposal, *, held: bool = True) -> Done | Refusal:
    """Decide a proposal about one task of several; not `held` once it was seen that no hold is in use."""
    try:
        return _decided(deciding, tx, found, case_of(deciding.registry, tx, found, proposal), held=held)
    except StoreError:
        raise
    except Refused as no:
        return no.refusal


def _decided(deciding: Deciding, tx: Tx, found: Stored, case: Case, *, held: bool = True) -> Done | Refusal:
    free = holding.borne(tx, as_free(deciding.registry, tx, found, case), found.task, deciding.holds(tx) if held else ())
    answer = _judged(tx, free)
    if isinstance(answer, Refusal):
        return refused(deciding, tx, found, case, answer)
    holding.paced(tx, free)
    return deciding.record(tx, case.machine, freed(deciding, tx, found, case), answer)


def _judged(tx: Tx, case: Case) -> Accept | Refusal:
    match weighed(tx, case, {}):
        case Accept() as accept:
            return accept
        case Refuse(refusal):
            return refusal
        case NeedChecks():
            return case.no("evidence_pending", "a check has to judge this first; propose the event by name")
