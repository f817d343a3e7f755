"""What is PostgreSQL's own in a unit of work: many writers at once, each row locked by whoever decides on it."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Barrier, Event

import psycopg
import pytest

from databases import PostgresServer
from pointsman.errors import StoreError
from pointsman.store import postgres_errors, statements
from pointsman.store.connect import SERVER_SQL, SQL
from pointsman.store.database import Tx
from pointsman.store.postgres import Postgres
from pointsman.store.postgres_statements import for_reading, for_writing
from pointsman.store.postgres_units import RUNS
from store.notes import add, open_postgres_notes, texts

PATIENCE_S = 20
ASKED = statements.load(SERVER_SQL, "postgres")


@pytest.fixture
def notes(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    """Three notes, on the server's own clock."""
    opened = open_postgres_notes(postgres.create(), tmp_path, clock=None)
    for number in (1, 2, 3):
        opened.run(lambda tx, number=number: tx("put_note", id=number, text=str(number)))
    yield opened
    opened.close()


class Holder:
    """A unit that holds a row until it is let go, and then commits or takes everything back."""

    def __init__(self, db: Postgres, note: int, *, fails: bool = False):
        self._db, self._note, self._fails = db, note, fails
        self._leave, self._entered = Event(), Event()

    def __enter__(self) -> "Holder":
        self._held: Future[None] = self._db.submit(self._hold)
        assert self._entered.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._held.exception(PATIENCE_S)

    def let_go(self) -> int:
        """The time at which it had not committed yet."""
        last = self._db.read(lambda tx: tx.now)
        self._leave.set()
        self._held.exception(PATIENCE_S)
        return last

    def _hold(self, tx: Tx) -> None:
        tx("hold_note", id=self._note)
        self._entered.set()
        assert self._leave.wait(PATIENCE_S)
        if self._fails:
            raise ZeroDivisionError


def _waits_for_a_lock(server: PostgresServer) -> bool:
    return server.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'")[0][0] > 0


def _until(said: Callable[[], bool]) -> None:
    for _ in range(PATIENCE_S * 50):
        if said():
            return
        Event().wait(0.02)
    raise AssertionError("it did not come to that")


def test_the_clock_is_read_after_the_wait_for_a_row(notes: Postgres, postgres: PostgresServer) -> None:
    """Read in the locking statement it would be as old as the wait."""
    with Holder(notes, 1) as holder:
        waiting = notes.submit(lambda tx: (tx("hold_note", id=1), tx.now)[1])
        _until(lambda: _waits_for_a_lock(postgres))
        last = holder.let_go()
        assert waiting.result(PATIENCE_S) > last


def test_the_clock_is_read_anew_after_another_wait(notes: Postgres, postgres: PostgresServer) -> None:
    """A unit that had asked for the time before it waited for a row does not judge by that."""
    with Holder(notes, 1) as holder:
        waiting = notes.submit(lambda tx: (tx.now, tx("hold_note", id=1), tx.now))
        _until(lambda: _waits_for_a_lock(postgres))
        last = holder.let_go()
        before, _, after = waiting.result(PATIENCE_S)
        assert before < last < after


def test_of_two_rows_that_are_waited_for_the_clock_is_read_after_the_second(notes: Postgres, postgres: PostgresServer) -> None:
    with Holder(notes, 2) as holder:
        waiting = notes.submit(lambda tx: (tx("hold_note", id=1), tx("hold_note", id=2), tx.now)[2])
        _until(lambda: _waits_for_a_lock(postgres))
        last = holder.let_go()
        assert waiting.result(PATIENCE_S) > last


def test_time_is_read_once_in_a_unit(notes: Postgres) -> None:
    first, second = notes.run(lambda tx: (tx.now, (tx("nap", seconds=0), tx.now)[1]))
    assert first == second


def test_a_row_that_is_held_is_passed_over_or_waited_for(notes: Postgres) -> None:
    with Holder(notes, 1):
        assert notes.run(lambda tx: tx("next_note")) == (2,)
        assert notes.read(lambda tx: tx("next_note")) == (1,), "whoever only reads takes no lock"


def test_who_waited_for_a_row_sees_what_was_committed(notes: Postgres, postgres: PostgresServer) -> None:
    with Holder(notes, 1) as holder:
        counting = [notes.submit(lambda tx: (tx("hold_note", id=1)[1], tx("count_up", id=1)[0])) for _ in range(4)]
        _until(lambda: _waits_for_a_lock(postgres))
        holder.let_go()
        assert sorted(future.result(PATIENCE_S) for future in counting) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_a_key_that_somebody_inserts_meanwhile_makes_the_unit_run_again(notes: Postgres, postgres: PostgresServer) -> None:
    entered, leave, runs = Event(), Event(), list[str]()

    def first(tx: Tx) -> None:
        tx("put_note", id=9, text="first")
        assert tx("find_note", text="first") is not None, "it is there before the other looks"
        entered.set()
        assert leave.wait(PATIENCE_S)

    def second(tx: Tx) -> str:
        runs.append("run")
        if tx("find_note", text="first") is not None:
            return "it was there"
        tx("put_note", id=9, text="second")
        return "mine"

    one = notes.submit(first)
    assert entered.wait(PATIENCE_S)
    other = notes.submit(second)
    _until(lambda: _waits_for_a_lock(postgres))
    leave.set()
    one.result(PATIENCE_S)
    assert other.result(PATIENCE_S) == "it was there"
    assert len(runs) == 2


