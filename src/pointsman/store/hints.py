"""Wake-ups: whoever waits for something is told when it may have come.

They are hints. One may come for nothing and any may be lost, so whoever waits also looks by itself now and then. Each
begins to listen *before* it looks: what is committed during the look is then heard after it.
"""

from collections.abc import Callable, Collection, Generator, Hashable, Iterable
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

from pointsman.store.database import Topic, Tx

T = TypeVar("T")
Line: TypeAlias = "dict[Place, None]"

FEED: Topic = "feed"
"""Something was committed, whatever it was."""


OUTBOX: Topic = "outbox"
"""A message may be there to be sent."""


def of_queue(machine: str) -> Topic:
    """Something of this machine may be there to be taken."""
    return f"queue {machine}"


def of_task(task_id: str) -> Topic:
    """This task moved, or a proposal for it was settled."""
    return f"task {task_id}"


class Place:
    """Where one stands who waits. `told` since it last began to listen, or not."""

    __slots__ = ("_line", "_lock", "hint", "told")

    def __init__(self, lock: Lock):
        self._lock = lock
        self._line: Line = {}
        self.hint: Future[None] = Future()
        self.told = False

    def listen(self) -> "Future[None]":
        """Done as soon as there is something to look for; to be asked for before each look."""
        with self._lock:
            self.hint, self.told = Future(), False
            return self.hint

    @property
    def first(self) -> bool:
        """Whether nobody stands before it. Of those who wait for the same, the first also looks without a hint."""
        with self._lock:
            return next(iter(self._line), self) is self

    def stand(self, line: Line) -> None:
        self._line = line
        line[self] = None


class Hints:
    """Who waits in this process, and for what. `begun` is called when somebody begins to."""

    def __init__(self, begun: Callable[[], None]):
        self._begun = begun
        self._lock = Lock()
        self._lines: dict[Topic, dict[Hashable, Line]] = {}

    @contextmanager
    def waiting(self, topic: Topic, line: Hashable = None) -> Generator[Place]:
        """A place among those who wait for a topic. Who names the same `line` wants the same thing, which only one of them
        can have: they are told one at a time, and whoever leaves tells the next. Who names none is always told."""
        place = Place(self._lock)
        named: Hashable = place if line is None else line
        with self._lock:
            place.stand(self._lines.setdefault(topic, {}).setdefault(named, {}))
        self._begun()
        try:
            yield place
        finally:
            self._leave(topic, named, place)

    def anybody(self) -> bool:
        return bool(self._lines)

    def tell(self, topics: Iterable[Topic] | None) -> None:
        """Once it is committed. None stands for every topic."""
        if self._lines:
            with self._lock:
                lines = [line for topic in (list(self._lines) if topics is None else topics) for line in self._of(topic)]
                hints = _next(lines)
            _give(hints)

    def _of(self, topic: Topic) -> Collection[Line]:
        return self._lines.get(topic, {}).values()

    def _leave(self, topic: Topic, named: Hashable, place: Place) -> None:
        with self._lock:
            lines = self._lines[topic]
            line = lines[named]
            del line[place]
            if not line:
                del lines[named]
            if not lines:
                del self._lines[topic]
            hints = _next([line])
        _give(hints)


def _next(lines: Iterable[Line]) -> "list[Future[None]]":
    """In each line, the hint of the first who was not told yet."""
    places = [place for line in lines if (place := next((place for place in line if not place.told), None))]
    for place in places:
        place.told = True
    return [place.hint for place in places]


def _give(hints: "Iterable[Future[None]]") -> None:
    """Outside the lock: whoever waits for a hint may run at once."""
    for hint in hints:
        hint.set_result(None)


class Noted(Generic[T]):
    """A unit of work that leaves behind what it has changed. It may run twice: the last run counts."""

    __slots__ = ("news", "unit")

    def __init__(self, unit: Callable[[Tx], T]):
        self.unit = unit
        self.news: Collection[Topic] = ()

    def __call__(self, tx: Any) -> T:
        answer = self.unit(tx)
        self.news = tx.news
        return answer
