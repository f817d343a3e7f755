"""Workers: functions that are called with tasks of a machine, while the lease of each is kept.

worker = Worker(pm)

@worker.on("refunds", state="approved")
def pay(work: Work) -> Outcome:
    order = work.step("load order", load, work.task.fields["order"])
    receipt = work.effect("refund", send, find=find)
    return work.propose("complete", {"receipt": receipt})
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from itertools import cycle, islice
from threading import Event, Lock
from typing import Any, TypeAlias, TypeVar

from pointsman.engine.pointsman import Pointsman
from pointsman.engine.service import Service
from pointsman.errors import Refusal, invalid
from pointsman.kernel.task import Task
from pointsman.store.database import Probe
from pointsman.worker.keeper import Clock, Keeper
from pointsman.worker.leaving import conclude, give_back
from pointsman.worker.outcomes import Cancel, Defer, Done, End, Fail, Halt, Lost, NotSent
from pointsman.worker.work import AsyncWork, Work

log = logging.getLogger("pointsman")

SLICE_S = 0.5
AWAY_S = 1.0
"""How long to wait before the store is asked again after it could not be."""
GRACE_S = 30.0


def unwatched(point: str) -> None:
    """The probe of production."""


Handler: TypeAlias = Callable[[Work], object] | Callable[[AsyncWork], Awaitable[object]]
"""An `async def` is called with an AsyncWork, and awaited."""
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of one task: as its handler left it, and how that ended."""

    task: Task
    end: End


@dataclass(frozen=True, slots=True)
class InHand:
    """A task in work: for how long it has been, how much of its lease is left, if it has one, and what was done last."""

    task: Task
    age_s: float
    left_s: float | None
    last: str | None


@dataclass(frozen=True, slots=True)
class Route:
    """Which tasks a handler is called with: of a machine, and in a state or, without one, those that wait to be claimed;
    that have all `tags`, and need nothing but these `capabilities`."""

    machine: str
    state: str | None
    tags: Sequence[str]
    capabilities: Sequence[str]
    handler: Handler

    @property
    def awaits(self) -> bool:
        return iscoroutinefunction(self.handler)


