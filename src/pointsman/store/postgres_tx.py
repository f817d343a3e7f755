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
    statement that may have waited it is a new one. Where there is none, it is asked for when it is wanted."""

    __slots__ = ("_clock", "_now", "_send", "_statements", "_time", "_told", "_wire", "news")

    def __init__(self, wire: Wire, statements: Mapping[str, Spelled], clock: Bound, told: Callable[[list[Row]], Instant]):
        self._wire = wire
        self._send = wire.send
        self._statements = statements
        self._clock = clock
        self._told = told
        self._time: list[Row] = []
        self._now: Instant | None = None
        self.news: set[Topic] = set()

    @property
    def now(self) -> Instant:
        if self._now is None:
            if not self._time:
                self._send(self._clock)
                self._time = self._answer()
            self._now = self._told(self._time)
        return self._now

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        found = self._statements[statement]
        bound = bind(found, parameters)
        if found.waits:
            self._now, self._time = None, []
        if found.decides and self._now is None:
            return ANSWERS[found.shape](statement, self._with_time(bound))
        self._send(bound)
        return None if found.shape in LATER else ANSWERS[found.shape](statement, self._answer())

    def end(self) -> None:
        self._send = ended

    def _answer(self) -> list[Row]:
        return self._wire.rows(self._wire.answers()[-1])

    def _with_time(self, bound: Bound) -> list[Row]:
        """The rows of a statement that locks, and the time behind it. Where there are none, somebody may be waited for yet."""
        self._send(bound, self._clock)
        *_, answer, time = self._wire.answers()
        if rows := self._wire.rows(answer):
            self._time = self._wire.rows(time)
        return rows


class ProbedTransaction(Transaction):
    """Tells the probe before and after every statement, and waits for the answer to each: whoever is held after one, has done it."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe, *rest: Any):
        super().__init__(*rest)
        self._probe = probe

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        self._probe(f"before:{statement}")
        answer = super().__call__(statement, **parameters)
        if self._wire.waits:
            self._wire.answers()
        self._probe(f"after:{statement}")
        return answer
