"""The units of work behind `claim` and `claim_many`: one task by its id, or the next in line.

The next in line is found look by look, until one has an answer:

    first    unless time has made tasks claimable that `wake` has to bring into the line first
    again    when there were more of those than one unit wakes
    woken    passing over every task that somebody else is deciding on
    last     waiting for them, since each may be left as it was: only now may "nothing waits" be said

Each look is a unit of its own: the last one holds no row when it begins to wait, and judges by a time read after it. So it
takes one task, however many are wanted.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum, auto

from pointsman.engine import holding, line
from pointsman.engine.decision import Deciding, Done, find, weighed
from pointsman.engine.line import Looking, Wanted
from pointsman.engine.propose import case_of, freed, next_expected, refused
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.lease import lapsed
from pointsman.kernel.retry import exhausted
from pointsman.store import tasks
from pointsman.store.database import Tx
from pointsman.store.hints import of_queue
from pointsman.store.tasks import Stored


class Look(Enum):
    FIRST = auto()
    AGAIN = auto()
    WOKEN = auto()
    LAST = auto()


UNSUITABLE = frozenset({"parked", "held", "limit_reached", "blocked", "already_claimed", "wrong_state"})
"""Refusals that say that a task is not eligible now. Any other tells its caller something that the next task may not."""


def claim(deciding: Deciding, wanted: Wanted, proposal: Proposal, tx: Tx, look: bool) -> Done | None:
    """Take one task by its id."""
    if done := deciding.repeated(tx, look):
        return done
    assert wanted.task is not None, "who names no task asks `claim_next`"
    found = find(tx, wanted.task)
    if found.task.machine != wanted.machine:
        raise Refused(Refusal("unknown_task", f"no task of machine {wanted.machine} has this id", task=found.task.id))
    case = case_of(deciding, tx, found, proposal)
    if done := deciding.replayed(tx, look):
        return done
    free, case = freed(deciding, tx, found, case)
    answer = _recorded(deciding, tx, found, free, case)
    return refused(answer, found, free) if isinstance(answer, Refusal) else answer


def wake(machine: str, tx: Tx) -> bool:
    """Bring tasks that time has made claimable into the line; True when there may be more."""
    woken = tasks.wake(tx, machine)
    if woken:
        tx.news.add(of_queue(machine))
    return woken == tasks.WOKEN


def claim_next(deciding: Deciding, wanted: Wanted, proposal: Proposal, at: Look, tx: Tx, look: bool) -> Done | Look | None:
    """Take the first in line; None when nothing waits. A `Look` says that the answer takes another one: AGAIN or WOKEN
    once tasks were woken, LAST when those that were passed over have to be waited for."""
    if done := deciding.replayed(tx, look):
        return done
    found = _looked(deciding, tx, wanted, proposal, at, 1)
    return found[0] if isinstance(found, list) else found


def claim_many(asking: Deciding, wanted: Wanted, many: int, proposal: Proposal, at: Look, tx: Tx, look: bool) -> list[Done] | Look | None:
    """The same for the first `many` there are, each under a request of its own."""
    deciding = asking.gathering()
    if look and (done := _taken_before(deciding, tx)):
        return done
    found = _looked(deciding, tx, wanted, proposal, at, many)
    deciding.write_gathered(tx)
    return found


def _taken_before(deciding: Deciding, tx: Tx) -> list[Done]:
    """What the same call took, when its COMMIT is unknown: there is no gap in the numbers of its parts."""
    found = list[Done]()
    while done := deciding.part(len(found)).replayed(tx, True):
        found.append(done)
    return found


def _looked(deciding: Deciding, tx: Tx, wanted: Wanted, proposal: Proposal, at: Look, many: int) -> list[Done] | Look | None:
    if at is Look.FIRST and tasks.can_wake(tx, wanted.machine):
        return Look.WOKEN
    waiting = at is Look.LAST
    while waiting and tasks.wake(tx, wanted.machine, waiting=True) == tasks.WOKEN:
        pass
    lanes, many = line.lanes_for(deciding.registry, tx, wanted), 1 if waiting else many
    looking = Looking(-(-many // max(1, len(lanes))), held=bool(deciding.holds(tx)), waiting=waiting)
    taken, why = _taken(deciding, tx, proposal, line.candidates(tx, wanted, lanes, looking), many)
    return taken or _nothing(tx, wanted, at, why, some=bool(lanes))


def _nothing(tx: Tx, wanted: Wanted, at: Look, why: Refusal | None, *, some: bool) -> Look | None:
    """What it means that a look took nothing."""
    if at is Look.LAST:
        if why is not None:
            raise Refused(why)
        return None
    due = at is not Look.FIRST and tasks.can_wake(tx, wanted.machine)
    if at is Look.AGAIN and due:
        return Look.WOKEN
    return Look.LAST if some or due else None


def _taken(deciding: Deciding, tx: Tx, proposal: Proposal, found: Iterator[Stored], many: int) -> tuple[list[Done], Refusal | None]:
    """The first candidates that the kernel lets this caller have, and the first refusal that is about the caller."""
    taken, why = list[Done](), None
    for candidate in found:
        answer = offered(deciding.part(len(taken)), tx, candidate, proposal)
        if isinstance(answer, Refusal):
            why = answer if why is None and answer.code not in UNSUITABLE else why
            continue
        taken.append(answer)
        if len(taken) == many:
            break
    return taken, why


def offered(deciding: Deciding, tx: Tx, found: Stored, proposal: Proposal) -> Done | Refusal:
    """Judge a proposal about one task of several before anything of it is written: a lapse is recorded with the claim that
    takes it over, or when it was once too often."""
    try:
        case = case_of(deciding, tx, found, proposal)
        if not (case.event.acquires and found.task.lapsed):
            return _recorded(deciding, tx, found, found, case)
        after = lapsed(case.machine, found.task, case.now).after
        if not exhausted(case.machine.definition, after):
            then = case_of(deciding, tx, replace(found, task=after), next_expected(case))
            if isinstance(no := _judged(tx, holding.borne(tx, then, found.task, deciding.holds(tx))), Refusal):
                return no
        answer = _recorded(deciding, tx, found, *freed(deciding, tx, found, case))
        return replace(answer, recorded=True) if isinstance(answer, Refusal) else answer
    except StoreError:
        raise
    except Refused as no:
        return no.refusal


def _recorded(deciding: Deciding, tx: Tx, found: Stored, free: Stored, case: Case) -> Done | Refusal:
    case = holding.borne(tx, case, found.task, deciding.holds(tx))
    answer = _judged(tx, case)
    if isinstance(answer, Refusal):
        return answer
    holding.paced(tx, case)
    return deciding.record(tx, case.machine, free, answer)


def _judged(tx: Tx, case: Case) -> Accept | Refusal:
    match weighed(tx, case, {}):
        case Accept() as accept:
            return accept
        case Refuse(refusal):
            return refusal
        case NeedChecks():
            return case.no("evidence_pending", "a check has to judge this first; propose the event by name")
