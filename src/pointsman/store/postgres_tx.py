"""What a unit of work holds while it runs: named statements in one PostgreSQL transaction, and the time."""

from collections.abc import Callable, Mapping
from typing import Any

from psycopg import Cursor

from pointsman.store.binding import ANSWERS, PLAIN, ended, refuse_misfits
from pointsman.store.database import Probe, Row, Topic
from pointsman.store.postgres_statements import Spelled
from pointsman.types import Instant

LARGEST = 2**63 - 1


class Transaction:
    """The `Tx` of one unit. Its time is read when it is first asked for, and anew after a statement that may have waited for
    a row: read before or in it, it would be older than the wait."""

    __slots__ = ("_clock", "_cursor", "_execute", "_now", "_statements", "news")

    def __init__(self, cursor: Cursor[Row], statements: Mapping[str, Spelled], clock: Callable[[], Instant]):
        self._cursor = cursor
        self._execute = cursor.execute
        self._statements = statements
        self._clock = clock
        self._now: Instant | None = None
        self.news: set[Topic] = set()

    @property
    def now(self) -> Instant:
        if self._now is None:
            self._now = self._clock()
        return self._now

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        found = self._statements[statement]
        if len(parameters) != len(found.parameters) or not PLAIN.issuperset(map(type, parameters.values())):
            refuse_misfits(statement, found.parameters, parameters)
        try:
            values = [parameters[name] for name in found.parameters]
        except KeyError:
            refuse_misfits(statement, found.parameters, parameters)
            raise
        for value in values:
            if type(value) is int and not -LARGEST - 1 <= value <= LARGEST:
                raise OverflowError(f"{statement}: an integer is beyond 64 bits")
        self._execute(found.sql, values)
        if found.waits:
            self._now = None
        return ANSWERS[found.shape](statement, self._cursor.fetchall() if self._cursor.description else [])

    def end(self) -> None:
        self._execute = ended


class ProbedTransaction(Transaction):
    """Tells the probe before and after every statement."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe, cursor: Cursor[Row], statements: Mapping[str, Spelled], clock: Callable[[], Instant]):
        super().__init__(cursor, statements, clock)
        self._probe = probe

    @property
    def now(self) -> Instant:
        if self._now is None:
            self._probe("clock")
        return super().now

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        self._probe(f"before:{statement}")
        answer = super().__call__(statement, **parameters)
        self._probe(f"after:{statement}")
        return answer
