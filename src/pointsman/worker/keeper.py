"""Keeping leases while somebody works: each is renewed in time, and whoever works is told at once when it is lost.

A lease is timed by a monotonic clock that was read before the store was asked, so that it never seems to end later
than it does. Two threads serve all leases of a process: one asks the store, over a connection that nobody else uses, the
other looks at the clock, because the first may hang in a store that does not answer.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from threading import Lock

from pointsman.engine.owning import Owning
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.service import Service
from pointsman.engine.steps import drive
from pointsman.engine.view import By
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel.definition import Definition
from pointsman.kernel.lease import LONGEST
from pointsman.kernel.task import Task
from pointsman.types import SECOND

log = logging.getLogger("pointsman")

Clock = Callable[[], float]
"""Seconds that only rise."""

LOOK_S = 0.1
ASK, AGAIN, GIVE_UP = 1 / 3, 1 / 10, 4 / 5
"""Parts of a lease: when it is renewed, how long after a silence it is tried again, when it is given up."""
IDLE_S = 900.0
"""Stands in for the lease where a machine declares none: then the keeper only looks whether the task is still its owner's."""


@dataclass(slots=True)
class Kept:
    """A lease that is being kept. `task` is what the store last answered, `lost` is called once, from a thread of the
    keeper. `lease_s` is for how long renewals ask, if not for the state's own time. `ends_at` is None while the task waits
    without a lease; `capped` says that renewing no longer moves the end; `owed_since` is when an answer fell due that has
    not come."""

    task: Task
    by: By
    lost: Callable[[Refusal], None]
    lease_s: float | None
    part_s: float
    asked_at: float = 0.0
    ask_at: float = 0.0
    ends_at: float | None = None
    give_up_at: float = 0.0
    capped: bool = False
    owed_since: float | None = None

    def late(self, now: float) -> bool:
        """The end is near, and either it cannot be moved or the store owes an answer: not one who slept and just woke."""
        if self.ends_at is None or now < self.give_up_at:
            return False
        return self.capped if self.owed_since is None else now - self.owed_since >= self.part_s


