"""Where checks run: a pool of their own threads, outside any transaction.

Asked twice for the same inputs at the same moment, a check runs once. One that outlives its time is an error for
everybody who waits; its thread, which nothing can stop, is given up and does not delay the exit of the process.
"""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, InvalidStateError
from queue import SimpleQueue
from typing import Any

from pointsman.kernel.bound import Judgement, errored
from pointsman.types import SECOND, Duration

POOL_SIZE = 64
Work = Callable[[Callable[[], bool]], Judgement]
"""Judges and keeps the judgement, unless the function it is given says that nobody waits any more."""


class Checks:
    def __init__(self, size: int = POOL_SIZE):
        self._size = size
        self._lock = threading.Lock()
        self._running: dict[Hashable, Future[Judgement]] = {}
        self._queue: SimpleQueue[tuple[Work, Duration, Future[Judgement]] | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0

    def start(self, key: Hashable, work: Work, timeout: Duration) -> "Future[Judgement]":
        """The judgement under `key`: the one being made, or a new one."""
        with self._lock:
            if found := self._running.get(key):
                return found
            future: Future[Judgement] = Future()
            self._running[key] = future
            self._grow()
        future.add_done_callback(lambda _: self._forget(key))
        self._queue.put((work, timeout, future))
        return future

    def close(self) -> None:
        with self._lock:
            threads, self._threads = self._threads, 0
        for _ in range(threads):
            self._queue.put(None)

    def _grow(self) -> None:
        if self._idle < len(self._running) and self._threads < self._size:
            self._threads += 1
            threading.Thread(target=self._serve, name="pointsman-check", daemon=True).start()

    def _forget(self, key: Hashable) -> None:
        with self._lock:
            self._running.pop(key, None)

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            item = self._queue.get()
            with self._lock:
                self._idle -= 1
            if item is None:
                return
            _run(*item)


def _run(work: Work, timeout: Duration, future: "Future[Judgement]") -> None:
    late = threading.Timer(timeout / SECOND, _settle, (future.set_result, errored(f"no answer within {timeout / SECOND:g} s")))
    late.daemon = True
    late.start()
    try:
        _settle(future.set_result, work(future.done))
    except Exception as error:  # noqa: BLE001 - the store may fail under it: whoever waits must hear of it
        _settle(future.set_exception, error)
    finally:
        late.cancel()


def _settle(put: Callable[[Any], None], answer: Any) -> None:
    """First answer wins: the check's own or its timer's."""
    try:
        put(answer)
    except InvalidStateError:
        return
