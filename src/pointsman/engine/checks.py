"""Where checks run: a pool of their own threads, outside any transaction.

Asked twice for the same inputs at the same moment, a check runs once. One that outlives its time is an error for
everybody who waits, and its thread, which nothing can stop, is given up: it serves no more when it returns, a new one
takes its place, and it does not delay the exit of the process. So checks that never return cost a thread each, and
nothing else.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass
from typing import Any

from pointsman.errors import StoreError
from pointsman.kernel.bound import Judgement, errored
from pointsman.types import SECOND, Duration

POOL_SIZE = 64
Work = Callable[[Callable[[], bool]], Judgement]
"""Judges and keeps the judgement, unless the function it is given says that nobody waits any more."""


@dataclass(slots=True, eq=False)
class _Job:
    work: Work
    timeout: Duration
    future: "Future[Judgement]"
    given_up: bool = False


class Checks:
    def __init__(self, size: int = POOL_SIZE):
        self._size = size
        self._changed = threading.Condition()
        self._running: dict[Hashable, Future[Judgement]] = {}
        self._waiting: deque[_Job] = deque()
        self._threads = self._idle = 0
        self._open = True

    def start(self, key: Hashable, work: Work, timeout: Duration) -> "Future[Judgement]":
        """The judgement under `key`: the one being made, or a new one. Its time begins when a thread takes it up."""
        with self._changed:
            if found := self._running.get(key):
                return found
            job = _Job(work, timeout, Future())
            self._running[key] = job.future
            self._waiting.append(job)
            self._grow()
            self._changed.notify()
        job.future.add_done_callback(lambda _: self._forget(key))
        return job.future

    def close(self) -> None:
        """Take up nothing more. Checks that run are left to themselves; whoever waits for others is told."""
        with self._changed:
            self._open = False
            left = list(self._running.values())
            self._waiting.clear()
            self._changed.notify_all()
        for future in left:
            _settle(future.set_exception, StoreError("store_unavailable", "this process is closing; the proposal goes on elsewhere"))

    def _grow(self) -> None:
        if self._idle < len(self._waiting) and self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._serve, name="pointsman-check", daemon=True).start()

    def _forget(self, key: Hashable) -> None:
        with self._changed:
            self._running.pop(key, None)

    def _serve(self) -> None:
        while (job := self._next()) is not None:
            self._run(job)
            with self._changed:
                if job.given_up:
                    return

    def _next(self) -> _Job | None:
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting or not self._open)
            self._idle -= 1
            return self._waiting.popleft() if self._open else None

    def _run(self, job: _Job) -> None:
        late = threading.Timer(job.timeout / SECOND, self._give_up, (job,))
        late.daemon = True
        late.start()
        try:
            _settle(job.future.set_result, job.work(job.future.done))
        except BaseException as error:  # noqa: BLE001 - the store may fail under it: whoever waits must hear of it
            _settle(job.future.set_exception, error)
        finally:
            late.cancel()

    def _give_up(self, job: _Job) -> None:
        if _settle(job.future.set_result, errored(f"no answer within {job.timeout / SECOND:g} s")):
            with self._changed:
                job.given_up = True
                self._threads -= 1
                self._grow()


def _settle(put: Callable[[Any], None], answer: Any) -> bool:
    """First answer wins: the check's own or its timer's."""
    try:
        put(answer)
    except InvalidStateError:
        return False
    return True
