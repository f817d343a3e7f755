"""The units of work behind `claim`: one task by its id, or the next in line.

The next in line is found look by look, until one has an answer:

    first    unless time has made tasks claimable that `wake` has to bring into the line first
    again    when there were more of those than one unit wakes
    woken    passing over every task that somebody else is deciding on
    last     waiting for them, since each may be left as it was: only now may "nothing waits" be said

Each look is a unit of its own: the last one holds no row when it begins to wait, and judges by a time read after it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from heapq import heapify, heappop, heappush

from pointsman.engine import holding
from pointsman.engine.decision import Deciding, Done, find, weighed
from pointsman.engine.propose import case_of, freed, next_expected, refused
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import lapsed, queued
from pointsman.kernel.limits import full
from pointsman.kernel.retry import exhausted
from pointsman.kernel.task import Task
from pointsman.store import holds, lanes, limits, tasks
from pointsman.store.database import Tx
from pointsman.store.hints import of_queue
from pointsman.store.lanes import Lane
from pointsman.store.tasks import Stored, place
from pointsman.types import Instant


class Look(Enum):
    FIRST = auto()
    AGAIN = auto()
    WOKEN = auto()
    LAST = auto()


UNSUITABLE = frozenset({"parked", "held", "limit_reached", "blocked", "already_claimed", "wrong_state"})
"""Refusals that say that a task is not eligible now. Any other tells its caller something that the next task may not."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which task a claim is for: one by id, else the first that waits in these states, has all these tags, and needs
    nothing but these capabilities."""

    machine: str
    task: str | None = None
    states: Sequence[str] | None = None
    tags: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()


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
    if at is Look.FIRST and tasks.can_wake(tx, wanted.machine):
        return Look.WOKEN
    while at is Look.LAST and tasks.wake(tx, wanted.machine, waiting=True) == tasks.WOKEN:
        pass
    line, held = _line(deciding.registry, tx, wanted), bool(holds.in_use(tx))
    candidates = (found for lane, found in _candidates(tx, line, held=held, waiting=at is Look.LAST) if _serves(wanted, lane, found.task))
    found = _taken(deciding, tx, proposal, candidates)
    if isinstance(found, Done):
        return found
    return _nothing(tx, wanted, at, found, some=bool(line))


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


def _taken(deciding: Deciding, tx: Tx, proposal: Proposal, candidates: Iterator[Stored]) -> Done | Refusal | None:
    """The first candidate that the kernel lets this caller have; else the first refusal that is about the caller."""
    why = None
    for found in candidates:
        answer = _offered(deciding, tx, found, proposal)
        if isinstance(answer, Done):
            return answer
        if why is None and answer.code not in UNSUITABLE:
            why = answer
    return why


def _offered(deciding: Deciding, tx: Tx, found: Stored, proposal: Proposal) -> Done | Refusal:
    """Judge a task in line before anything of it is written: a lapse is recorded with the claim that takes it over, or
    when it was once too often."""
    try:
        case = case_of(deciding, tx, found, proposal)
        if not (case.event.acquires and found.task.lapsed):
            return _recorded(deciding, tx, found, found, case)
        after = lapsed(case.machine, found.task, case.now).after
        if not exhausted(case.machine.definition, after):
            then = case_of(deciding, tx, replace(found, task=after), next_expected(case))
            if isinstance(no := _judged(tx, holding.borne(tx, then, found.task)), Refusal):
                return no
        return _recorded(deciding, tx, found, *freed(deciding, tx, found, case))
    except StoreError:
        raise
    except Refused as no:
        return no.refusal


def _recorded(deciding: Deciding, tx: Tx, found: Stored, free: Stored, case: Case) -> Done | Refusal:
    case = holding.borne(tx, case, found.task)
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
            return case.no("evidence_pending", "this claim needs a check; propose the event by name")


# ── the line ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(registry: Registry, tx: Tx, wanted: Wanted) -> list[tuple[Lane, Definition]]:
    """The lanes in which a task waits that suits, over the versions that can be served here: unowned in the initial state,
    or lapsed on the way back there; or either in the states that were asked for."""
    return [
        (lane, definition)
        for definition in registry.servable(tx, wanted.machine)
        for lane in lanes.with_work(tx, definition)
        if _suits(wanted, definition, lane)
    ]


def _suits(wanted: Wanted, definition: Definition, lane: Lane) -> bool:
    states = wanted.states or (definition.initial, *queued(definition))
    return lane.state in states and lane.needs <= wanted.capabilities and wanted.tags <= lane.tags


def _candidates(tx: Tx, line: Sequence[tuple[Lane, Definition]], *, held: bool, waiting: bool) -> Iterator[tuple[Lane, Stored]]:
    """Tasks in the order of their places, over all lanes, each locked when it is given out. A lane whose limit is used up
    is left out as soon as its turn comes; so is one whose first is held, where there are holds: behind a backlog that is let
    go at a rate everybody waits for its turn."""
    first = [(lane.place, lane.head) for lane, _ in line]
    turns: list[tuple[Instant, int, int, Stored | None]] = [(*start, number, None) for number, start in enumerate(first)]
    heapify(turns)
    while turns:
        at, key, number, found = heappop(turns)
        lane, definition = line[number]
        if found is not None:
            yield lane, found
            heappush(turns, (at, key + 1, number, None))
        elif (at, key) != first[number] or not _used_up(tx, definition, lane):
            found = tasks.next_in_lane(tx, lane, (at, key), waiting=waiting)
            if found is not None and not (held and holding.stops(tx, definition, found.task)):
                heappush(turns, (place(found.task), found.key, number, found))


def _serves(wanted: Wanted, lane: Lane, task: Task) -> bool:
    """The flag that brought a task here is only a hint. Unless a state was asked for, what is unowned waits in the initial
    one alone."""
    return task.lapsed if task.owner is not None else wanted.states is not None or lane.initial


def _used_up(tx: Tx, definition: Definition, lane: Lane) -> bool:
    """Whether a limit leaves nothing for any task of a lane. Where tasks are leased a lapsed one may have a place already."""
    declared = {limit.name: limit for limit in definition.limits}
    counting = [(declared[name], subject) for name, subject in lane.limits if name in declared]
    leased = definition.state[lane.state].lease is not None
    return any(full(limit, limits.used(tx, limit, subject, tx.now)) for limit, subject in counting if limit.per is not None or not leased)
