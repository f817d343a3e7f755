"""What one unit of work can rely on."""

import enum
import threading
from concurrent.futures import CancelledError
from functools import partial
from pathlib import Path

import pytest

from pointsman.errors import StoreError
from pointsman.store.database import Database, Tx
from pointsman.store.sqlite import Sqlite
from store.conftest import Opener
from store.notes import Clock, Gate, add, open_notes, texts, together


def test_each_shape_answers_its_kind(db: Database):
    assert db.run(lambda tx: tx("put_note", id=1, text="a")) is None
    assert db.run(lambda tx: tx("note", id=1)) == (1, "a")
    assert db.run(lambda tx: tx("find_note", text="a")) == (1, "a")
    assert db.run(lambda tx: tx("find_note", text="b")) is None
    assert db.run(lambda tx: tx("notes")) == [("a",)]


def test_a_row_that_must_be_there_and_is_not_is_a_lookup_error(db: Database):
    with pytest.raises(LookupError, match="note found 0 rows"):
        db.run(lambda tx: tx("note", id=1))


def test_two_rows_where_one_may_be_are_a_lookup_error(db: Database):
    db.run(lambda tx: [tx("put_note", id=n, text="same") for n in (1, 2)])
    with pytest.raises(LookupError, match="find_note found 2 rows"):
        db.run(lambda tx: tx("find_note", text="same"))


def test_a_unit_that_raises_changes_nothing(db: Database):
    def fails(tx: Tx) -> None:
        tx("put_note", id=1, text="a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        db.run(fails)
    with pytest.raises(ZeroDivisionError):
        db.submit(fails).result(10)
    assert db.read(texts) == []


@pytest.mark.parametrize("value", [True, enum.IntEnum("E", "A").A, 1.5j, ["a"], float("nan"), float("inf")])
def test_what_a_database_would_silently_change_is_not_bound(db: Database, value: object):
    with pytest.raises(TypeError, match=f"put_note: text is {type(value).__name__}"):
        db.run(lambda tx: tx("put_note", id=1, text=value))


@pytest.mark.parametrize("value", ["é\U0001f600", "", 2**63 - 1, -(2**63), 1.5, b"\0\xff", None])
def test_what_can_be_bound_comes_back_as_it_was(db: Database, value: object):
    assert db.run(lambda tx: tx("echo", value=value)) == (value,)


@pytest.mark.parametrize("value", [2**63, "\ud800"])
def test_what_no_database_can_hold_fails_alone(db: Database, value: object):
    fits, too_much = together(db, add("fits"), lambda tx: tx("echo", value=value))
    assert fits.result() == 1
    assert isinstance(too_much.exception(), OverflowError | UnicodeEncodeError)


@pytest.mark.parametrize("parameters", [{}, {"id": 1}, {"id": 1, "text": "a", "more": 1}, {"id": 1, "txt": "a"}])
def test_parameters_are_exactly_those_of_the_statement(db: Database, parameters: dict[str, object]):
    with pytest.raises(TypeError, match=r"put_note takes \(id, text\)"):
        db.run(lambda tx: tx("put_note", **parameters))


def test_an_unknown_statement_is_a_key_error(db: Database):
    with pytest.raises(KeyError, match="nothing_like_it"):
        db.run(lambda tx: tx("nothing_like_it"))


def test_a_transaction_is_dead_after_its_unit(db: Database):
    kept = db.run(lambda tx: tx)
    with pytest.raises(RuntimeError, match="has ended"):
        kept("notes")


def test_time_is_read_once_per_unit_and_never_runs_backwards(opener: Opener):
    clock = Clock(1_000)
    db = opener(clock=clock)
    assert db.run(lambda tx: (tx.now, tx("notes"), tx.now)) == (1_001, [], 1_001)
    clock.at = 5
    assert [db.run(lambda tx: tx.now), db.read(lambda tx: tx.now), db.submit(lambda tx: tx.now).result(10)] == [1_001] * 3
    clock.at = 2_000
    assert db.read(lambda tx: tx.now) == 2_001


def test_a_reader_sees_one_snapshot_beside_the_writer(db: Database):
    db.run(add("a"))
    seen, written = threading.Event(), threading.Event()

    def reads(tx: Tx) -> tuple[list[str], list[str]]:
        before = texts(tx)
        seen.set()
        assert written.wait(10)
        return before, texts(tx)

    reading = db.submit_read(reads)
    assert seen.wait(10)
    db.run(add("b"))
    written.set()
    assert reading.result(10) == (["a"], ["a"])
    assert db.read(texts) == ["a", "b"]


def test_a_reader_does_not_wait_for_the_writer(db: Database):
    with Gate(db):
        assert db.read(texts) == []
        assert db.submit_read(texts).result(10) == []


def test_a_reader_cannot_write(db: Database):
    with pytest.raises(StoreError, match="read-only"):
        db.read(add("a"))
    assert db.read(texts) == []


def test_a_unit_given_up_before_it_began_is_not_run(file_db: Sqlite):
    with Gate(file_db):
        given_up, kept = file_db.submit(add("given up")), file_db.submit(add("kept"))
        assert given_up.cancel()
    assert kept.result(10)
    with pytest.raises(CancelledError):
        given_up.result(10)
    assert file_db.read(texts) == ["kept"]


def test_close_finishes_what_is_queued_and_refuses_what_comes_later(tmp_path: Path):
    db = open_notes(tmp_path)
    with Gate(db):
        queued = [db.submit(add(str(n))) for n in range(300)]
        closing = threading.Thread(target=db.close)
        closing.start()
        while not (late := db.submit(add("late"))).done():
            queued.append(late)
    closing.join(10)
    assert all(future.result(10) for future in queued)
    late_ones = [late, db.submit(add("late")), db.submit_read(texts)]
    assert {future.exception(10).code for future in late_ones} == {"store_unavailable"}
    for ask in (db.run, db.read):
        with pytest.raises(StoreError, match="it is closed"):
            ask(texts)
    db.close()
    again = open_notes(tmp_path)
    assert len(again.read(texts)) == len(queued)
    again.close()


def test_thirty_two_threads_each_get_their_own_answer(db: Database):
    db.run(lambda tx: tx("put_note", id=1, text="a"))
    answers: list[list[int]] = [[] for _ in range(32)]

    def count(mine: list[int]) -> None:
        mine.extend(db.run(lambda tx: tx("count_up", id=1)[0]) for _ in range(25))

    threads = [threading.Thread(target=count, args=(mine,)) for mine in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(n for mine in answers for n in mine) == list(range(1, 801))
    assert all(mine == sorted(mine) for mine in answers)


def test_a_unit_that_waits_for_another_is_told_instead_of_waiting_for_ever(db: Database):
    def nested(tx: Tx) -> int:
        tx("put_note", id=7, text="outer")
        return db.run(add("inner"))

    for answer in (partial(db.run, nested), db.submit(nested).result):
        with pytest.raises(RuntimeError, match="it would never run"):
            answer()
    assert db.read(texts) == []
