"""What is told to PostgreSQL together, and that nothing of the discipline is lost by it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import support
from databases import PostgresServer
from pointsman import Pointsman
from pointsman.store.database import Tx
from pointsman.store.postgres import Postgres
from pointsman.store.postgres_wire import AT_ONCE, Wire
from store.notes import open_postgres_notes, texts


@pytest.fixture
def notes(postgres: PostgresServer, tmp_path: Path) -> Iterator[Postgres]:
    opened = open_postgres_notes(postgres.create(), tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def journeys(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many answers each journey brought."""
    made: list[int] = []
    honest = Wire.answers

    def counted(wire: Wire) -> list[psycopg.pq.abc.PGresult]:
        found = honest(wire)
        made.append(len(found))
        return found

    monkeypatch.setattr(Wire, "answers", counted)
    return made


def test_a_transition_takes_two_journeys(postgres: PostgresServer, journeys: list[int]) -> None:
    with Pointsman(postgres.empty()) as pm:
        task = support.drafting(pm)
        journeys.clear()
        pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch)
        assert journeys == [4, 5], "BEGIN, the locked row, the time, holds; the row, the entry, its payload, the key, COMMIT"


def test_a_step_that_is_remembered_takes_two_journeys(postgres: PostgresServer, journeys: list[int]) -> None:
    with Pointsman(postgres.empty()) as pm:
        task = support.drafting(pm)
        journeys.clear()
        pm.remember(task.id, "load", 7, by=support.OWNER, epoch=task.epoch)
        assert journeys == [4, 5], "BEGIN, the locked row, the time, the operation; the row, the entry, its payload, the operation, COMMIT"


def test_the_next_claim_takes_three_journeys(postgres: PostgresServer, journeys: list[int]) -> None:
    with Pointsman(postgres.empty()) as pm:
        pm.create_many("tasks", [{"title": "Notes", "brief": "Say what changed"}] * 2, by=support.OWNER)
        assert pm.claim("tasks", by=support.OWNER), "the first one also reads which versions there are"
        journeys.clear()
        assert pm.claim("tasks", by=support.OWNER)
        assert journeys == [6, 1, 5], "BEGIN, the time, who wakes, versions, lanes, holds; the locked row; what is written, COMMIT"


def test_what_is_said_to_come_next_is_read_behind_the_time(notes: Postgres, journeys: list[int]) -> None:
    """A statement that is answered before the time was asked for does not take it along."""

    def unit(tx: Tx) -> list[tuple[str]]:
        tx.ahead("notes")
        tx("find_note", text="a")
        tx("put_note", id=1, text="a")
        assert tx.now
        return tx("notes")

    assert notes.run(unit) == [("a",)]
    assert journeys == [2, 3, 1], "BEGIN, a note; another, the time, all notes; COMMIT"


def test_what_was_read_ahead_is_read_anew_behind_a_wait(notes: Postgres) -> None:
    """Whoever was waited for may have changed it."""
    notes.run(lambda tx: tx("put_note", id=1, text="a"))

    def unit(tx: Tx) -> list[list[tuple[str]]]:
        tx.ahead("notes")
        assert tx.now
        before = tx("notes")
        notes.submit(lambda other: other("put_note", id=2, text="b")).result(10)
        same = tx("notes")
        tx("hold_note", id=1)
        return [before, same, tx("notes")]

    assert notes.run(unit) == [[("a",)], [("a",)], [("a",), ("b",)]]


def test_a_refusal_sends_nothing_that_is_not_needed(notes: Postgres, journeys: list[int]) -> None:
    def refuses(tx: Tx) -> None:
        tx("put_note", id=1, text="never sent")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        notes.run(refuses)
    assert journeys == []
    assert notes.read(texts) == []


def test_many_statements_arrive_in_their_order(notes: Postgres, journeys: list[int]) -> None:
    count = 3 * AT_ONCE + 7
    notes.run(lambda tx: [tx("put_note", id=number, text=str(number)) for number in range(count)])
    assert notes.read(texts) == [str(number) for number in range(count)]
    assert max(journeys) == AT_ONCE


@pytest.mark.parametrize("before", range(AT_ONCE - 3, AT_ONCE + 2))
def test_a_row_and_the_time_behind_it_come_together_whatever_waits(notes: Postgres, before: int) -> None:
    def unit(tx: Tx) -> tuple[int, int]:
        for number in range(before):
            tx("put_note", id=number, text="a")
        return tx("hold_note", id=1)[0], tx.now

    assert notes.run(unit)[0] == 1


def test_more_than_a_socket_holds_is_sent_while_it_is_read(notes: Postgres) -> None:
    long = "x" * 3_000_000
    assert notes.run(lambda tx: [tx("echo", value=long) for _ in range(3)]) == [(long,)] * 3
    notes.run(lambda tx: [tx("put_note", id=number, text=f"{number}") for number in range(3)])
    assert notes.run(lambda tx: [tx("put_note", id=10, text="many"), tx("echo", value=long)][1]) == (long,)


def test_a_statement_that_cannot_be_prepared_is_not_taken_for_one_that_is(notes: Postgres) -> None:
    """On one session: each time the same fault, and others go on."""
    for _ in range(3):
        with pytest.raises(psycopg.errors.UndefinedFunction):
            notes.run(lambda tx: tx("nap", seconds="no number"))
        notes.run(lambda tx: tx("nap", seconds=0))


def test_what_was_sent_behind_a_fault_can_be_sent_again(notes: Postgres) -> None:
    """The statement behind it was not prepared either."""
    notes.run(lambda tx: tx("put_note", id=1, text="a"))

    def faulty(tx: Tx) -> None:
        tx("nap", seconds="no number")
        tx("count_up", id=1)

    for _ in range(2):
        with pytest.raises(psycopg.errors.UndefinedFunction):
            notes.run(faulty)
    assert notes.run(lambda tx: tx("count_up", id=1)) == (1,)


def test_the_first_fault_is_the_one_that_is_told(notes: Postgres) -> None:
    def twice_wrong(tx: Tx) -> None:
        tx("nap", seconds="no number")
        tx("put_note", id=1, text=None)

    with pytest.raises(psycopg.errors.UndefinedFunction):
        notes.run(twice_wrong)
    assert notes.read(texts) == []


def test_text_with_nul_is_refused_before_it_is_sent(notes: Postgres, journeys: list[int]) -> None:
    with pytest.raises(psycopg.DataError, match="NUL"):
        notes.run(lambda tx: tx("put_note", id=1, text="a\0b"))
    assert journeys == []


def test_who_looks_on_sees_each_statement_done(postgres: PostgresServer, tmp_path: Path, journeys: list[int]) -> None:
    """A probe is told "after" when the answer is there, so whoever is held there stands between two statements of the server."""
    told: list[tuple[str, int]] = []
    watched = open_postgres_notes(postgres.create(), tmp_path, probe=lambda point: told.append((point, len(journeys))))
    journeys.clear()
    told.clear()
    watched.run(lambda tx: tx("put_note", id=1, text="a"))
    assert ("before:put_note", 0) in told
    assert ("after:put_note", 1) in told
    watched.close()
