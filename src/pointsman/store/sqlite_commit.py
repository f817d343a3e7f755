"""Units of work on the write connection of a SQLite file: a group of them in one transaction.

The law of a group:
- Nothing is answered before COMMIT, refusals included: one may rest on a neighbour's uncommitted work.
- In a group each unit has its savepoint, and what fails is taken back alone. A unit by itself needs none.
- After any error SQLite may have rolled back everything. Then nothing of the group happened, and each unit runs again, alone.
- A COMMIT that failed is unknown, unless the transaction still stands and can be rolled back.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import apsw

from pointsman.errors import StoreError
from pointsman.store.database import Probe, Tx
from pointsman.store.sqlite_file import Connection, File, busy, fault, unavailable
from pointsman.store.sqlite_tx import Transaction
from pointsman.store.turn import Turn

Unit: TypeAlias = Callable[[Tx], Any]
Answer: TypeAlias = tuple[Any, BaseException | None]
"""What a unit returned, or what it raised."""

POINTS = ("turn.taken", "transaction.begun", "unit.begun", "unit.done", "commit.before", "commit.after")


class _Undone(Exception):
    """The transaction is rolled back. `reason` is what a unit that was alone in it is told."""

    def __init__(self, reason: BaseException):
        super().__init__(reason)
        self.reason = reason


class Committer:
    """The write connection, opened anew when it or its file was lost. Used by one thread at a time."""

    def __init__(self, file: File, connect: Callable[[], Connection], start: Callable[[Connection], Transaction], probe: Probe):
        self._file = file
        self._connect = connect
        self._start = start
        self._probe = probe
        self._suspect = False
        self._connection, self._turn, self._identity = self._opened()

    def transact(self, units: Sequence[Unit]) -> list[Answer]:
        """Run the units, commit them, and say what came of each."""
        try:
            return self._attempt(units)
        except StoreError as error:
            return [(None, error) for _ in units]
        except _Undone as undone:
            if len(units) == 1:
                return [(None, undone.reason)]
            return [answer for unit in units for answer in self.transact((unit,))]

    def close(self) -> None:
        try:
            self._connection.close()
        finally:
            self._turn.close()

    def _opened(self) -> tuple[Connection, Turn, tuple[int, int]]:
        identity = self._file.identity()
        turn = seat(self._file)
        try:
            return self._connect(), turn, identity
        except StoreError:
            turn.close()
            raise

    def _attempt(self, units: Sequence[Unit]) -> list[Answer]:
        try:
            self._begin()
            if len(units) > 1:
                return self._commit([self._guarded(unit) for unit in units])
            answer = self._run(units[0])
            return [answer] if answer[1] is not None else self._commit([answer])
        except apsw.Error as error:
            raise _Undone(self._named(error) or error) from error
        finally:
            self._finish()

    def _begin(self) -> None:
        """Take the turn and the write lock, or raise a StoreError: then nothing was done."""
        self._renew()
        if not self._turn.take(self._file.patience_s):
            raise busy(self._file.path)
        self._probe("turn.taken")
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except apsw.Error as error:
            raise self._named(error) or unavailable(self._file.path, str(error)) from error
        self._probe("transaction.begun")

    def _renew(self) -> None:
        """See that the connection is good and that the path still names the file it was opened on."""
        if self._suspect or self._file.identity() != self._identity:
            self._suspect = True
            with suppress(apsw.Error):
                self.close()
            self._connection, self._turn, self._identity = self._opened()
            self._suspect = False

    def _guarded(self, unit: Unit) -> Answer:
        """One unit among several, in a savepoint."""
        execute = self._connection.execute
        execute("SAVEPOINT unit")
        answer = self._run(unit)
        if answer[1] is not None:
            execute("ROLLBACK TO unit")
        execute("RELEASE unit")
        return answer

    def _run(self, unit: Unit) -> Answer:
        """What came of one unit. Raises when SQLite took the whole transaction back, whether the unit noticed or not."""
        tx = self._start(self._connection)
        self._probe("unit.begun")
        error = value = None
        try:
            value = unit(tx)
        except BaseException as raised:  # noqa: BLE001 - whatever a unit raises is its caller's answer, not the writer's end
            error = raised
            self._suspect = self._suspect or _lasting(raised)
        tx.end()
        if not self._connection.in_transaction:
            raise _Undone(error or unavailable(self._file.path, "SQLite rolled the transaction back"))
        self._probe("unit.done")
        return value, error

    def _commit(self, answers: list[Answer]) -> list[Answer]:
        self._probe("commit.before")
        try:
            self._connection.execute("COMMIT")
        except apsw.Error as error:
            return self._uncommitted(error, answers)
        self._probe("commit.after")
        return answers

    def _uncommitted(self, error: apsw.Error, answers: list[Answer]) -> list[Answer]:
        """COMMIT failed. A transaction that still stands can be rolled back: nothing happened. Else nobody knows,
        save of a unit that raised: that one changed nothing."""
        if self._connection.in_transaction:
            raise _Undone(self._named(error) or error) from error
        self._suspect = True
        path = self._file.path
        unknown = fault(error, path, "unknown") or unavailable(path, str(error), "unknown")
        nothing = unavailable(path, unknown.detail)
        return [(None, nothing if raised else unknown) for _, raised in answers]

    def _finish(self) -> None:
        """Leave no transaction and no turn behind, whatever went before."""
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except apsw.Error:
            self._suspect = True
        finally:
            self._turn.give()

    def _named(self, error: apsw.Error) -> StoreError | None:
        named = fault(error, self._file.path)
        self._suspect = self._suspect or named is None or _lasting(named)
        return named


def unwatched(point: str) -> None:
    """The probe of production."""


def seat(file: File) -> Turn:
    """A place in the turn of the processes that write this file."""
    try:
        return Turn(file.path, file.mode())
    except OSError as error:
        raise unavailable(file.path, f"{error.filename} cannot be opened ({error.strerror})") from error


def _lasting(error: BaseException) -> bool:
    """Whether the connection may be at fault, so that the next transaction wants a new one."""
    return isinstance(error, StoreError) and error.code == "store_unavailable"
