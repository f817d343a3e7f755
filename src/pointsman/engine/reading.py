"""The verbs that only look: tasks now and then, lists, history, the feed, proposals, reports."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from pointsman.engine import past, pending
from pointsman.engine.decision import find
from pointsman.engine.door import principal
from pointsman.engine.past import numbered
from pointsman.engine.queries import Entry, Proposed, entry, proposed
from pointsman.engine.related import children_of, upstreams
from pointsman.engine.steps import Read, Steps, Write, verb
from pointsman.engine.view import By, Id, View, page_size, patience, proposal_named, task_named, typed
from pointsman.engine.waiting import until
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Decided, Evidence, Task
from pointsman.kernel.waiting import waiting
from pointsman.store import feed, history, lists
from pointsman.store.database import Tx
from pointsman.store.hints import FEED, of_task
from pointsman.store.history import Audited
from pointsman.store.lists import FIRST, Filter, Order, Position, position
from pointsman.store.refusals import Logged
from pointsman.types import Instant, Json

Entries = list[Entry]
Refusals = list[Logged]
Tasks = list[Task]
LONGEST_WAIT_S = 86_400


class Reading(View):
    @verb
    def get(
        self, id: Id, *, version: int | None = None, at: str | Instant | None = None, by: By | None = None, session: str | None = None
    ) -> Steps[Task]:
        """A task as it is, as it was at a version, or as it was at a time or feed number (`"#57"`). With `by`,
        `allowed` of the task as it is holds the events open to that principal."""
        typed(("version", version, int | None), ("at", at, str | int | None))
        wanted = task_named(id)
        if version is not None and at is not None:
            raise invalid(("at", "give a version or a moment, not both"))
        if version is not None:
            return (yield Read(lambda tx: past.at_version(tx, wanted, version)[1]))
        if at is not None:
            seq = yield from past.moment(at)
            return (yield Read(lambda tx: past.task_at(tx, wanted, seq)))
        who = None if by is None else principal(by)
        return (yield Read(lambda tx: self._with_children(tx, self.seen(tx, find(tx, wanted).task, who, session))))

    def _with_children(self, tx: Tx, task: Task) -> Task:
        children = children_of(self.engine.registry, tx, task.id)
        return task.but(children=children) if children.total else task

    def seen(self, tx: Tx, task: Task, who: Principal | None, session: str | None) -> Task:
        """A task with what it waits for, and what is open to whoever looks."""
        definition = self.engine.registry.definition(tx, task.machine, task.machine_version)
        mine = () if who is None else allowed(definition, task, who, session)
        ahead = upstreams(self.engine.registry, tx, task.id) if task.blocked_by else ()
        return task.but(waiting=waiting(definition, task, tx.now, ahead), allowed=mine)

    @verb
    def list(
        self,
        *,
        machine: str | None = None,
        state: str | Sequence[str] | None = None,
        owner: str | None = None,
        tag: str | None = None,
        open: bool | None = None,
        inbox: str | None = None,
        q: str | None = None,
        order: Order = "created_at",
        limit: int | None = None,
        after: Task | Position | None = None,
        at: str | Instant | None = None,
        by: By | None = None,
        session: str | None = None,
    ) -> Steps[Tasks]:
        """A page of tasks, at most 1,000, that follow `after` in this order, ties by id.

        `inbox` is a name: its own open tasks and the unowned ones in the initial state. `open` leaves out final states.
        `tag` is one that they have; `q` are words that must all occur in text fields, case ignored. `at` shows the board as
        it was, by creation. With `by`, `allowed` of tasks as they are holds the events open to that principal."""
        typed(("machine", machine, str | None), ("owner", owner, str | None), ("q", q, str | None), ("at", at, str | int | None))
        typed(("state", state, str | list | tuple | None), ("tag", tag, str | None))
        count = page_size(limit)
        wanted = self._filter(machine, state, owner, bool(open), inbox)
        sought = Sought(tag, (q or "").casefold().split())
        if order not in ("created_at", "updated_at", "priority") or (at is not None and order != "created_at"):
            raise invalid(("order", "created_at, updated_at or priority; the past is in order of creation"))
        start = _position(after, order)
        if at is None:
            who = None if by is None else principal(by)
            found = partial(_found, wanted=wanted, sought=sought, order=order, count=count, start=start)
            return (yield Read(lambda tx: [self.seen(tx, task, who, session) for task in found(tx)]))
        seq = yield from past.moment(at)
        return (yield Read(lambda tx: list(islice(self._board(tx, seq, wanted, sought, start), count))))

    def _filter(
        self, machine: str | None, state: str | Sequence[str] | None, owner: str | None, is_open: bool, inbox: str | None
    ) -> Filter:
        if machine is not None and machine not in self.machines:
            raise Refused(Refusal("unknown_machine", "no such machine is served here"))
        if inbox is not None and machine is None:
            raise invalid(("machine", "an inbox is of one machine: name it"))
        states = (state,) if isinstance(state, str) else state
        typed(*((f"state[{index}]", item, str) for index, item in enumerate(states or ())), ("inbox", inbox, str | None))
        initial = self.machines[machine].initial if machine is not None else None
        return Filter(machine, states, owner, is_open or inbox is not None, inbox, initial)

    def _board(self, tx: Tx, seq: int, wanted: Filter, sought: "Sought", start: Position) -> Iterator[Task]:
        """The board as of a moment, filtered as a list of the present is."""
        for task in past.board(tx, seq, start):
            final = self.engine.registry.definition(tx, task.machine, task.machine_version).state[task.state].final
            if wanted.admits(task, final=final) and sought.fits(task):
                yield task

    @verb
    def as_of(self, at: str | Instant | None = None) -> Steps[int]:
        """The feed number that a moment means; without one the last, once everything committed has a number."""
        typed(("at", at, str | int | None))
        if at is not None:
            return (yield from past.moment(at))
        yield from numbered()
        return (yield Read(lambda tx: feed.head(tx).seq))

    @verb
    def history(self, id: Id | None = None, n: int | None = None, *, before: int | None = None, after: int | None = None) -> Steps[Entries]:
        """A task's history, oldest first: its last `n` entries, or those beyond version `after`. Without id the whole
        board, newest first, those before feed number `before`."""
        typed(("before", before, int | None), ("after", after, int | None))
        yield from numbered()
        if id is None:
            count = page_size(n, "n")
            return (yield Read(lambda tx: _entries(history.feed_before(tx, before, Audited(), count))))
        typed(("n", n, int | None))
        if n is not None and n < 1:
            raise invalid(("n", "must be at least 1"))
        return (yield Read(partial(_history_of, task_named(id), n, after)))

    @verb
    def feed(self, after: int = 0, limit: int | None = None, *, wait_s: float = 0) -> Steps[Entries]:
        """Entries beyond a feed number, in feed order; while there are none, after up to `wait_s` seconds."""
        typed(("after", after, int))
        patience(wait_s)
        count = page_size(limit)

        def look() -> Steps[Entries | None]:
            yield from numbered()
            return (yield Read(lambda tx: _entries(history.feed_after(tx, after, count)))) or None

        return (yield from until(self.engine, FEED, look, wait_s)) or []

    @verb
    def audit(
        self,
        *,
        actor: str | None = None,
        event: str | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> Steps[Entries]:
        """Entries by whom, of which event, and when (`start` ≤ at < `end`), newest first."""
        typed(("actor", actor, str | None), ("event", event, str | None))
        typed(("from", start, int | None), ("to", end, int | None), ("before", before, int | None))
        count = page_size(limit)
        yield from numbered()
        return (yield Read(lambda tx: _entries(history.feed_before(tx, before, Audited(actor, event, start, end), count))))

    @verb
    def diff(self, id: Id, start: int, end: int) -> Steps[dict[str, Json]]:
        """What moved between two versions of a task; long texts as unified diffs."""
        typed(("from", start, int), ("to", end, int))
        wanted = task_named(id)
        pair = yield Read(lambda tx: (past.at_version(tx, wanted, start)[1], past.at_version(tx, wanted, end)[1]))
        return past.difference(*pair)

    @verb
    def evidence(self, id: Id) -> Steps[Mapping[str, Evidence]]:
        """A task's evidence by check, as it stands."""
        wanted = task_named(id)
        return (yield Read(lambda tx: find(tx, wanted).task.evidence))

    @verb
    def decisions(self, id: Id) -> Steps[Sequence[Decided]]:
        """Every decision on a task, oldest first, also those of earlier revisions."""
        wanted = task_named(id)
        return (yield Read(lambda tx: decisions_of(tx, wanted)))

    @verb
    def proposal(self, id: Id, *, wait_s: float = 0) -> Steps[Proposed]:
        """A proposal whose checks had to run: pending, accepted, refused or superseded; while it is pending, after up to
        `wait_s` seconds."""
        patience(wait_s)
        wanted = proposal_named(id)
        first = yield Read(lambda tx: proposed(pending.found_proposal(tx, wanted)))

        def look() -> Steps[Proposed | None]:
            found = yield Read(lambda tx: proposed(pending.found_proposal(tx, wanted)))
            return None if found.status == "pending" else found

        return first if first.status != "pending" else (yield from until(self.engine, of_task(first.task), look, wait_s)) or first

    @verb
    def wait(self, id: Id, *, version: int | None = None, states: Sequence[str] | None = None, timeout_s: float = 25) -> Steps[Task]:
        """The task once it is beyond `version` or in one of `states`; at the timeout, as it stands."""
        typed(("version", version, int | None), ("states", states, list | tuple | None), ("timeout_s", timeout_s, int | float))
        if not 0 <= timeout_s <= LONGEST_WAIT_S:
            raise invalid(("timeout_s", f"must be from 0 to {LONGEST_WAIT_S} seconds"))
        wanted = task_named(id)

        def look() -> Steps[Task | None]:
            task = yield Read(lambda tx: find(tx, wanted).task)
            there = (version is not None and task.version > version) or (states is not None and task.state in states)
            return task if there else None

        found = yield from until(self.engine, of_task(wanted), look, timeout_s)
        return found or (yield Read(lambda tx: find(tx, wanted).task))

    @verb
    def refusals(self, n: int | None = None) -> Steps[Refusals]:
        """The last refusals, newest first."""
        count = page_size(n, "n")
        return (yield Write(lambda tx: self.engine.refusals.latest(tx, count)))


