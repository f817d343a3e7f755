"""Workers: functions that are called with tasks of a machine, while the lease of each is kept.

worker = Worker(pm)

@worker.on("articles")
def write(work: Work) -> Outcome:
    return work.propose("hand_in", {"draft": written(work.task.fields["title"])})
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import iscoroutinefunction
from itertools import cycle, islice
from threading import Event, Lock
from typing import Any, TypeAlias

from pointsman.engine.pointsman import Pointsman
from pointsman.engine.service import Service
from pointsman.errors import Refusal, invalid
from pointsman.kernel.task import Task
from pointsman.worker.keeper import Clock, Keeper
from pointsman.worker.leaving import give_back, leave

log = logging.getLogger("pointsman")

SLICE_S = 0.5
AWAY_S = 1.0
"""How long to wait before the store is asked again after it could not be."""
GRACE_S = 30.0


@dataclass(frozen=True, slots=True)
class Done:
    """A step was accepted; `task` as it is now."""

    task: Task


Outcome: TypeAlias = Done
"""What a handler answers."""


class Work:
    """One task in a handler's hands. `lost` says why, once the lease is lost: what is proposed after that is refused."""

    def __init__(self, keeper: Keeper, task: Task, by: str, asked_at: float):
        self.task = task
        self.lost: Refusal | None = None
        self._keeper, self._claimed, self._by = keeper, task, by
        self._kept = keeper.keep(task, by, asked_at, self._was_lost)

    def propose(self, event: str, args: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Done:
        """Propose an event as the owner, now. Refused is raised as everywhere."""
        asked_at, task = self._keeper.clock(), self.task
        self.task = self._keeper.pm.propose(
            task.id, event, args, by=self._by, epoch=task.epoch, session=task.session, idempotency_key=idempotency_key
        )
        self._keeper.heard(self._kept, self.task, asked_at)
        return Done(self.task)

    def _end(self, reason: str, *, well: bool) -> None:
        """Its handler is done: give back what is still held."""
        self._keeper.let_go(self._kept)
        if self.lost is None:
            leave(self._keeper.pm, self._claimed, self._by, reason, well=well)

    def _give_up(self, reason: str) -> None:
        """Give it back, uncounted, while its handler still runs; what that proposes later is refused."""
        self._keeper.let_go(self._kept)
        give_back(self._keeper.pm, self.task.id, self._claimed.epoch, self._by, reason, counts=False)

    def _was_lost(self, no: Refusal) -> None:
        self.lost = no
        log.warning("task %s is lost: %s", self.task.id, no.detail)


Handler: TypeAlias = Callable[[Work], object]


@dataclass(frozen=True, slots=True)
class Route:
    """Which tasks a handler is called with: of a machine, and in a state or, without one, those that wait to be claimed;
    that have all `tags`, and need nothing but these `capabilities`."""

    machine: str
    state: str | None
    tags: Sequence[str]
    capabilities: Sequence[str]
    handler: Handler


class Worker:
    """Claims tasks and calls handlers with them, on as many threads as it is started with."""

    def __init__(self, pm: Pointsman | None = None, *, clock: Clock = time.monotonic):
        """Without a database it only collects handlers; `bind` gives it one."""
        self.routes: list[Route] = []
        self.keeper: Keeper | None = None
        self._clock = clock
        self._next = 0
        self._turn = Lock()
        self._stopping = Event()
        self._threads: list[Service] = []
        self._working = set[Work]()
        if pm is not None:
            self.bind(pm)

    def on(
        self, machine: str, *, state: str | None = None, tags: Sequence[str] = (), capabilities: Sequence[str] = ()
    ) -> Callable[[Handler], Handler]:
        """Call the function with each task of the machine that can be claimed: in `state`, or else wherever tasks wait; with
        all `tags`, and no need that is not among the `capabilities`."""

        def noted(handler: Handler) -> Handler:
            if iscoroutinefunction(handler):
                raise TypeError("a handler is a plain function: it runs on a thread of its own")
            self.routes.append(Route(machine, state, tags, capabilities, handler))
            return handler

        return noted

    def bind(self, pm: Pointsman) -> None:
        """The database to work on."""
        self.keeper = Keeper(pm, self._clock)

    def start(self, by: str, *, concurrency: int = 1) -> None:
        """Work until `stop`, once, with so many tasks at a time. Every handler's machine and state must be served."""
        keeper = self._bound()
        if faults := [fault for route in self.routes for fault in _faults(keeper.pm, route)]:
            raise invalid(*faults)
        keeper.start()
        self._threads = [Service(f"worker-{n}", lambda: self._round(by), AWAY_S) for n in range(concurrency)]
        for thread in self._threads:
            thread.start()

    def stop(self, grace_s: float = GRACE_S) -> None:
        """Take no further task; give back, without counting it, what no handler has finished in so many seconds."""
        self._stopping.set()
        until = self._clock() + grace_s
        with self._turn:
            """Whoever was claiming has said what came of it."""
        for thread in self._threads:
            thread.stop(max(0.0, until - self._clock()))
        for work in list(self._working):
            work._give_up("the worker was told to stop")
        self._bound().stop()

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

    def _taken(self, by: str, wait_s: float) -> tuple[Route, Work] | None:
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
                work = Work(keeper, task, by, asked_at)
                self._working.add(work)
                return route, work
        return None

    def _handle(self, route: Route, work: Work) -> None:
        try:
            route.handler(work)
        except (Exception, SystemExit) as error:
            log.exception("the handler of task %s failed", work.task.id)
            work._end(f"the handler raised {type(error).__name__}: {error}", well=False)
        else:
            work._end("the handler returned", well=True)
        finally:
            self._working.discard(work)

    def _bound(self) -> Keeper:
        if self.keeper is None:
            raise invalid(("Worker", "has no database: write Worker(pm), or start it with `pointsman worker`"))
        return self.keeper


def _faults(pm: Pointsman, route: Route) -> list[tuple[str, str]]:
    place = f"@worker.on({route.machine!r})"
    machine = pm.machines.get(route.machine)
    if machine is None:
        return [(place, f"no such machine is served; served: {', '.join(sorted(pm.machines)) or 'none'}")]
    if route.state is not None and route.state not in machine.state:
        return [(place, f"the machine has no state {route.state!r}; it has {', '.join(machine.state)}")]
    return []
