"""What a unit of work holds while it runs: named statements on one SQLite connection, and the time."""

from collections.abc import Mapping
from typing import Any

import apsw

from pointsman.errors import StoreError
from pointsman.store.binding import ANSWERS, PLAIN, ended, refuse_misfits
from pointsman.store.database import Probe, Topic
from pointsman.store.sqlite_file import Connection, fault
from pointsman.store.statements import Statement
from pointsman.types import Instant


class Transaction:
    """The `Tx` of one unit, dead once the unit has ended or SQLite has rolled its transaction back."""

    __slots__ = ("_connection", "_execute", "_path", "_statements", "news", "now")

    def __init__(self, connection: Connection, statements: Mapping[str, Statement], path: str):
        self._connection = connection
        self._execute = connection.cursor().execute
        self._statements = statements
        self._path = path
        self.news: set[Topic] = set()
        self.now: Instant = 0

    def ahead(self, statement: str, /, **parameters: Any) -> None:
        """No journey, nothing to save."""

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        found = self._statements[statement]
        if len(parameters) != len(found.parameters) or not PLAIN.issuperset(map(type, parameters.values())):
            refuse_misfits(statement, found.parameters, parameters)
        try:
            rows = self._execute(found.sql, parameters).fetchall()
        except KeyError:
            refuse_misfits(statement, found.parameters, parameters)
            raise
        except apsw.Error as error:
            if failed := self._fault(error):
                raise failed from error
            raise
        return ANSWERS[found.shape](statement, rows)

    def end(self) -> None:
        self._execute = ended

    def _fault(self, error: apsw.Error) -> StoreError | None:
        """With the transaction gone, a next statement would commit on its own: there will be none."""
        if not self._connection.in_transaction:
            self.end()
        return fault(error, self._path)


class ProbedTransaction(Transaction):
    """Tells the probe before and after every statement."""

    __slots__ = ("_probe",)

    def __init__(self, probe: Probe, connection: Connection, statements: Mapping[str, Statement], path: str):
        super().__init__(connection, statements, path)
        self._probe = probe

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        self._probe(f"before:{statement}")
        answer = super().__call__(statement, **parameters)
        self._probe(f"after:{statement}")
        return answer