def _entries(recorded: Sequence[history.Recorded]) -> Entries:
    return [entry(item) for item in recorded]


def _history_of(wanted: str, n: int | None, after: int | None, tx: Tx) -> Entries:
    find(tx, wanted)
    if n is not None and after is None:
        return _entries(history.latest_of_task(tx, wanted, n)[::-1])
    return _entries(history.of_task(tx, wanted, after or 0, limit=history.LAST if n is None else n))


def decisions_of(tx: Tx, wanted: str) -> Sequence[Decided]:
    """Decisions leave a task with their revision; history keeps each in the entry that made it."""
    find(tx, wanted)
    made = [(item.payload or {}).get("changes", {}).get("decisions") for item in history.of_task(tx, wanted, 0)]
    return [Decided(**decisions[-1]) for decisions in made if decisions]


def _position(after: Task | Position | None, order: Order) -> Position:
    """Where a page begins."""
    if after is None:
        return FIRST
    if isinstance(after, Task):
        return position(after, order)
    if not (type(after) is tuple and [type(part) for part in after] == [int, str]):  # pyright: ignore[reportUnnecessaryComparison]
        raise invalid(("after", "the last task of the page before"))
    typed(("after", after[0], int), ("after", after[1], str))
    return after


@dataclass(frozen=True, slots=True)
class Sought:
    """What no index knows of a task: it is looked for in what a page holds."""

    tag: str | None
    words: Sequence[str]

    def fits(self, task: Task) -> bool:
        return self.tag in (None, *task.tags) and _says(task, self.words)


def _found(tx: Tx, wanted: Filter, sought: Sought, order: Order, count: int, start: Position) -> Tasks:
    """A page of the present; with a tag or words, as many pages as it takes."""
    if sought.tag is None and not sought.words:
        return lists.page(tx, wanted, order, count, start)
    found = Tasks()
    while page := lists.page(tx, wanted, order, 1_000, start):
        found += [task for task in page if sought.fits(task)]
        if len(found) >= count or len(page) < 1_000:
            break
        start = position(page[-1], order)
    return found[:count]


def _says(task: Task, words: Sequence[str]) -> bool:
    text = "\n".join(value for value in task.fields.values() if isinstance(value, str)).casefold()
    return all(word in text for word in words)
