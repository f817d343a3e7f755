"""One writer for all threads of a process: a queue, and one thread that commits whatever has gathered in it."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeAlias, TypeVar

from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.sqlite_commit import Answer, Unit

T = TypeVar("T")
Job: TypeAlias = tuple[Unit, "Future[Any]"]

LARGEST_GROUP = 128


class Writer:
    """Units go in from any thread. A caller who waits, and finds nobody else writing, commits on its own thread:
    the hop to another and back costs about as much as the commit."""

    def __init__(self, transact: Callable[[Sequence[Unit]], list[Answer]], closed: Callable[[], StoreError]):
        self._transact = transact
        self._closed = closed
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._lane = Lock()
        self._gate = Lock()
        self._open = True
        self._crowded = False
        self._thread = Thread(target=self._serve, name="pointsman-writer", daemon=True)
        self._thread.start()

    def submit(self, unit: Callable[[Tx], T]) -> "Future[T]":
        future: Future[T] = Future()
        with self._gate:
            if self._open:
                self._queue.put((unit, future))
                return future
        future.set_exception(self._closed())
        return future

    def run(self, unit: Callable[[Tx], T]) -> T:
        if self._crowded or not self._lane.acquire(blocking=False):
            return self.submit(unit).result()
        try:
            if not self._open:
                raise self._closed()
            return _told(self._transact((unit,))[0])
        finally:
            self._lane.release()

    def close(self) -> None:
        """Finish what is queued. Units that come later are refused."""
        with self._gate:
            if self._open:
                self._open = False
                self._queue.put(None)
        self._thread.join()
        with self._lane:
            pass

    def _serve(self) -> None:
        while (first := self._queue.get()) is not None:
            with self._lane:
                jobs, last = self._gather(first)
                answers = self._answers(jobs)
            self._crowded = len(jobs) > 1
            for (_, future), answer in zip(jobs, answers, strict=True):
                _tell(future, answer)
            if last:
                return

    def _answers(self, jobs: list[Job]) -> list[Answer]:
        try:
            return self._transact([unit for unit, _ in jobs]) if jobs else []
        except BaseException as error:  # noqa: BLE001 - were this thread to end, every later caller would wait for ever
            return [(None, error) for _ in jobs]

    def _gather(self, first: Job) -> tuple[list[Job], bool]:
        """The units that have come meanwhile, without those given up by their callers; and whether they are the last."""
        jobs: list[Job] = []
        job: Job | None = first
        while job is not None:
            if job[1].set_running_or_notify_cancel():
                jobs.append(job)
            if len(jobs) == LARGEST_GROUP or self._queue.empty():
                return jobs, False
            job = self._queue.get()
        return jobs, True


def _tell(future: "Future[Any]", answer: Answer) -> None:
    value, error = answer
    if error is None:
        future.set_result(value)
    else:
        future.set_exception(error)


def _told(answer: Answer) -> Any:
    value, error = answer
    if error is None:
        return value
    try:
        raise error
    finally:
        del answer, error
