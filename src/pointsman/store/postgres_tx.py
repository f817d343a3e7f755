"""What a unit of work holds while it runs: named statements in one PostgreSQL transaction, and the time."""

from collections.abc import Callable, Mapping
from typing import Any

from pointsman.store.binding import ANSWERS, ended
from pointsman.store.database import Probe, Row, Topic
from pointsman.store.postgres_statements import Spelled
from pointsman.store.postgres_values import Bound, bind
from pointsman.store.postgres_wire import Wire
from pointsman.types import Instant

LATER = frozenset({":none", ":sure"})
"""Statements of these shapes tell the unit nothing. They wait for the next one that does, or for COMMIT, and are sent with it;
so a fault of theirs is told there. All of them are answered before the unit is."""


class Transaction:
    """The `Tx` of one unit. Its time is asked for behind the statement that waits for a row: in it, it would be older than the
    wait; and before it, older still. The two are sent together, and the last such time before it is wanted counts; after another
    statement that may have waited it is a new one. Where there is none, it is asked for when it is wanted.

    What is said to be run next is sent behind that, and so never read before the time is."""

    __slots__ = ("_clock", "_coming", "_now", "_read", "_send", "_statements", "_time", "_told", "_wire", "news")

    def __init__(self, wire: Wire, statements: Mapping[str, Spelled], clock: Bound, told: Callable[[list[Row]], Instant]):
        self._wire = wire
        self._send = wire.send
        self._statements = statements
        self._clock = clock
        self._told = told
        self._time: list[Row] = []
        self._now: Instant | None = None
        self._coming: list[Bound] = []
        self._read: dict[_Asked, list[Row]] = {}
        self.news: set[Topic] = set()

    @property
    def now(self) -> Instant:
        if self._now is None:
            if not self._time:
                (self._time,) = self._answers(self._clock)
            self._now = self._told(self._time)
        return self._now

    def ahead(self, statement: str, /, **parameters: Any) -> None:
        self._coming.append(bind(self._statements[statement], parameters))

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        found = self._statements[statement]
        bound = bind(found, parameters)
        if found.waits:
            self._now, self._time = None, []
            self._read.clear()
        if found.shape in LATER:
            return self._send(bound)
        return ANSWERS[found.shape](statement, self._rows(bound))

    def end(self) -> None:
        self._send = ended

    def _rows(self, bound: Bound) -> list[Row]:
        if bound.statement.decides and self._now is None:
            return self._with_time(bound)
        if self._read and (known := self._read.get(_asked(bound))) is not None:
            return known
        return self._answers(bound)[0]

    def _with_time(self, bound: Bound) -> list[Row]:
        """The rows of a statement that locks, and the time behind it. Where there are none, somebody may be waited for yet."""
        rows, time = self._answers(bound, self._clock)
        if rows:
            self._time = time
        return rows

    def _answers(self, *bound: Bound) -> list[list[Row]]:
        """The rows that answer each; those of what was said to be run next are kept. That waits for the time."""
        coming: list[Bound] = []
        if self._time or bound[-1] is self._clock:
            coming, self._coming = self._coming, coming
        self._send(*bound, *coming)
        rows = [self._wire.rows(answer) for answer in self._wire.answers()[-len(bound) - len(coming) :]]
        self._read.update(zip(map(_asked, coming), rows[len(bound) :], strict=True))
        return rows[: len(bound)]


_Asked = tuple[str, tuple[bytes | None, ...]]


def _asked(bound: Bound) -> _Asked:
    return bound.statement.name, tuple(bound.values)


class ProbedTransaction(Transaction):
    """Tells the probe before and after every statement, and waits for the answer to each: whoever is held after one, has done it."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe, *rest: Any):
        super().__init__(*rest)
        self._probe = probe

    def ahead(self, statement: str, /, **parameters: Any) -> None:
        """Each statement is run where it is met."""

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        self._probe(f"before:{statement}")
        answer = super().__call__(statement, **parameters)
        if self._wire.waits:
            self._wire.answers()
        self._probe(f"after:{statement}")
        return answer
