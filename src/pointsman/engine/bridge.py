"""The one crossing from the store's threads to an event loop.

A writer that commits eight units at once wakes the loop once, not eight times: waking a loop costs a system call and
a turn of the interpreter's lock.
"""

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
Answer = tuple["asyncio.Future[Any]", "Future[Any]"]


class Bridge:
    """Hands finished futures over to the loop that waits for them, as many as there are at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._arrived: deque[Answer] = deque()
        self._woken = False

    async def cross(self, future: "Future[T]") -> T:
        """Await a future of another thread. Giving up does not stop the work behind it."""
        waiting = self._loop.create_future()
        future.add_done_callback(lambda done: self._arrive(waiting, done))
        return await waiting

    def _arrive(self, waiting: "asyncio.Future[Any]", done: "Future[Any]") -> None:
        self._arrived.append((waiting, done))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._arrived.clear()

    def _deliver(self) -> None:
        """The flag goes down first: what arrives later wakes the loop again."""
        self._woken = False
        while self._arrived:
            waiting, done = self._arrived.popleft()
            if not waiting.done():
                _settle(waiting, done)


def _settle(waiting: "asyncio.Future[Any]", done: "Future[Any]") -> None:
    if done.cancelled():
        waiting.cancel()
    elif error := done.exception():
        waiting.set_exception(error)
    else:
        waiting.set_result(done.result())


_bridges: WeakKeyDictionary[asyncio.AbstractEventLoop, Bridge] = WeakKeyDictionary()


def bridge() -> Bridge:
    """The bridge of the running loop."""
    loop = asyncio.get_running_loop()
    found = _bridges.get(loop)
    if found is None:
        found = _bridges[loop] = Bridge(loop)
    return found
