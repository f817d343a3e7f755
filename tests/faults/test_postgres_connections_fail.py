"""P9 and P21 on PostgreSQL: what a caller is told when a connection fails, and that the store then goes on by itself."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import pytest

import databases
import support
from databases import KILL, PostgresServer
from faults.proxy import Proxy
from pointsman import Pointsman, Task
from pointsman.errors import StoreError
from pointsman.store.database import Tx
from pointsman.store.postgres import Postgres
from pointsman.store.postgres_server import Patience
from store.notes import add, open_postgres_notes, texts

SHORT = Patience(connection_s=0.5, lock_s=0.3, statement_s=0.6, idle_s=5, grace_s=0.4)
LONGEST_S = 5.0


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[Proxy]:
    with Proxy(postgres.address) as opened:
        yield opened


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.create()


@pytest.fixture
def through(proxy: Proxy, database: str) -> str:
    """The database's URL, over the proxy."""
    return databases.spelled(database, host="127.0.0.1", port=str(proxy.port), sslmode="disable")


@pytest.fixture
def notes(database: str, tmp_path: Path) -> Iterator[Postgres]:
    opened = open_postgres_notes(database, tmp_path, patience=SHORT)
    yield opened
    opened.close()


class Armed:
    """A probe that does something when a point is next passed."""

    def __init__(self, point: str) -> None:
        self.point = point
        self.then: Callable[[], None] | None = None

    def __call__(self, point: str) -> None:
        if point == self.point and self.then is not None:
            then, self.then = self.then, None
            then()


def _submit(pm: Pointsman, task: Task) -> Task:
    return pm.propose(task.id, "request_approval", {"draft": support.GOOD}, by=support.OWNER, epoch=task.epoch)


def test_a_lost_answer_to_commit_is_settled_by_key(through: str, proxy: Proxy) -> None:
    """The change is made once and the caller gets its answer, without a key of its own."""
    armed = Armed("commit.before")
    with Pointsman(through, probe=armed) as pm:
        task = support.drafting(pm)
        armed.then = proxy.cut
        answer = _submit(pm, task)
        assert armed.then is None
        assert (answer.state, answer.version) == ("awaiting_approval", task.version + 1)
        assert [entry.event for entry in pm.history(task.id)].count("request_approval") == 1
        assert pm.verify().ok


@pytest.mark.parametrize("heard", [1, 150, 400, 700, 1000, 1300, 1600, 1900, 2200, 2500, 3000, 60_000])
def test_a_last_word_that_the_server_hears_in_part_changes_once_or_not_at_all_and_is_settled(
    through: str, proxy: Proxy, heard: int
) -> None:
    """A transition is told in two words: the row is locked, and all is written, with the COMMIT."""
    with Pointsman(through) as pm:
        task = support.drafting(pm)
        again = pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch)
        proxy.shorten(words=1, heard=heard)
        answer = pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch)
        assert proxy.heard() is None, "it was broken off"
        assert answer.version == again.version + 1
        assert pm.get(task.id).version == answer.version
        assert pm.verify().ok


@pytest.mark.parametrize("verb", ["create", "claim"])
def test_a_lost_answer_to_a_commit_of_any_verb_changes_once(through: str, proxy: Proxy, verb: str) -> None:
    armed = Armed("commit.before")
    with Pointsman(through, probe=armed) as pm:
        waiting = [support.create(pm).id]
        armed.then = proxy.cut
        answer = support.create(pm) if verb == "create" else pm.claim("tasks", by="w")
        assert answer is not None
        assert (len(pm.list()), len(pm.list(state="claimed"))) == ((2, 0) if verb == "create" else (1, 1))
        assert (answer.id in waiting) == (verb == "claim")


def test_what_nobody_could_settle_is_told_as_unknown(through: str, database: str, proxy: Proxy) -> None:
    armed = Armed("commit.before")
    with Pointsman(through, probe=armed) as pm:
        task = support.drafting(pm)

        def cut() -> None:
            proxy.cut(then="refuse")

        armed.then = cut
        with pytest.raises(StoreError) as told:
            _submit(pm, task)
        assert (told.value.code, told.value.outcome) == ("store_unavailable", "unknown")
        with pytest.raises(StoreError) as later:
            _submit(pm, task)
        assert later.value.outcome == "not_done"
        proxy.mode = "pass"
        assert pm.get(task.id).version == task.version + 1, "it had been committed, and the service is back without a restart"


def test_a_black_hole_holds_nobody_for_ever(through: str, proxy: Proxy, tmp_path: Path) -> None:
    """The connection looks alive and nothing is ever said: the caller's own deadline ends the wait."""
    db = open_postgres_notes(through, tmp_path, patience=SHORT)
    db.run(add("before"))
    proxy.mode = "swallow"
    for ask in (db.run, db.read):
        began = time.monotonic()
        with pytest.raises(StoreError) as told:
            ask(texts)
        assert (told.value.code, told.value.outcome) == ("store_unavailable", "not_done")
        assert time.monotonic() - began < LONGEST_S
    proxy.mode = "pass"
    proxy.reset()
    assert db.run(texts) == ["before"]
    db.close()


