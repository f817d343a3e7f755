"""What a unit of work holds while it runs: named statements on one SQLite connection, and the time."""

from collections.abc import Callable, Mapping
from math import isfinite
from threading import Lock
from typing import Any, NoReturn

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Probe, Row
from pointsman.store.sqlite_file import Connection, fault
from pointsman.store.statements import Statement
from pointsman.types import Instant

PLAIN = frozenset({int, str, bytes, type(None)})
"""What a parameter may be, exactly: SQLite would take True for 1. A float may be bound too, but not NaN: it would become NULL."""


def _none(name: str, rows: list[Row]) -> None:
    return None


def _one(name: str, rows: list[Row]) -> Row:
    if len(rows) != 1:
        raise LookupError(f"{name} found {len(rows)} rows where one is")
    return rows[0]


def _one_or_none(name: str, rows: list[Row]) -> Row | None:
    return _one(name, rows) if rows else None


def _many(name: str, rows: list[Row]) -> list[Row]:
    return rows


ANSWERS: Mapping[str, Callable[[str, list[Row]], Any]] = {":none": _none, ":one": _one, ":one?": _one_or_none, ":many": _many}


class Transaction:
    """The `Tx` of one unit, dead once the unit has ended or SQLite has rolled its transaction back."""

    __slots__ = ("_connection", "_execute", "_path", "_statements", "now")

    def __init__(self, connection: Connection, statements: Mapping[str, Statement], path: str, now: Instant):
        self._connection = connection
        self._execute = connection.cursor().execute
        self._statements = statements
        self._path = path
        self.now = now

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        found = self._statements[statement]
        if len(parameters) != len(found.parameters) or not PLAIN.issuperset(map(type, parameters.values())):
            _refuse_misfits(found, parameters)
        try:
            rows = self._execute(found.sql, parameters).fetchall()
        except KeyError:
            _refuse_misfits(found, parameters)
            raise
        except apsw.Error as error:
            if failed := self._fault(error):
                raise failed from error
            raise
        return ANSWERS[found.shape](statement, rows)

    def end(self) -> None:
        self._execute = _ended

    def _fault(self, error: apsw.Error) -> StoreError | None:
        """With the transaction gone, a next statement would commit on its own: there will be none."""
        if not self._connection.in_transaction:
            self.end()
        return fault(error, self._path)


class ProbedTransaction(Transaction):
    """Tells the probe before and after every statement."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe, connection: Connection, statements: Mapping[str, Statement], path: str, now: Instant):
        super().__init__(connection, statements, path, now)
        self._probe = probe

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        self._probe(f"before:{statement}")
        answer = super().__call__(statement, **parameters)
        self._probe(f"after:{statement}")
        return answer


class RisingClock:
    """A clock that never runs backwards for whoever asks it, in whatever thread."""

    def __init__(self, clock: Callable[[], Instant]):
        self._clock = clock
        self._lock = Lock()
        self._last: Instant = 0

    def __call__(self) -> Instant:
        with self._lock:
            self._last = max(self._last, self._clock())
            return self._last


def _ended(*_: Any) -> NoReturn:
    raise RuntimeError("the transaction has ended")


def _refuse_misfits(statement: Statement, parameters: Mapping[str, Any]) -> None:
    """A TypeError for names that are not the statement's, or values that cannot be bound. It never shows a value."""
    if set(parameters) != set(statement.parameters):
        raise TypeError(f"{statement.name} takes ({', '.join(statement.parameters)}) and was given ({', '.join(parameters)})")
    wrong = [f"{name} is {type(value).__name__}" for name, value in parameters.items() if not _bindable(value)]
    if wrong:
        raise TypeError(f"{statement.name}: {', '.join(wrong)}; int, finite float, str, bytes and None can be bound")


def _bindable(value: object) -> bool:
    return type(value) in PLAIN or (type(value) is float and isfinite(value))
