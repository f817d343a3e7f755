"""Lists of tasks: what they hold is what a plain look over all tasks finds, and no statement behind a call reads a whole table."""

import random
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

from databases import PostgresServer
from pointsman import Pointsman, Task
from pointsman.store.connect import SERVER_SQL, SQL
from pointsman.store.database import Tx
from pointsman.store.lists import Filter, position
from pointsman.store.postgres_statements import for_writing
from pointsman.store.sqlite_file import File
from pointsman.store.statements import Statement, load
from support import GOOD

READ_WHOLE = {
    "list_machines": "a handful",
    "list_prunings": "a handful",
    "find_unfinished": "one row at most",
    "count_prunable": "counts all",
    "prune_refusals": "the log is short",
    "count_tasks": "counts all",
    "count_waiting": "counts all that wait",
    "count_pending": "counts what is being judged",
    "proposals_after": "verifies all",
    "stray_dependencies": "verifies all",
    "stranded": "audits all that is open",
    "untold_ends": "audits all that waits",
    "waits": "audits all that waits",
    "hooks_in_use": "a handful",
    "open_lanes": "a handful of hooks",
    "add_messages": "a handful of hooks",
    "messages_waiting": "counts all that wait to be sent",
    "unpaired_message_lanes": "verifies all",
}
ENDS = {"feed_head": 1, "latest_refusals": 1, "feed_waits": 1, "unnumbered": 1}
"""Statements that walk a table from its end and stop at their limit."""


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Pointsman]:
    """Forty tasks of several owners in several states."""
    dice = random.Random(7)
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        for _ in range(40):
            task = pm.create("tasks", {"title": "Release", "brief": "b"}, by="ann", priority=dice.randrange(3))
            _moved(pm, task, dice.choice(("ann", "ben")), dice.randrange(6))
        yield pm


def _moved(pm: Pointsman, task: Task, by: str, far: int) -> None:
    steps = ("claim", "start_draft", "request_approval", "approve", "complete")[:far]
    for event in steps:
        who = "rita" if event == "approve" else by
        args = {"draft": f"Release {GOOD}"} if event == "request_approval" else {}
        task = pm.propose(task.id, event, args, by=who, epoch=None if event in ("claim", "approve") else task.epoch, digest=task.digest)


def test_every_filter_finds_what_a_look_over_all_tasks_finds(board: Pointsman) -> None:
    everything = board.list(limit=1_000)
    assert len(everything) == 40
    states = (None, ["approved"], ["queued", "done", "queued"], ["nowhere"])
    machines, people = (None, "tasks"), (None, "ann")
    for machine, state, owner, inbox, is_open, order in product(
        machines, states, people, people, (False, True), ("created_at", "updated_at", "priority")
    ):
        if inbox is not None and machine is None:
            continue  # refused: an inbox is of one machine
        wanted = Filter(machine, state, owner, is_open or inbox is not None, inbox, None if machine is None else "queued")
        expected = [task for task in everything if wanted.admits(task, final=task.state == "done")]
        expected.sort(key=lambda task: position(task, order))
        asked = {"machine": machine, "state": state, "owner": owner, "inbox": inbox, "open": is_open, "order": order}
        found, page = list[Task](), board.list(**asked, limit=7)
        while page:
            found += page
            page = board.list(**asked, limit=7, after=page[-1])
        assert found == expected, asked


def test_no_statement_behind_a_call_reads_a_whole_table() -> None:
    connection = apsw.Connection(":memory:")
    for file in sorted((SQL / "schema").iterdir(), key=lambda file: file.name):
        connection.execute(file.read_text())
    scanning = {name: steps for name, statement in load(SQL).items() if (steps := _scans(connection, statement))}
    assert scanning.keys() == READ_WHOLE.keys() | ENDS.keys()


def _scans(connection: apsw.Connection, statement: Statement) -> list[str]:
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", dict.fromkeys(statement.parameters))
    steps = [str(row[3]) for row in plan]
    return [step for step in steps if re.match(r"SCAN (?!found\b|CONSTANT|json_each)", step)]


def test_no_statement_is_prepared_anew_at_every_call(board: Pointsman) -> None:
    """SQLite does that to whatever might use a partial index, unless it is told that plans do not depend on what is bound. It asks
    its authorizer whenever it prepares."""
    prepared: list[Any] = []

    def asked(*what: Any) -> int:
        prepared.append(what)
        return apsw.SQLITE_OK

    def watch(tx: Tx) -> None:
        tx._connection.authorizer = asked  # pyright: ignore[reportAttributeAccessIssue]

    def call() -> None:
        task = board.claim("tasks", by="ann")
        assert task is not None
        board.propose(task.id, "start_draft", by="ann", epoch=task.epoch)
        assert board.list(state="queued", limit=1)

    board.engine.db.run(watch)
    board.engine.db.read(watch)
    call()
    assert prepared
    prepared.clear()
    call()
    assert prepared == []


def test_a_lane_whose_row_is_gone_holds_up_no_other(board: Pointsman) -> None:
    board.create("tasks", {"title": "Release", "brief": "b"}, by="ann", needs=["gpu"], priority=1_000)
    with closing(apsw.Connection(board.url.removeprefix("sqlite:///"))) as connection:
        connection.execute("DELETE FROM lanes WHERE key > 1")
    assert board.claim("tasks", by="ann") is not None
    assert len(board.claim_many("tasks", 2, by="ann")) == 2
    assert "lane" in board.verify().faults[0].what


