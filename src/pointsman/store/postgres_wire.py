"""A session's statements on their way: kept until an answer is wanted, sent together, and answered in their order.

PostgreSQL does one after the other what is sent together, so nothing is saved but journeys. After an error it passes over the
rest of what came with it, a COMMIT too. A statement is prepared once in a session for each row of types of its values.
"""

import select
from collections.abc import Iterator
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

    def send(self, bound: Bound) -> None:
        """Its answer comes with that of a later one."""
        if len(self._waiting) >= AT_ONCE:
            self.answers()
        self._waiting.append(bound)

    def ask(self, bound: Bound) -> list[Row]:
        """The rows that answer it."""
        self.send(bound)
        return self.rows(self.answers()[-1])

    def answers(self) -> list[PGresult]:
        """To everything that waited, once all have come; or the first error among them is raised."""
        waiting, self._waiting = self._waiting, []
        try:
            asked = [slot for bound in waiting for slot in self._submit(bound)]
            self._libpq.pipeline_sync()
            self._flush()
            found = self._sorted(asked)
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

    def _submit(self, bound: Bound) -> Iterator[_Key | None]:
        """What answers will come: the key of a statement that is prepared first, and None for the statement itself."""
        key = bound.statement, bound.types
        name = self._prepared.get(key)
        if name is None:
            name = self._prepared[key] = b"p%d" % next(self._names)
            self._libpq.send_prepare(name, bound.statement.sql, bound.types)
            yield key
        self._libpq.send_query_prepared(name, bound.values)
        yield None

    def _sorted(self, asked: list[_Key | None]) -> list[PGresult]:
        """The answers to statements. What could not be prepared is forgotten."""
        found: list[PGresult] = []
        error: psycopg.Error | None = None
        for key, result in zip(asked, self._results(), strict=True):
            if result.status not in _FINE:
                error = error or error_from_result(result)
                self._prepared.pop(key, None) if key else None
            elif key is None:
                found.append(result)
        if error is not None:
            raise error
        return found

    def _results(self) -> Iterator[PGresult]:
        """Until the server has said that these were all."""
        while True:
            while self._libpq.is_busy():
                self._wait()
            result = self._libpq.get_result()
            if result is None:
                if self.broken:
                    raise psycopg.OperationalError(self._libpq.get_error_message())
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return
            else:
                yield result

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