class Keeper:
    """Keeps any number of leases through one door."""

    def __init__(self, pm: Pointsman, clock: Clock = time.monotonic):
        self.pm = pm
        self.clock = clock
        self._db = pm.engine.db.aside()
        self._kept = dict[int, Kept]()
        self._lock = Lock()
        self._services = (Service("keeper", self.renew_once, LOOK_S), Service("lease-watch", self.watch_once, LOOK_S))

    def start(self) -> None:
        for service in self._services:
            service.start()

    def stop(self, wait_s: float | None = None) -> None:
        """Keep nothing any longer, and tell nobody."""
        with self._lock:
            self._kept.clear()
        for service in self._services:
            service.stop(wait_s)

    def keep(
        self, task: Task, by: By, asked_at: float, lost: Callable[[Refusal], None] = lambda _: None, lease_s: float | None = None
    ) -> Kept:
        """Keep a task that was claimed by a call made at `asked_at`, until `let_go`. `lease_s` is what the claim asked for."""
        kept = Kept(task, by, lost, lease_s, _shortest(self.definition(task), lease_s) * ASK)
        with self._lock:
            self._kept[id(kept)] = kept
        self.heard(kept, task, asked_at, lease_s)
        return kept

    def heard(self, kept: Kept, task: Task, asked_at: float, lease_s: float | None = None) -> None:
        """What an accepted call of the owner answered, and for how long it asked. A task that has ended needs no keeping."""
        if self.ended(task):
            return self.let_go(kept)
        definition = self.definition(task)
        with self._lock:
            if asked_at >= kept.asked_at:  # else a later call has been answered before this one
                _timed(kept, definition, task, asked_at, lease_s)
        return None

    def lasts(self, kept: Kept, span_s: float) -> bool:
        """Whether a lease ends only after so many seconds from now; one that waits without a lease cannot be lost."""
        return kept.ends_at is None or kept.ends_at - self.clock() > span_s

    def let_go(self, kept: Kept) -> None:
        """Keep it no longer; nothing is told of it any more."""
        with self._lock:
            self._kept.pop(id(kept), None)

    def run_once(self) -> None:
        """One round of both threads."""
        self.renew_once()
        self.watch_once()

    def renew_once(self) -> bool:
        """Renew every lease of which a part has passed."""
        for kept in self._due(self.clock()):
            self._renew(kept)
        return False

    def watch_once(self) -> bool:
        """Give up the leases that are about to end all the same."""
        now = self.clock()
        self._due(now)
        with self._lock:
            late = [kept for kept in self._kept.values() if kept.late(now)]
        for kept in late:
            self._lose(kept, _too_late(kept))
        return False

    def _due(self, now: float) -> list[Kept]:
        with self._lock:
            due = [kept for kept in self._kept.values() if kept.ask_at <= now]
            for kept in due:
                kept.owed_since = now if kept.owed_since is None else kept.owed_since
        return due

    def _renew(self, kept: Kept) -> None:
        asked_at, task = self.clock(), kept.task
        try:
            lease_s = kept.lease_s
            steps = Owning.renew.steps(self.pm, task.id, by=kept.by, epoch=task.epoch, session=task.session, lease_s=lease_s)
            renewed = drive(steps, self._db)
        except StoreError as error:
            log.warning("the lease of task %s was not renewed: %s", task.id, error)
            kept.ask_at = self.clock() + kept.part_s / ASK * AGAIN
        except Refused as no:
            self._refused(kept, no.refusal, asked_at)
        else:
            self.heard(kept, renewed, asked_at, lease_s)

    def _refused(self, kept: Kept, no: Refusal, asked_at: float) -> None:
        """Waiting for a decision needs no lease, and what the owner itself has ended or given back is not lost."""
        definition = self.definition(kept.task)
        if no.code == "wrong_state" and no.state and not definition.state[no.state].final:
            with self._lock:
                _unleased(kept, asked_at)
        elif no.code in ("wrong_state", "not_owner") and self._left_by_owner(kept):
            self.let_go(kept)
        else:
            self._lose(kept, no)

    def _left_by_owner(self, kept: Kept) -> bool:
        """Whether the last entry is the owner's own. One that makes an owner has a new epoch, which is another refusal."""
        name = kept.by if isinstance(kept.by, str) else kept.by.name
        return self.pm.history(kept.task.id, 1)[-1].by == name

    def _lose(self, kept: Kept, no: Refusal) -> None:
        with self._lock:
            was_kept = self._kept.pop(id(kept), None) is not None
        if was_kept:
            kept.lost(no)

    def ended(self, task: Task) -> bool:
        """Nothing is left to be kept, or to be given back."""
        return self.definition(task).state[task.state].final

    def definition(self, task: Task) -> Definition:
        """Whoever holds a task has its machine."""
        found = self.pm.engine.registry.known(task.machine, task.machine_version)
        assert found is not None, "a task was claimed without its machine"
        return found


def _timed(kept: Kept, definition: Definition, task: Task, asked_at: float, lease_s: float | None) -> None:
    """When to ask again and when to give up, by what was just answered. The end that `max_hold` sets is known by the
    store's clock alone: it is as far from the end before as the store says."""
    state, before, ended_at = definition.state[task.state], kept.task.lease, kept.ends_at
    kept.task, kept.asked_at = task, asked_at
    if state.lease is None or task.lease is None:
        return _unleased(kept, asked_at)
    length = min(lease_s or state.lease / SECOND, (state.max_hold or LONGEST) / SECOND)
    kept.capped = state.max_hold is not None and task.lease.expires_at == task.updated_at + state.max_hold
    kept.ends_at = asked_at + length
    if kept.capped and before is not None and ended_at is not None:
        kept.ends_at = ended_at + (task.lease.expires_at - before.expires_at) / SECOND
    kept.give_up_at = kept.ends_at - length * (1 - GIVE_UP)
    kept.ask_at, kept.owed_since = asked_at + kept.part_s, None
    return None


def _unleased(kept: Kept, asked_at: float) -> None:
    """Nothing can be lost; the lease comes back with a decision, so it is looked for as often as before."""
    kept.ends_at, kept.capped, kept.owed_since, kept.ask_at = None, False, None, asked_at + kept.part_s


def _shortest(definition: Definition, asked_s: float | None) -> float:
    """The shortest lease that a task can come to, in seconds. Whoever works may move the task by calls that the keeper does
    not hear of, into a state whose lease is shorter."""
    declared = (state.lease / SECOND for state in definition.states if state.lease is not None)
    return min(chain(declared, () if asked_s is None else (asked_s,)), default=IDLE_S)


def _too_late(kept: Kept) -> Refusal:
    why = "it has been held silently for as long as its state allows" if kept.capped else "the store does not answer"
    return Refusal("lease_lost", f"the lease is about to end: {why}", task=kept.task.id, state=kept.task.state, version=kept.task.version)