def test_a_black_hole_at_commit_is_unknown(through: str, proxy: Proxy, tmp_path: Path) -> None:
    armed = Armed("commit.before")
    db = open_postgres_notes(through, tmp_path, patience=SHORT, probe=armed)

    def swallow() -> None:
        proxy.mode = "swallow"

    armed.then = swallow
    with pytest.raises(StoreError) as told:
        db.run(add("perhaps"))
    assert (told.value.code, told.value.outcome) == ("store_unavailable", "unknown")
    proxy.mode = "pass"
    proxy.reset()
    assert db.run(texts) == []
    db.close()


def test_a_backend_killed_inside_a_unit_is_told_and_leaves_nothing(notes: Postgres, postgres: PostgresServer, database: str) -> None:
    def killed(tx: Tx) -> None:
        tx("put_note", id=1, text="half")
        postgres.execute(KILL, database)
        tx("put_note", id=2, text="other half")

    with pytest.raises(StoreError) as told:
        notes.run(killed)
    assert (told.value.code, told.value.outcome) == ("store_unavailable", "not_done")
    assert notes.run(texts) == []


def test_sessions_that_died_while_they_stood_idle_are_replaced_unnoticed(notes: Postgres, postgres: PostgresServer, database: str) -> None:
    several = [notes.submit(add(str(number))) for number in range(20)]
    assert len({future.result(10) for future in several}) == 20
    postgres.execute(KILL, database)
    assert len(notes.read(texts)) == 20
    postgres.execute(KILL, database)
    assert notes.run(add("after")) > 0


def test_when_all_connections_are_in_use_a_caller_is_told_so(database: str, tmp_path: Path) -> None:
    db = open_postgres_notes(database, tmp_path, patience=SHORT, size=1)
    entered, leave = Event(), Event()

    def holds(tx: Tx) -> None:
        entered.set()
        assert leave.wait(10)

    holding = db.submit(holds)
    assert entered.wait(10)
    with pytest.raises(StoreError, match="all connections of this process are in use") as told:
        db.run(texts)
    assert (told.value.code, told.value.outcome) == ("store_busy", "not_done")
    leave.set()
    holding.result(10)
    assert db.run(texts) == []
    db.close()


def test_a_lock_that_somebody_keeps_is_busy(notes: Postgres) -> None:
    notes.run(lambda tx: tx("put_note", id=1, text="a"))
    entered, leave = Event(), Event()

    def holds(tx: Tx) -> None:
        tx("hold_note", id=1)
        entered.set()
        assert leave.wait(10)

    holding = Thread(target=lambda: notes.run(holds))
    holding.start()
    assert entered.wait(10)
    with pytest.raises(StoreError, match="kept a lock") as told:
        notes.run(lambda tx: tx("count_up", id=1))
    assert (told.value.code, told.value.outcome) == ("store_busy", "not_done")
    leave.set()
    holding.join(10)
    assert notes.run(lambda tx: tx("count_up", id=1)) == (1,)


def test_a_client_that_stops_inside_a_transaction_loses_it_and_its_locks(database: str, tmp_path: Path) -> None:
    db = open_postgres_notes(database, tmp_path, patience=replace(SHORT, lock_s=5, idle_s=0.3))
    db.run(lambda tx: tx("put_note", id=1, text="a"))
    entered, leave = Event(), Event()

    def stops(tx: Tx) -> None:
        tx("count_up", id=1)
        entered.set()
        assert leave.wait(10)
        tx("count_up", id=1)

    stopped = db.submit(stops)
    assert entered.wait(10)
    assert db.run(lambda tx: tx("count_up", id=1)) == (1,), "another has the row, though nobody gave it back"
    leave.set()
    told = stopped.exception(10)
    assert isinstance(told, StoreError)
    assert (told.code, told.outcome) == ("store_unavailable", "not_done")
    assert db.run(lambda tx: tx("hold_note", id=1)) == (1, 1)
    db.close()


def test_a_statement_that_takes_too_long_is_busy(notes: Postgres) -> None:
    with pytest.raises(StoreError, match="did not end in time") as told:
        notes.run(lambda tx: tx("nap", seconds=5))
    assert (told.value.code, told.value.outcome) == ("store_busy", "not_done")
    assert notes.run(texts) == []


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as told:
        open_postgres_notes("postgresql://ann@127.0.0.1:1/work", tmp_path)
    assert (told.value.code, told.value.outcome) == ("store_unavailable", "not_done")
    assert told.value.detail.startswith("database postgresql://ann@127.0.0.1:1/work: ")
