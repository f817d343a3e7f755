"""P5, in another house: a copy holds every row of every table, verifies against the source's head, and is refused until then."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import databases
import support
from databases import STORES
from pointsman import Pointsman, Refused, Tasks
from pointsman.engine import moving
from pointsman.engine.chance import wall_clock
from pointsman.errors import StoreError
from pointsman.store import copying
from pointsman.store.columns import COLUMNS, KEYS
from pointsman.store.connect import connect
from pointsman.store.copying import MARK, PAGE, Copy
from promises.copies import Copies, PostgresCopies, SqliteCopies
from promises.test_p05_history_is_gapless_and_cannot_be_altered import Judged, whole

__all__ = ["whole"]  # a database with every kind of row


def rows(url: str, table: str) -> list[tuple[Any, ...]]:
    """Everything in a table, in the order of its key, read behind Pointsman's back."""
    sql = f"SELECT {', '.join(COLUMNS[table])} FROM {table} ORDER BY {', '.join(KEYS[table])}"
    if url.startswith("sqlite"):
        raw = apsw.Connection(url.removeprefix("sqlite:///"))
        try:
            return raw.execute(sql).fetchall()
        finally:
            raw.close()
    with psycopg.connect(url, options="-c search_path=pointsman") as session:
        return session.execute(sql.encode()).fetchall()


@pytest.fixture(params=STORES)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that is not there yet, or has no tables yet."""
    return f"sqlite:///{tmp_path}/target.db" if request.param == "sqlite" else request.getfixturevalue("postgres").create()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Pointsman]:
    """A SQLite database with enough tasks for several pages."""
    with Pointsman(f"sqlite:///{tmp_path}/source.db") as pm:
        support.approved(pm)
        support.failed(pm)
        pm.engine.db.run(
            lambda tx: [tx("add_refusal", at=1, task=None, event="e", by="b", door="d", code="c", detail="") for _ in range(9)]
        )
        for number in range(PAGE + 5):
            support.create(pm, f"Release notes {number}")
        yield pm


def test_the_keys_and_the_order_of_tables_are_those_of_the_schema(whole: Copies) -> None:
    assert {table: tuple(whole.key_of(table)) for table in COLUMNS} == {
        table: tuple(sorted(KEYS[table], key=_place(whole, table))) for table in KEYS
    }
    order = list(COLUMNS)
    for table, named in _references(whole):
        assert order.index(named) < order.index(table), f"{table} names rows of {named}, which must be copied before it"


def _place(whole: Copies, table: str) -> Any:
    return whole.tables()[table].index


def _references(whole: Copies) -> list[tuple[str, str]]:
    """(table, table that it names) for every foreign key between declared tables."""
    if isinstance(whole, SqliteCopies):
        return [(table, row[2]) for table in COLUMNS for row in whole.ask(f"PRAGMA foreign_key_list({table})")]
    found = whole.ask("SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint WHERE contype = 'f'")
    plain = [(table.rpartition(".")[2], named.rpartition(".")[2]) for table, named in found]
    return [(table, named) for table, named in plain if table in COLUMNS]


def test_every_row_of_every_table_arrives(whole: Copies, target: str) -> None:
    """The original has a row of every kind; a table that a copy forgets is empty in the target."""
    if isinstance(whole, PostgresCopies) and target.startswith("sqlite"):
        with Pointsman(whole.changed([]), [], create=False) as pm, pytest.raises(Refused, match="goes to PostgreSQL"):
            pm.copy(target)
        return
    url = whole.changed([])
    with Pointsman(url, [], create=False) as pm:
        head = pm.head()
        arrived = pm.copy(target)
    assert arrived.report.ok
    for table in copying.TABLES:
        there = rows(url, table)
        assert there or table == "refusals", f"the source has no row of {table}: give it one in the fixture `whole`"
        assert (rows(target, table), arrived.rows[table]) == (there, len(there)), table
    assert rows(target, MARK) == []
    with Pointsman(target, [Tasks, Judged]) as pm:
        assert pm.verify(head).ok
        assert pm.check() == []
        assert pm.head() == head


def test_work_goes_on_where_the_copy_is(source: Pointsman, target: str) -> None:
    """New rows get new keys, numbers and feed entries; what was claimed is still claimed."""
    held = support.claimed(source)
    source.copy(target)
    with Pointsman(target) as pm:
        task = support.approved(pm)
        assert pm.propose(held.id, "start_draft", by=support.OWNER, epoch=held.epoch).state == "drafting"
        assert pm.list(limit=1_000, after=None)[-1].id == task.id
        report = pm.verify(pm.head())
    assert (report.ok, report.tasks) == (True, len(source.list(limit=1_000)) + 1)


def test_the_ledger_goes_on_where_the_copy_is(source: Pointsman, target: str) -> None:
    """Also what somebody says too late, which has a number of its own."""
    task = support.claimed(source)
    begun = source.begin(task.id, "load", by=support.OWNER, epoch=task.epoch, kind="keyed").operation
    with pytest.raises(Refused):
        source.finish(begun.id, "failed", by=support.OWNER, epoch=task.epoch + 1)
    source.checkpoint(task.id, 1, by=support.OWNER, epoch=task.epoch)
    source.copy(target)
    with Pointsman(target) as pm:
        with pytest.raises(Refused, match="lease_lost"):
            pm.finish(begun.id, "succeeded", by=support.OWNER, epoch=task.epoch + 1)
        assert [said.status for said in pm.operations(task.id)[0].testimony] == ["failed", "succeeded"]
        assert pm.checkpoint(task.id, 2, by=support.OWNER, epoch=task.epoch).number == 2
        assert pm.finish(begun.id, "succeeded", by=support.OWNER, epoch=task.epoch).standing == "succeeded"
        assert pm.verify().ok


def test_an_interrupted_request_is_replayed_where_the_copy_is(source: Pointsman, target: str) -> None:
    asked = {"by": "ann", "idempotency_key": "once"}
    first = source.create("tasks", {"title": "t", "brief": "b"}, **asked)
    source.copy(target)
    with Pointsman(target) as pm:
        again = pm.create("tasks", {"title": "t", "brief": "b"}, **asked)
        assert (again.id, again.version, again.replayed) == (first.id, 1, True)
        with pytest.raises(Refused, match="idempotency_conflict"):
            pm.create("tasks", {"title": "other", "brief": "b"}, **asked)


def test_the_source_is_read_as_of_one_moment_beside_live_work(source: Pointsman, target: str) -> None:
    before, seen = source.head(), list[tuple[str, int]]()

    def told(table: str, count: int) -> None:
        seen.append((table, count))
        support.approved(source)

    arrived = source.copy(target, told)
    assert (arrived.head.seq, arrived.head.hash) == (before["seq"], before["hash"])
    assert source.head()["seq"] > before["seq"]
    with Pointsman(target, create=False) as pm:
        assert pm.head() == before
    steps = [count for table, count in seen if table == "tasks"]
    assert steps == [PAGE, arrived.rows["tasks"]], "rows are held a page at a time"
    assert seen[-1] == ("verifying", 0)


def test_entries_without_a_number_get_theirs_where_the_copy_is(source: Pointsman, target: str) -> None:
    source.as_of()
    task = support.create(source)
    database = connect(target, clock=wall_clock, unfinished=True)
    arrived = moving.copy(source.engine.db, database, "c", lambda *_: None)
    database.close()
    with Pointsman(target) as pm:
        assert pm.head()["seq"] == arrived.head.seq + 1
        assert pm.history(n=1)[0].task == task.id
        assert pm.verify(source.head()).ok


def test_a_target_that_holds_anything_is_refused_and_stays_as_it_was(source: Pointsman, target: str) -> None:
    Pointsman(target).close()
    with pytest.raises(StoreError, match=r"it holds something \(machines\)"):
        source.copy(target)
    with Pointsman(target) as pm:
        assert pm.list() == []


def test_a_database_is_not_copied_into_itself(source: Pointsman) -> None:
    with pytest.raises(StoreError, match="it holds something"):
        source.copy(source.url)
    assert source.verify().ok


KILLED = """
import os, signal, sys
from pointsman import Pointsman
def told(table, count):
    if table == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
