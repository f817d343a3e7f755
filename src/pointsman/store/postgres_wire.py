"""A session's statements on their way: kept until an answer is wanted, sent together, and answered in their order.

PostgreSQL does one after the other what is sent together, so nothing is saved but journeys. After an error it passes over the
rest of what came with it, a COMMIT too. A statement is prepared once in a session for each row of types of its values.
"""

import select
from contextlib import suppress
from itertools import count

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from pointsman.store.database import Row
from pointsman.store.postgres_server import Session
from pointsman.store.postgres_statements import Spelled
from pointsman.store.postgres_values import Bound, bind

AT_ONCE = 100
"""So many statements wait at most; when one more comes, they are sent and answered first."""

ROLLBACK = bind(Spelled("ROLLBACK", ":none", b"ROLLBACK", ()), {})
_FINE = frozenset({ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK})
_OPEN = frozenset({TransactionStatus.INTRANS, TransactionStatus.INERROR})
_Key = tuple[Spelled, tuple[int, ...]]


class Wire:
    """One session, which is in no transaction between two units. `answered` and `failed` are about the unit that has it."""

    def __init__(self, session: Session):
        self.session = session
        self.answered = self.failed = False
        self._libpq = session.pgconn
        self._libpq.nonblocking = 1
        self._libpq.enter_pipeline_mode()
        self._poll = select.poll()
        self._poll.register(self._libpq.socket, select.POLLIN)
        self._rows = Transformer(session)
        self._prepared: dict[_Key, bytes] = {}
        self._names = count()
        self._waiting: list[Bound] = []

    @property
    def broken(self) -> bool:
        return self._libpq.status != ConnStatus.OK

    @property
    def unfinished(self) -> bool:
        """Whether the server has not said how the transaction ended."""
        return self.broken or self._libpq.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.ACTIVE)

    @property
    def waits(self) -> bool:
        """Whether something was not sent yet."""
        return bool(self._waiting)

    def send(self, *bound: Bound) -> None:
        """Their answers come together, with those of later ones if there are any."""
        if len(self._waiting) >= AT_ONCE:
            self.answers()
        self._waiting.extend(bound)

    def ask(self, bound: Bound) -> list[Row]:
        """The rows that answer it."""
        self.send(bound)
        return self.rows(self.answers()[-1])

    def answers(self) -> list[PGresult]:
        """To everything that waited, once all have come; or the first error among them is raised."""
        waiting, self._waiting = self._waiting, []
        try:
            asked = self._submit(waiting)
            self._libpq.pipeline_sync()
            self._flush()
            found = self._answered(asked)
        except psycopg.Error:
            self.failed = True
            raise
        self.answered = True
        return found

    def rows(self, result: PGresult) -> list[Row]:
        if not result.ntuples:
            return []
        self._rows.set_pgresult(result)
        return self._rows.load_rows(0, result.ntuples, tuple)

    def clean(self) -> bool:
        """Forget what was not sent, and roll back what was; whether the session can be used again."""
        self._waiting.clear()
        if self._libpq.transaction_status in _OPEN:
            with suppress(psycopg.Error):
                self.ask(ROLLBACK)
        self.answered = self.failed = False
        return self._libpq.transaction_status == TransactionStatus.IDLE

    def close(self) -> None:
        self.session.close()

    def _submit(self, waiting: list[Bound]) -> list[_Key | None]:
        """What answers will come: a key for a statement that is prepared first, and None for one itself."""
        asked: list[_Key | None] = []
        for statement, values, types in waiting:
            name = self._prepared.get((statement, types))
            if name is None:
                name = self._prepared[statement, types] = b"p%d" % next(self._names)
                self._libpq.send_prepare(name, statement.sql, types)
                asked.append((statement, types))
            self._libpq.send_query_prepared(name, values)
            asked.append(None)
        return asked

    def _answered(self, asked: list[_Key | None]) -> list[PGresult]:
        """The answers to statements, up to the server's word that these were all. What could not be prepared is forgotten."""
        found: list[PGresult] = []
        error: psycopg.Error | None = None
        for key in asked:
            result = self._next()
            if result.status not in _FINE:
                error = error or error_from_result(result)
                self._prepared.pop(key, None) if key else None
            elif key is None:
                found.append(result)
            self._libpq.get_result()  # nothing, which ends the answer
        self._next()
        if error is not None:
            raise error
        return found

    def _next(self) -> PGresult:
        while self._libpq.is_busy():
            self._wait()
        result = self._libpq.get_result()
        if result is None:
            raise psycopg.OperationalError(self._libpq.get_error_message())
        return result

    def _flush(self) -> None:
        """Reading too, since a server that cannot send does not read."""
        while self._libpq.flush():
            self._poll.modify(self._libpq.socket, select.POLLIN | select.POLLOUT)
            self._wait()
            self._poll.modify(self._libpq.socket, select.POLLIN)

    def _wait(self) -> None:
        if not self._poll.poll(self.session.deadline_s * 1000):
            raise psycopg.OperationalError("it did not answer in time")
        self._libpq.consume_input()