class Worker:
    """Claims tasks and calls handlers with them, on as many threads as it is started with."""

    def __init__(self, pm: Pointsman | None = None, *, clock: Clock = time.monotonic, probe: Probe = unwatched):
        """Without a database it only collects handlers; `bind` gives it one. A `probe` is called at each of owned.POINTS."""
        self.routes: list[Route] = []
        self.keeper: Keeper | None = None
        self._clock, self._probe = clock, probe
        self.told: Callable[[Ended], None] = lambda _: None
        self._next = 0
        self._turn, self._telling = Lock(), Lock()
        self._stopping = Event()
        self._threads: list[Service] = []
        self._working = set[Work | AsyncWork]()
        if pm is not None:
            self.bind(pm)

    def on(self, machine: str, *, state: str | None = None, tags: Sequence[str] = (), capabilities: Sequence[str] = ()) -> Callable[[H], H]:
        """Call the function with each task of the machine that can be claimed: in `state`, or else wherever tasks wait; with
        all `tags`, and no need that is not among the `capabilities`. Each call has a thread of its own; one that is `async def`
        has an event loop there."""

        def noted(handler: H) -> H:
            self.routes.append(Route(machine, state, tags, capabilities, handler))
            return handler

        return noted

    def bind(self, pm: Pointsman) -> None:
        """The database to work on."""
        self.keeper = Keeper(pm, self._clock)

    def start(self, by: str, *, concurrency: int = 1, told: Callable[[Ended], None] | None = None) -> None:
        """Work until `stop`, once, with so many tasks at a time. `told` hears what came of each task, of one at a time."""
        keeper = self._bound()
        self.check()
        if told is not None:
            self.told = told
        keeper.start()
        self._threads = [Service(f"worker-{n}", lambda: self._round(by), AWAY_S) for n in range(concurrency)]
        for thread in self._threads:
            thread.start()

    def check(self) -> None:
        """Every handler's machine and state must be served."""
        keeper = self._bound()
        if faults := [fault for route in self.routes for fault in _faults(keeper.pm, route)]:
            raise invalid(*faults)

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Take no further task; give back, without counting it, what no handler has finished in so many seconds."""
        self._stopping.set()
        until = self._clock() + grace_s
        with self._turn:
            """Whoever was claiming has said what came of it."""
        for thread in self._threads:
            thread.stop(max(0.0, until - self._clock()))
        for work in list(self._working):
            self._give_up(work, "the worker was told to stop")
        self._bound().stop()

    def in_hand(self) -> list[InHand]:
        """What is being worked on, the longest first."""
        now = self._clock()
        every = sorted(self._working.copy(), key=lambda work: work.claimed_at)
        lefts = [None if work.kept.ends_at is None else work.kept.ends_at - now for work in every]
        return [InHand(work.task, now - work.claimed_at, left, work.last) for work, left in zip(every, lefts, strict=True)]

    def run_once(self, by: str, wait_s: float = 0.0) -> bool:
        """Take one task and call its handler, on this thread; whether there was one within `wait_s` seconds."""
        with self._turn:  # one thread waits for work, the others for their turn
            taken = self._taken(by, wait_s)
        if taken is None:
            return False
        self._handle(*taken)
        return True

    def _round(self, by: str) -> bool:
        """Nothing came: the claim has waited, so look again at once."""
        self.run_once(by, SLICE_S)
        return True

    def _taken(self, by: str, wait_s: float) -> tuple[Route, Work | AsyncWork] | None:
        """The first task of any handler's, each asked for in its turn."""
        keeper, routes = self._bound(), list(islice(cycle(self.routes), self._next, self._next + len(self.routes)))
        for route in routes:
            if self._stopping.is_set():
                return None
            self._next = (self._next + 1) % len(routes)
            asked_at, states = self._clock(), None if route.state is None else (route.state,)
            session = f"worker-{keeper.pm.engine.chance(64):016x}"
            who = {"tags": route.tags, "capabilities": route.capabilities, "by": by, "session": session}
            task = keeper.pm.claim(route.machine, states=states, wait_s=wait_s / len(routes), **who)
            if task is not None:
                work = (AsyncWork if route.awaits else Work)(keeper, task, by, asked_at, self._probe)
                self._working.add(work)
                return route, work
        return None

    def _handle(self, route: Route, work: Work | AsyncWork) -> None:
        keeper, end = self._bound(), _ended(route, work)
        keeper.let_go(work.kept)
        if work.lost is not None:
            end = Lost(work.lost)
        try:
            if not keeper.ended(work.task):
                conclude(keeper.pm, work.claimed, work.by, end)
        finally:
            self._working.discard(work)
        with self._telling:
            self.told(Ended(work.task, end))

    def _give_up(self, work: Work | AsyncWork, reason: str) -> None:
        """Give it back, uncounted, while its handler still runs; whatever that asks for later ends it."""
        keeper = self._bound()
        keeper.let_go(work.kept)
        work.lose(Refusal("lease_lost", reason, task=work.task.id, state=work.task.state, version=work.task.version))
        give_back(keeper.pm, work.task.id, work.claimed.epoch, work.by, reason, counts=False)

    def _bound(self) -> Keeper:
        if self.keeper is None:
            raise invalid(("Worker", "has no database: write Worker(pm), or start it with `pointsman worker`"))
        return self.keeper


def _ended(route: Route, work: Work | AsyncWork) -> End:
    """Call a handler, and what came of it. Whatever it returns that is no outcome says nothing."""
    handler: Callable[[Any], Any] = route.handler
    try:
        answer = asyncio.run(handler(work)) if route.awaits else handler(work)
    except Halt as halt:
        return halt.outcome
    except NotSent as no:
        return Defer(f"nothing was sent: {no}", no.rest_s)
    except (Exception, SystemExit) as error:
        log.exception("the handler of task %s failed", work.task.id)
        return Fail(f"the handler raised {type(error).__name__}: {error}")
    return answer if isinstance(answer, Done | Fail | Defer | Cancel) else None


def _faults(pm: Pointsman, route: Route) -> list[tuple[str, str]]:
    place = f"@worker.on({route.machine!r})"
    machine = pm.machines.get(route.machine)
    if machine is None:
        return [(place, f"no such machine is served; served: {', '.join(sorted(pm.machines)) or 'none'}")]
    if route.state is not None and route.state not in machine.state:
        return [(place, f"the machine has no state {route.state!r}; it has {', '.join(machine.state)}")]
    return []
