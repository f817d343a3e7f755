"""Reading beside the writer: each unit on a snapshot of its own, on connections that are kept for the next."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.sqlite_file import Connection, File, fault, unavailable
from pointsman.store.sqlite_tx import Transaction

T = TypeVar("T")

KEPT_CONNECTIONS = 16


class Readers:
    """Connections for reading. As many are in use as there are threads reading at the moment; so many are kept."""

    def __init__(self, file: File, connect: Callable[[], Connection], start: Callable[[Connection], Transaction]):
        self._file = file
        self._connect = connect
        self._start = start
        self._idle: deque[tuple[Connection, tuple[int, int]]] = deque()
        self._open = True

    def read(self, unit: Callable[[Tx], T]) -> T:
        connection, identity = self._take()
        try:
            answer = self._snapshot(connection, unit)
        except StoreError:
            connection.close()
            raise
        except BaseException:
            self._give(connection, identity)
            raise
        self._give(connection, identity)
        return answer

    def close(self) -> None:
        """Connections in use close as they come back."""
        self._open = False
        with suppress(IndexError):  # a reader may take the last one meanwhile
            while True:
                self._idle.pop()[0].close()

    def _snapshot(self, connection: Connection, unit: Callable[[Tx], T]) -> T:
        try:
            connection.execute("BEGIN")
            tx = self._start(connection)
            try:
                return unit(tx)
            finally:
                tx.end()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.Error as error:
            if named := fault(error, self._file.path):
                raise named from error
            raise

    def _take(self) -> tuple[Connection, tuple[int, int]]:
        if not self._open:
            raise unavailable(self._file.path, "it is closed")
        identity = self._file.identity()
        while self._idle:
            try:
                connection, known = self._idle.pop()
            except IndexError:
                break
            if known == identity:
                return connection, known
            connection.close()
        return self._connect(), identity

    def _give(self, connection: Connection, identity: tuple[int, int]) -> None:
        if self._open and len(self._idle) < KEPT_CONNECTIONS:
            self._idle.append((connection, identity))
        else:
            connection.close()
