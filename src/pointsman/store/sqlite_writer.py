"""One writer for all threads of a process: a queue, and one thread that commits whatever has gathered in it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import Any, TypeAlias, TypeVar

from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.sqlite_commit import Answer, Unit

T = TypeVar("T")

LARGEST_GROUP = 128
CALM_AFTER = 8
"""So many groups of one unit in a row, and callers commit on their own threads again."""


class Waiting:
    """A thread stands still for the answer. A bare lock wakes it at half the price of a future."""

    __slots__ = ("_answer", "_lock", "unit")

    def __init__(self, unit: Unit):
        self.unit = unit
        self._lock = Lock()
        self._lock.acquire()
        self._answer: Answer = (None, None)

    def wanted(self) -> bool:
        return True

    def answer(self, answer: Answer) -> None:
        self._answer = answer
        self._lock.release()

    def wait(self) -> Any:
        self._lock.acquire()
        return told(self._answer)


class Promised:
    """The answer goes to a future, which its holder may cancel as long as the unit has not begun."""

    __slots__ = ("future", "unit")

    def __init__(self, unit: Unit):
        self.unit = unit
        self.future: Future[Any] = Future()

    def wanted(self) -> bool:
        return self.future.set_running_or_notify_cancel()

    def answer(self, answer: Answer) -> None:
        value, error = answer
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)


Job: TypeAlias = Waiting | Promised
"""A unit in the queue, and somebody who wants its answer."""


class Writer:
    """Units go in from any thread. A caller who waits, and finds nobody else writing, commits on its own thread:
    the hop to another and back costs about as much as the commit."""

    def __init__(self, transact: Callable[[Sequence[Unit]], list[Answer]], closed: Callable[[], StoreError]):
        self._transact = transact
        self._closed = closed
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lane = Lock()
        self._gate = Lock()
        self._holder: int | None = None
        self._open = True
        self._calm = CALM_AFTER
        self._thread = Thread(target=self._serve, name="pointsman-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Callable[[Tx], T]) -> "Future[T]":
        job = Promised(unit)
        self._put(job)
        return job.future

    def run(self, unit: Callable[[Tx], T]) -> T:
        if self._calm >= CALM_AFTER and self._lane.acquire(blocking=False):
            return self._here(unit)
        if get_ident() in (self._holder, self._thread.ident):
            raise RuntimeError("inside a unit, or in a future's callback, nobody may wait for another unit: it would never run")
        job = Waiting(unit)
        self._put(job)
        return job.wait()

    def close(self) -> None:
        """Finish what is queued. Units that come later are refused."""
        with self._gate:
            if self._open:
                self._open = False
                self._queue.put(None)
        self._thread.join()
        with self._lane:
            """A caller writing on its own thread is done."""

    def _put(self, job: Job) -> None:
        with self._gate:
            if self._open:
                self._queue.put(job)
                return
        if job.wanted():
            job.answer((None, self._closed()))

    def _here(self, unit: Unit) -> Any:
        """On the caller's own thread, which has just taken the lane."""
        try:
            if not self._open:
                raise self._closed()
            self._holder = get_ident()
            return told(self._transact((unit,))[0])
        finally:
            self._holder = None
            self._lane.release()

    def _serve(self) -> None:
        last = False
        while not last:
            first = self._queue.get()
            with self._lane:
                jobs, last = self._gather(first)
                answers = self._answers(jobs)
            self._calm = self._calm + 1 if len(jobs) == 1 else 0
            for job, answer in zip(jobs, answers, strict=True):
                job.answer(answer)

    def _gather(self, job: Job | None) -> tuple[list[Job], bool]:
        """`job` and those that have come meanwhile, without what nobody wants any more; and whether they are the last."""
        jobs: list[Job] = []
        while job is not None:
            if job.wanted():
                jobs.append(job)
            if len(jobs) == LARGEST_GROUP or self._queue.empty():
                return jobs, False
            job = self._queue.get()
        return jobs, True

    def _answers(self, jobs: list[Job]) -> list[Answer]:
        try:
            return self._transact([job.unit for job in jobs]) if jobs else []
        except BaseException as error:  # noqa: BLE001 - were this thread to end, every later caller would wait for ever
            return [(None, error) for _ in jobs]


def told(answer: Answer) -> Any:
    value, error = answer
    if error is None:
        return value
    try:
        raise error
    finally:
        del answer, error
