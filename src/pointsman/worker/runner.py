"""A command for each task: claim, start the command, keep the lease, stop the command when it is lost, give back what is
still held when the command has ended."""

import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import Self

from pointsman.engine.pointsman import Pointsman
from pointsman.errors import Refusal, Refused, StoreError
from pointsman.kernel.task import Task
from pointsman.worker.command import Command, End
from pointsman.worker.keeper import Clock, Keeper
from pointsman.worker.leaving import give_back, leave

log = logging.getLogger("pointsman")

SLICE_S = 0.5
"""How long a claim waits at a stretch: so soon a signal is heeded."""
LONGEST_PAUSE_S = 60.0
STOPPED = "whoever ran the command was told to stop"


@dataclass(frozen=True, slots=True)
class Order:
    """What to run, with which tasks: those that have all `tags` and need none but these `capabilities`. `environment` is what the
    command finds in its own."""

    machine: str
    argv: Sequence[str]
    environment: Callable[[Task], Mapping[str, str]]
    grace_s: float
    lease_s: float | None = None
    stdout: int | None = None
    tags: Sequence[str] = ()
    capabilities: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of one task. `task` is as it stands afterwards, `claimed` as it was taken; `lost` says why the command
    was stopped for its task's sake; `released` that the task was still held and was given back."""

    claimed: Task
    task: Task
    end: End
    lost: Refusal | None
    released: bool

    @property
    def moved(self) -> bool:
        """Whether the command did something about the task that stays."""
        return not self.released and self.lost is None


class Runner:
    """Runs one command at a time, inside a `with` block. `stop` may be called by a signal handler: it only puts into a
    queue."""

    def __init__(self, pm: Pointsman, by: str, order: Order, clock: Clock = time.monotonic):
        self.pm, self.by, self.order, self.clock = pm, by, order, clock
        self.keeper = Keeper(pm, clock)
        self.stopped: int | None = None
        self._events = SimpleQueue[Refusal | int | None]()

    def __enter__(self) -> Self:
        self.keeper.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.keeper.stop()

    def stop(self, number: int) -> None:
        """Take no further task, and pass a signal on to the command that runs."""
        self.stopped = number
        self._events.put(number)

    def loop(self, wait_s: float, told: Callable[[Ran], None]) -> None:
        """One task after the other, until none came for so long. After tasks that a command left as they were, it waits,
        longer each time: else it would get the same task again at once."""
        fruitless = 0
        while self.stopped is None:
            try:
                ran = self.run_once(wait_s)
            except StoreError as error:
                log.warning("no task was taken: %s", error)
                fruitless += 1
            else:
                if ran is None:
                    return
                told(ran)
                fruitless = 0 if ran.moved else fruitless + 1
            if fruitless:
                self._heard(min(LONGEST_PAUSE_S, 2.0 ** (fruitless - 1)))

    def run_once(self, wait_s: float) -> Ran | None:
        """Run the command with one task; None when none came within `wait_s` seconds, or when told to stop."""
        self._events = SimpleQueue()
        asked_at, task = self._claimed(wait_s)
        if task is None:
            return None
        if self.stopped is not None:
            self._return(task, STOPPED)
            return None
        return self._run(task, asked_at)

    def _claimed(self, wait_s: float) -> tuple[float, Task | None]:
        until = self.clock() + wait_s
        while True:
            asked_at = self.clock()
            task = self.pm.claim(
                self.order.machine,
                by=self.by,
                tags=self.order.tags,
                capabilities=self.order.capabilities,
                session=f"run-{self.pm.engine.chance(64):016x}",
                lease_s=self.order.lease_s,
                wait_s=max(0.0, min(SLICE_S, until - asked_at)),
            )
            if task is not None or self.stopped is not None or self.clock() >= until:
                return asked_at, task

    def _run(self, task: Task, asked_at: float) -> Ran:
        events = self._events
        try:
            command = Command(self.order.argv, self.order.environment(task), partial(events.put, None), self.order.stdout)
        except OSError as error:
            self._return(task, f"the command could not be started: {error}")
            raise
        kept = self.keeper.keep(task, self.by, asked_at, events.put, self.order.lease_s)
        lost = self._until_ended(command)
        end = command.end()
        self.keeper.let_go(kept)
        return self._ran(task, end, lost)

    def _until_ended(self, command: Command) -> Refusal | None:
        """Stop the command when its lease is lost, pass signals on, and kill what does not end in time. Why it was lost."""
        lost, patience_s = None, None
        while True:
            try:
                event = self._events.get(timeout=patience_s)
            except Empty:
                command.send(signal.SIGKILL)
                patience_s = None
                continue
            if event is None:
                return lost
            if isinstance(event, Refusal):
                lost = event
            command.send(event if isinstance(event, int) else signal.SIGTERM)
            patience_s = self.order.grace_s

    def _ran(self, task: Task, end: End, lost: Refusal | None) -> Ran:
        back = None if lost is not None else self._left(task, end)
        return Ran(task, self._seen(task), end, lost, back is not None)

    def _left(self, task: Task, end: End) -> Task | None:
        if self.stopped is not None:
            return self._return(task, STOPPED)
        return leave(self.pm, task, self.by, f"the command {end}", well=end.well)

    def _return(self, task: Task, reason: str) -> Task | None:
        """Without an attempt: the command has nothing to do with it."""
        return give_back(self.pm, task.id, task.epoch, self.by, reason, counts=False)

    def _seen(self, task: Task) -> Task:
        try:
            return self.pm.get(task.id)
        except Refused:
            return task

    def _heard(self, wait_s: float) -> None:
        """Wait, but not longer than until told to stop."""
        with suppress(Empty):
            self._events.get(timeout=wait_s)