def test_a_key_that_is_simply_taken_is_told_after_so_many_runs(notes: Postgres) -> None:
    runs: list[int] = []
    with pytest.raises(psycopg.errors.UniqueViolation):
        notes.run(lambda tx: (runs.append(1), tx("put_note", id=1, text="again")))
    assert len(runs) == RUNS


def test_two_units_in_a_deadlock_both_come_to_their_end(notes: Postgres) -> None:
    meet = Barrier(2)
    first_run = [True, True]

    def crossing(me: int, ids: tuple[int, int]) -> Callable[[Tx], None]:
        def unit(tx: Tx) -> None:
            tx("count_up", id=ids[0])
            if first_run[me]:
                first_run[me] = False
                meet.wait(PATIENCE_S)
            tx("count_up", id=ids[1])

        return unit

    both = [notes.submit(crossing(0, (1, 2))), notes.submit(crossing(1, (2, 1)))]
    for future in both:
        future.result(PATIENCE_S)
    assert [notes.run(lambda tx, id=id: tx("hold_note", id=id)[1]) for id in (1, 2)] == [2, 2]


def test_a_unit_that_goes_on_after_an_error_commits_nothing(notes: Postgres) -> None:
    def hides_it(tx: Tx) -> str:
        tx("put_note", id=7, text="lost")
        tx("put_note", id=1, text="taken")
        with pytest.raises(psycopg.Error):
            tx("notes")
        return "all is well"

    with pytest.raises(StoreError, match="an error had ended the transaction") as told:
        notes.run(hides_it)
    assert told.value.outcome == "not_done"
    assert notes.read(texts) == ["1", "2", "3"]


def test_a_commit_that_the_schema_refuses_changes_nothing(notes: Postgres) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        notes.run(add("orphan", parent=1234))
    assert notes.read(texts) == ["1", "2", "3"]


def test_queued_units_are_finished_before_the_end_and_later_ones_refused(notes: Postgres) -> None:
    queued = [notes.submit(add("queued")) for _ in range(100)]
    notes.close()
    assert all(future.exception() is None for future in queued)
    late = notes.submit(add("late")).exception(), notes.submit_read(texts).exception()
    assert {error.code for error in late if isinstance(error, StoreError)} == {"store_unavailable"}
    for ask in (notes.run, notes.read):
        with pytest.raises(StoreError, match="it is closed"):
            ask(texts)
    notes.close()


@pytest.mark.parametrize("name", statements.names(SQL))
def test_every_statement_is_one_that_postgresql_understands(postgres: PostgresServer, prepared: psycopg.Connection, name: str) -> None:
    """Each is prepared, for writing and for reading, with the types left to PostgreSQL as they are when values are null."""
    loaded = statements.load(SQL, "postgres")
    for spelled in (for_writing(loaded, ASKED)[name], for_reading(loaded)[name]):
        prepared.execute(b"PREPARE tried AS " + spelled.sql)
        prepared.execute(b"DEALLOCATE tried")


@pytest.fixture(scope="module")
def prepared(postgres: PostgresServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres.empty(), autocommit=True, options="-c search_path=pointsman") as session:
        yield session


def test_what_locks_is_marked_once_for_both_databases() -> None:
    loaded = statements.load(SQL, "postgres")
    locking = {name for name, spelled in for_writing(loaded, ASKED).items() if b"FOR NO KEY UPDATE" in spelled.sql}
    assert locking == {
        *("find_task", "find_tasks", "find_hold", "find_schedule", "uses_ended", "due_dependents", "open_children"),
        *("find_hook", "message_lanes_due", "lock_message_lane"),
        *(f"{name}{end}" for name in ("wake", "next_in_lane") for end in ("", "_at_last")),
    }
    assert not any(b"FOR NO KEY UPDATE" in spelled.sql for spelled in for_reading(loaded).values())


ERRORS = [
    (psycopg.errors.LockNotAvailable, "store_busy"),
    (psycopg.errors.QueryCanceled, "store_busy"),
    (psycopg.errors.TooManyConnections, "store_busy"),
    (psycopg.errors.DeadlockDetected, "store_busy"),
    (psycopg.errors.DiskFull, "store_unavailable"),
    (psycopg.errors.OutOfMemory, "store_unavailable"),
    (psycopg.errors.AdminShutdown, "store_unavailable"),
    (psycopg.errors.CannotConnectNow, "store_unavailable"),
    (psycopg.errors.ReadOnlySqlTransaction, "store_unavailable"),
    (psycopg.errors.InvalidPassword, "store_unavailable"),
    (psycopg.errors.InvalidCatalogName, "store_unavailable"),
    (psycopg.errors.InsufficientPrivilege, "store_unavailable"),
    (psycopg.errors.IoError, "store_unavailable"),
    (psycopg.errors.DataCorrupted, "store_unavailable"),
    (psycopg.errors.IdleInTransactionSessionTimeout, "store_unavailable"),
    (psycopg.OperationalError, "store_unavailable"),
    (psycopg.InterfaceError, "store_unavailable"),
    (psycopg.errors.CheckViolation, None),
    (psycopg.errors.SyntaxError, None),
    (psycopg.errors.NumericValueOutOfRange, None),
    (psycopg.DataError, None),
]


@pytest.mark.parametrize(("kind", "code"), ERRORS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_error_says_something_of_the_store_or_of_the_statement(kind: type[psycopg.Error], code: str | None) -> None:
    named = postgres_errors.fault(kind("said by the driver"), "postgresql://ann@host/work")
    assert (None if named is None else named.code) == code
