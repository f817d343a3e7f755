"""The relay: messages leave their lanes for the receivers outside, each lane in order, each message until it is taken.

    claim lanes → send the first message of each → settle: it goes, rests, or is parked with its lane → the next one

Nothing is sent in a transaction. Whoever dies between sending and settling has sent a message that another process will send
again, under the same id.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from pointsman.engine.decision import CHANCE_BITS
from pointsman.engine.service import Service
from pointsman.engine.view import Engine
from pointsman.errors import Refused
from pointsman.kernel.definition import Retry
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.kernel.retry import delay
from pointsman.store import hooks, outbox
from pointsman.store.database import Tx
from pointsman.store.hints import OUTBOX, Place
from pointsman.store.outbox import Lane, Waiting
from pointsman.types import Duration, Instant, hours, minutes, seconds

log = logging.getLogger("pointsman")

HELD: Duration = minutes(1)
"""For how long a lane is claimed; longer than any sink takes for one message."""
RETRY = Retry(tries=16, base=seconds(2), cap=hours(4))
"""When a message rests and for how long; after so many tries, half a day on average, its lane is parked."""
AT_ONCE = 4
"""Lanes of one hook that a process works on at a time."""
POOL_SIZE = 32
"""Lanes of all hooks; one more would be held and not sent."""
BURST = 100
"""Messages of one lane in a row; then others have their turn."""
PERIOD_S = 1.0
LONGEST_ERROR = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a message: `taken`, or to be sent `again` (not before `after`, if the receiver said so), or the receiver is
    `gone` and wants no more. `why` is for operators and holds nothing that the receiver said."""

    what: Literal["taken", "again", "gone"]
    why: str = ""
    after: Duration = 0


TAKEN = Answer("taken")
Sink = Callable[[Hook, Message, Instant], Answer]
"""Sends a message at a time. It may block, for less than `HELD`."""
Outlet = Callable[[Hook], Sink | None]
"""The sink of a hook; None where this process has none for it."""


class Inline(Executor):
    """Everything is done when it is handed over; for tests and for whoever wants to wait."""

    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> "Future[object]":  # pyright: ignore[reportIncompatibleMethodOverride]
        done: Future[object] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Relay:
    """Rounds of the relay. `heard` is called when there may be something to do."""

    def __init__(self, engine: Engine, outlet: Outlet, pool: Executor, heard: Callable[[], None] = lambda: None):
        self._engine, self._outlet, self._pool, self._heard = engine, outlet, pool, heard
        self._lock = threading.Lock()
        self._busy = Counter[str]()
        self._first = 0
        self._stop = threading.Event()
        self._ear = ExitStack()
        self._place: Place | None = None

    def run_once(self) -> bool:
        """Begin on what is due; True when there may be more."""
        self._listen()
        found = self._engine.db.read(hooks.in_use)
        self._hear(bool(found))
        served = [(hook, sink) for hook in found if hook.disabled_at is None and (sink := self._outlet(hook))]
        self._first += 1
        start = self._first % max(1, len(served))  # another one each time: the first ones may need all threads
        return sum(self._begin(hook, sink) for hook, sink in served[start:] + served[:start]) > 0

    def stop(self) -> None:
        """No further message is begun; what a receiver is being told is waited for."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)
        self._ear.close()

    def _listen(self) -> None:
        """Before the look: what is committed during it is heard."""
        if self._place is not None:
            self._place.listen().add_done_callback(lambda _: self._heard())

    def _hear(self, wanted: bool) -> None:
        """A board without hooks waits for nothing."""
        if wanted and self._place is None:
            self._place = self._ear.enter_context(self._engine.db.hints.waiting(OUTBOX))
            self._listen()
        elif not wanted and self._place is not None:
            self._ear.close()
            self._place = None

    def _begin(self, hook: Hook, sink: Sink) -> bool:
        with self._lock:
            free = min(AT_ONCE - self._busy[hook.id], POOL_SIZE - self._busy.total())
        if free <= 0 or self._stop.is_set() or not self._engine.db.read(lambda tx: outbox.is_due(tx, hook.id)):
            return False
        claimed = self._engine.db.run(lambda tx: outbox.claim(tx, hook.id, HELD, free))
        for lane, first in claimed:
            self._count(hook, 1)
            self._pool.submit(self._carry, hook, sink, lane, first)
        return bool(claimed)

    def _count(self, hook: Hook, number: int) -> None:
        with self._lock:
            self._busy[hook.id] += number

    def _carry(self, hook: Hook, sink: Sink, lane: Lane, first: Waiting) -> None:
        """Send what stands in a lane."""
        try:
            self._sent(hook, sink, lane, first)
        except Refused as error:  # the store is busy or away: whoever claims the lane next sends it again
            log.warning("messages for hook %s: %s", hook.id, error)
        finally:
            self._count(hook, -1)
            self._heard()

    def _sent(self, hook: Hook, sink: Sink, lane: Lane, first: Waiting) -> None:
        waiting: Waiting | None = first
        for _ in range(BURST):
            answer = self._answer(hook, sink, waiting.message)
            waiting = self._engine.db.run(partial(self._settle, hook, lane, waiting, answer))
            if waiting is None:
                return
            lane = replace(lane, tries=0)
            if self._stop.is_set():
                break
        self._engine.db.run(lambda tx: outbox.rest(tx, lane, tx.now, 0, ""))

    def _answer(self, hook: Hook, sink: Sink, message: Message) -> Answer:
        try:
            return sink(hook, message, self._engine.clock())
        except Exception as error:  # noqa: BLE001 - a sink of an embedding program may raise anything, and then it took nothing
            return Answer("again", type(error).__name__)

    def _settle(self, hook: Hook, lane: Lane, waiting: Waiting, answer: Answer, tx: Tx) -> Waiting | None:
        """Write down what became of a message; the next one of its lane, if it is to be sent now."""
        why, tries = answer.why[:LONGEST_ERROR], lane.tries + 1
        if answer.what == "taken":
            return outbox.delivered(tx, lane, waiting.key, HELD)
        if answer.what == "gone":
            _disable(tx, hook, why)
        elif tries >= RETRY.tries:
            outbox.park(tx, lane, tries, why)
        else:
            chance = self._engine.chance(CHANCE_BITS) / 2**CHANCE_BITS
            outbox.rest(tx, lane, tx.now + max(delay(RETRY, tries - 1, chance), min(answer.after, RETRY.cap)), tries, why)
        return None


def _disable(tx: Tx, hook: Hook, why: str) -> None:
    """Its receiver wants nothing more: all of its lanes are parked, and what comes is parked from the beginning. Whoever is deciding
    is waited for."""
    hooks.lock(tx)
    kept = hooks.find(tx, hook.id)
    if kept is not None and kept.hook.removed_at is None:
        if kept.hook.disabled_at is None:
            hooks.change(tx, kept, replace(kept.hook, disabled_at=tx.now))
        outbox.park_all(tx, hook.id, why)


class Relaying:
    """The relay of a running process: a round as soon as a message may be there, and at least once a second."""

    def __init__(self, engine: Engine, outlet: Outlet):
        pool = ThreadPoolExecutor(POOL_SIZE, thread_name_prefix="pointsman-send")
        self._service = Service("relay", lambda: self._relay.run_once(), period_s=PERIOD_S)
        self._relay = Relay(engine, outlet, pool, self._service.nudge)
        self._service.start()

    def stop(self) -> None:
        self._service.stop()
        self._relay.stop()
