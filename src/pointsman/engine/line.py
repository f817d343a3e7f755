"""The line: the tasks that wait and suit a claim, in the order in which they are given."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from pointsman.engine import holding
from pointsman.engine.registry import Registry
from pointsman.errors import invalid
from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import queued
from pointsman.kernel.limits import full
from pointsman.kernel.task import Task
from pointsman.store import lanes, limits, tasks
from pointsman.store.database import Tx
from pointsman.store.lanes import END, Lane, Place
from pointsman.store.tasks import Stored, place
from pointsman.types import EARLIEST

Line = Sequence[tuple[Lane, Definition]]
BEGINNING: Place = (EARLIEST, 0)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which task a claim is for: one by id, else the first that waits in these states, has all these tags, and needs
    nothing but these capabilities."""

    machine: str
    task: str | None = None
    states: Sequence[str] | None = None
    tags: frozenset[str] = frozenset()
    capabilities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Looking:
    """How the line is read: so many tasks of a lane together; with an eye on holds, where there are any; waiting for whoever
    decides on one, or passing over it; from a place on, and not to another. `barred` are versions of which this caller may take
    nothing."""

    together: int
    held: bool
    waiting: bool
    beyond: Place
    before: Place
    barred: set[int] = field(default_factory=set[int])


def ahead(registry: Registry, tx: Tx, wanted: Wanted) -> None:
    """`versions` are asked for next, then the near `lanes_of` them."""
    for definition in registry.expected(tx, wanted.machine):
        lanes.ahead(tx, definition)


def versions(registry: Registry, tx: Tx, wanted: Wanted) -> Sequence[Definition]:
    """Those that can be served here. Some version must have the states that were asked for."""
    found = registry.servable(tx, wanted.machine)
    there = {name for definition in found for name in definition.state}
    if strange := [index for index, name in enumerate(wanted.states or ()) if name not in there]:
        raise invalid(*((f"states[{index}]", "no version of this machine that is served here has such a state") for index in strange))
    return found


def lanes_of(versions: Sequence[Definition], tx: Tx, wanted: Wanted, *, near: bool) -> tuple[Line, Place]:
    """The lanes in which a task of these versions waits that suits: unowned in the initial state, or lapsed on the way back there;
    or either in the states that were asked for. `near` are those of the line's beginning alone, with the place up to which that is
    all."""
    found = [(definition, lanes.near(tx, definition) if near else (lanes.with_work(tx, definition), END)) for definition in versions]
    suiting = [(lane, definition) for definition, (listed, _) in found for lane in listed if _suits(wanted, definition, lane)]
    return suiting, min((before for _, (_, before) in found), default=END)


def _suits(wanted: Wanted, definition: Definition, lane: Lane) -> bool:
    states = wanted.states or (definition.initial, *queued(definition))
    return lane.state in states and lane.needs <= wanted.capabilities and wanted.tags <= lane.tags


def candidates(tx: Tx, wanted: Wanted, line: Line, looking: Looking) -> Iterator[Stored]:
    """Tasks in the order of their places, over all lanes, each locked when it is given out."""
    first = [max((lane.place, lane.head), looking.beyond) for lane, _ in line]
    turns: list[tuple[int, int, int, Stored | None]] = [(*start, number, None) for number, start in enumerate(first)]
    coming = [_of_lane(tx, lane, definition, looking) for lane, definition in line]
    heapify(turns)
    while turns and turns[0][:2] < looking.before:
        at, key, number, found = heappop(turns)
        if found is not None:
            if _serves(wanted, line[number][0], found.task):
                yield found
            heappush(turns, (at, key + 1, number, None))
        elif (found := next(coming[number], None)) is not None:
            heappush(turns, (place(found.task), found.key, number, found))


def _of_lane(tx: Tx, lane: Lane, definition: Definition, looking: Looking) -> Iterator[Stored]:
    """The tasks of one lane. It ends as soon as its limit is used up; and at the first that is held: behind a backlog that is
    let go at a rate everybody waits for its turn."""
    head = (lane.place, lane.head)
    if looking.held and head < looking.beyond and _begins_held(tx, lane, definition, looking):
        return
    start = max(head, looking.beyond)
    while definition.version not in looking.barred and not _used_up(tx, definition, lane):
        page = tasks.next_in_lane(tx, lane, start, looking.together, waiting=looking.waiting)
        for number, found in enumerate(page):
            if (looking.held and holding.stops(tx, definition, found.task)) or (number and _used_up(tx, definition, lane)):
                return
            yield found
        if len(page) < looking.together:
            return
        start = (place(page[-1].task), page[-1].key + 1)


def _begins_held(tx: Tx, lane: Lane, definition: Definition, looking: Looking) -> bool:
    """Whether the first task of a lane is held, where a look goes on behind it."""
    first = tasks.next_in_lane(tx, lane, (lane.place, lane.head), 1, waiting=looking.waiting)
    return bool(first) and holding.stops(tx, definition, first[0].task)


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