Pointsman(sys.argv[1], create=False).copy(sys.argv[2], told)
"""


@pytest.mark.parametrize("point", ["machines", "entries", "prunings", "verifying"])
def test_a_copy_that_was_killed_says_so_and_is_refused_until_copied_anew(source: Pointsman, target: str, point: str) -> None:
    source.prune(3_600_000_000)
    done = subprocess.run([sys.executable, "-c", KILLED, source.url, target, point], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    for open_it in (lambda: Pointsman(target), lambda: Pointsman(target, create=False, publish=False)):
        with pytest.raises(StoreError, match=r"unfinished copy of .*source\.db, begun at .*copy that anew"):
            open_it()
    support.create(source)
    assert source.copy(target).report.ok
    with Pointsman(target, create=False) as pm:
        assert pm.verify(source.head()).ok


def test_of_two_copies_into_one_target_the_later_one_goes_on(source: Pointsman, target: str) -> None:
    database = connect(target, clock=wall_clock, unfinished=True)
    later = Copy("later", "elsewhere", database)
    with pytest.raises(StoreError, match="another copy into it began"):
        source.copy(target, lambda table, _: later.begin() if table == "tasks" else None)
    assert rows(target, "tasks") == []
    with pytest.raises(StoreError, match="another copy into it began"):
        Copy("earlier", "elsewhere", database).finish()
    later.finish()
    database.close()


def test_a_source_that_does_not_verify_gives_a_copy_that_stays_closed(source: Pointsman, target: str) -> None:
    """And so does a target into which somebody else wrote meanwhile."""
    raw = apsw.Connection(source.url.removeprefix("sqlite:///"))
    raw.execute("UPDATE entries SET by = 'mallory' WHERE key = 3")
    raw.close()
    arrived = source.copy(target)
    assert [fault.what for fault in arrived.report.faults][-1] == "a covered column was altered"
    with pytest.raises(StoreError, match="unfinished copy"):
        Pointsman(target)


def test_what_somebody_else_wrote_into_the_target_is_found(source: Pointsman, tmp_path: Path) -> None:
    """A process that had opened the target while it was empty goes on writing there."""
    target = f"sqlite:///{tmp_path}/target.db"
    with Pointsman(target, publish=False) as early:

        def told(table: str, _: int) -> None:
            if table == "verifying":
                support.create(early)

        arrived = source.copy(target, told)
    assert [fault.what for fault in arrived.report.faults] == ["the target holds tasks or entries that were not copied"]
    with pytest.raises(StoreError, match="unfinished copy"):
        Pointsman(target)


def test_a_copy_between_servers_keeps_what_waits_for_a_number(request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgres")
    there, here = server.empty(), databases.empty("postgres", Path(), request)
    with Pointsman(here) as pm:
        support.approved(pm)
        first, second = (connect(url, clock=wall_clock, unfinished=True) for url in (here, there))
        assert moving.copy(first, second, "c", lambda *_: None).report.ok
        first.close()
        second.close()
        with Pointsman(there) as copied:
            assert copied.head() == pm.head()