CLAIMING = (
    "next_wake",
    "wake",
    "wake_at_last",
    "first_in_line",
    "lanes_with_work",
    "next_in_lane",
    "next_in_lane_at_last",
    "uses_of_limit",
    "free_places",
)
INDEXES = {"tasks_waking", "tasks_ready", "tasks_in_line", "tasks_pkey", "lanes_pkey", "limit_uses_in_window", "limit_uses_pkey"}


def test_whoever_claims_reads_indexes_alone_also_where_sqlite_has_counted_that_one_machine_has_all_rows(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        for _ in range(2):
            pm.create_many("tasks", [{"title": "Release", "brief": "b"}] * 1_000, by="ann")
    with closing(apsw.Connection(f"{tmp_path}/work.db")) as counted:
        counted.execute("ANALYZE")
    opened = File(f"{tmp_path}/work.db", 1.0).open()
    found = load(SQL, "sqlite")
    for name in CLAIMING:
        plan = opened.execute("EXPLAIN QUERY PLAN " + found[name].sql, dict.fromkeys(found[name].parameters, 1)).fetchall()
        assert [line for *_, line in plan if re.match(r"SCAN (?!found)", line)] == [], name
    opened.close()


@pytest.mark.parametrize("name", CLAIMING)
def test_whoever_claims_reads_indexes_alone_on_postgresql_too(postgres: PostgresServer, name: str) -> None:
    """The planner is asked for the one plan that stays cheap whatever the size: where it still sorts or reads a table, no index
    serves."""
    spelled = for_writing(load(SQL, "postgres"), load(SERVER_SQL, "postgres"))[name]
    given = {"machine": "tasks", "state": "queued", "before": "", "name": "n", "subject": "", "task": "", "but": None}
    with psycopg.connect(postgres.empty()) as session:
        session.execute("SET search_path = pointsman")
        session.execute("SET enable_seqscan = off")
        cursor = psycopg.RawCursor(session)
        cursor.execute(b"EXPLAIN (COSTS OFF) " + spelled.sql, [given.get(parameter, 1) for parameter in spelled.parameters])
        plan = [str(row[0]).strip() for row in cursor.fetchall()]
    assert [line for line in plan if re.search(r"Seq Scan on (tasks|limit_uses)", line)] == []
    used = {found[1] for line in plan if (found := re.search(r"Scan using (\w+)", line))}
    assert used <= INDEXES
    sorts = [line for line in plan if re.match(r"(->\s+)?Sort$", line)]
    assert len(sorts) == (1 if name == "lanes_with_work" else 0), "only the few lanes are sorted"
    if name.startswith("next_in_lane"):
        assert any("lane = " in line and "ROW(place, key) >=" in line for line in plan), plan


LOOKED_UP = sorted(name for name, statement in load(SQL, "postgres").items() if statement.shape in (":one?", ":one", ":sure"))
NOT_BY_KEY = {
    "feed_head": "the end of an index",
    "last_entry": "the end of an index",
    "last_task_key": "the end of an index",
    "entry_keys": "both ends of an index",
    "pending_of_task": "a partial index over the few that are pending",
    "settle_proposal": "a partial index over the few that are pending",
    "keep_proposal": "a partial index over the few that are pending",
    **READ_WHOLE,
}


@pytest.mark.parametrize("name", [name for name in LOOKED_UP if name not in NOT_BY_KEY])
def test_a_row_is_found_by_its_key_also_where_the_plan_was_made_before_there_were_rows(postgres: PostgresServer, name: str) -> None:
    """A session keeps its plans until the server has counted the rows. On an empty table an index whose first column is not asked for
    costs no more than another; later all of it is read."""
    spelled = for_writing(load(SQL, "postgres"), load(SERVER_SQL, "postgres"))[name]
    with psycopg.connect(postgres.empty(), autocommit=True) as session:
        session.execute("SET search_path = pointsman")
        session.execute("SET plan_cache_mode = force_generic_plan")
        first = dict(session.execute(FIRST_COLUMNS).fetchall())
        psycopg.RawCursor(session).execute(b"PREPARE asked AS " + spelled.sql)
        nulls = f"({', '.join(['NULL'] * len(spelled.parameters))})" if spelled.parameters else ""
        plan = [str(row[0]).strip() for row in session.execute(f"EXPLAIN (COSTS OFF) EXECUTE asked{nulls}".encode()).fetchall()]
    looked = [(found[1], plan[at + 1]) for at, line in enumerate(plan) if (found := re.search(r"Index (?:Only )?Scan using (\w+)", line))]
    assert [line for line in plan if re.search(r"Seq Scan on (tasks|entries|payloads|operations|requests|feed)", line)] == []
    assert [(index, cond) for index, cond in looked if not re.match(rf"Index Cond: .*\b{first[index]}\b", cond)] == [], plan


FIRST_COLUMNS = """
SELECT c.relname, a.attname
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE c.relnamespace = 'pointsman'::regnamespace
"""
