"""`python -m bench.size [--tasks N]`: how many bytes a task and an entry take on either store, table by table and index by index.

Every task goes through the six calls of the main job (six entries), by the public API. What is printed is what the stores
themselves say: SQLite's dbstat, PostgreSQL's pg_relation_size, each after the rows were packed (VACUUM, VACUUM FULL). Then
how fast the feed is numbered, the record verified, and the file copied to the server.
"""

import argparse
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import apsw
import psycopg

from bench import throwaway
from bench.flat import DRAFT
from bench.load import FIELDS
from pointsman import Pointsman

TASKS = 2_000
CALLERS = 16
CALLS = 6
OF_A_TASK = ("tasks", "pruned")
OF_AN_ENTRY = ("entries", "payloads", "requests", "feed", "snapshots", "unnumbered")
Sizes = Mapping[tuple[str, str], int]
"""Bytes of (table, what): the table itself under its own name, and each of its indexes."""


@dataclass(frozen=True, slots=True)
class Worked:
    """What stands in a database after the work, and how long numbering and verifying all of it took."""

    tasks: int
    entries: int
    numbered_s: float
    verified_s: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One store: what it holds, as it stood and packed, and packed again once everything was pruned."""

    store: str
    worked: "Worked"
    grown: int
    packed: Sizes
    pruned: Sizes

    @property
    def tasks(self) -> int:
        return self.worked.tasks

    @property
    def entries(self) -> int:
        return self.worked.entries

    def each(self, sizes: Sizes, tables: tuple[str, ...], count: int) -> float:
        return sum(size for (table, _), size in sizes.items() if table in tables) / count


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.size", description="Bytes per task and per entry, on both stores.")
    parser.add_argument("--tasks", type=int, default=TASKS, metavar="N", help=f"how many tasks go through the main job ({TASKS})")
    tasks = parser.parse_args().tasks
    with tempfile.TemporaryDirectory() as folder, throwaway.server() as server:
        file = f"sqlite:///{folder}/size.db"
        worked = work(file, tasks)
        with server.database() as target:
            copied = moved(file, target)
        print(report(sqlite(Path(folder) / "size.db", worked)))
        print(f"Copied to PostgreSQL and verified there in {copied:.1f} s: {worked.entries / copied:,.0f} entries a second.\n")
        with server.database() as url:
            print(report(postgres(url, work(url, tasks))))


def work(url: str, tasks: int) -> Worked:
    """Tasks through the main job, several at once."""
    with Pointsman(url) as pm, ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(lambda number: one(pm, f"worker-{number % CALLERS}"), range(tasks)))
        began = time.perf_counter()
        pm.head()
        numbered = time.perf_counter()
        report = pm.verify()
        assert report.ok
        return Worked(report.tasks, report.entries, numbered - began, time.perf_counter() - numbered)


def moved(source: str, target: str) -> float:
    """Seconds that a copy took."""
    with Pointsman(source) as pm:
        began = time.perf_counter()
        assert pm.copy(target).report.ok
        return time.perf_counter() - began


def one(pm: Pointsman, by: str) -> None:
    task = pm.create("tasks", FIELDS, by="ann")
    task = pm.claim("tasks", by=by, id=task.id) or task
    task = pm.propose(task.id, "start_draft", by=by, epoch=task.epoch)
    task = pm.propose(task.id, "request_approval", {"draft": DRAFT}, by=by, epoch=task.epoch)
    task = pm.propose(task.id, "approve", by="rita", digest=task.digest)
    pm.propose(task.id, "complete", by=by, epoch=task.epoch)


def emptied(url: str) -> None:
    with Pointsman(url) as pm:
        pm.prune(0, payloads=True)


def sqlite(path: Path, worked: Worked) -> Measured:
    _say(path, "PRAGMA wal_checkpoint(TRUNCATE)")
    grown = path.stat().st_size
    packed = _stat(path)
    emptied(f"sqlite:///{path}")
    return Measured(f"SQLite {apsw.sqlite_lib_version()}", worked, grown, packed, _stat(path))


def _say(path: Path, sql: str) -> None:
    raw = apsw.Connection(str(path))
    raw.execute(sql).fetchall()
    raw.close()


def _stat(path: Path) -> Sizes:
    _say(path, "VACUUM")
    raw = apsw.Connection(str(path))
    rows = raw.execute(
        "SELECT m.tbl_name, s.name, sum(s.pgsize) FROM dbstat AS s JOIN sqlite_schema AS m ON m.name = s.name GROUP BY 1, 2"
    ).fetchall()
    raw.close()
    return {(str(table), str(name)): int(str(size)) for table, name, size in rows}


def postgres(url: str, worked: Worked) -> Measured:
    with psycopg.connect(url, autocommit=True) as session:
        server = session.info.parameter_status("server_version")
        grown = sum(_relations(session).values())
        packed = _packed(session)
        emptied(url)
        return Measured(f"PostgreSQL {server}", worked, grown, packed, _packed(session))


def _packed(session: "psycopg.Connection[tuple[str, str, int]]") -> Sizes:
    session.execute("VACUUM FULL")
    return _relations(session)


def _relations(session: "psycopg.Connection[tuple[str, str, int]]") -> Sizes:
    """With each table stands what PostgreSQL keeps of long values elsewhere."""
    rows = session.execute(
        "SELECT c.relname, coalesce(i.relname, c.relname), "
        "CASE WHEN i.oid IS NULL THEN pg_table_size(c.oid) ELSE pg_relation_size(i.oid) END "
        "FROM pg_class AS c CROSS JOIN LATERAL (SELECT NULL::oid AS oid, NULL::name AS relname UNION ALL "
        "SELECT x.indexrelid, r.relname FROM pg_index AS x JOIN pg_class AS r ON r.oid = x.indexrelid WHERE x.indrelid = c.oid) AS i "
        "WHERE c.relnamespace = 'pointsman'::regnamespace AND c.relkind = 'r'"
    ).fetchall()
    return {(table, name): size for table, name, size in rows}


def report(found: Measured) -> str:
    """Two Markdown tables: the sums, and every table and index by what it counts for."""
    total, left = sum(found.packed.values()), sum(found.pruned.values())
    per_task, per_entry = (found.each(found.packed, OF_A_TASK, found.tasks), found.each(found.packed, OF_AN_ENTRY, found.entries))
    kept_task, kept_entry = (found.each(found.pruned, OF_A_TASK, found.tasks), found.each(found.pruned, OF_AN_ENTRY, found.entries))
    lines = [
        f"## {found.store}: {found.tasks:,} tasks, {found.entries:,} entries",
        "",
        "| | bytes a task | bytes an entry | all, a task of the main job |",
        "|---|---|---|---|",
        f"| as it stood after the work | | | {found.grown / found.tasks:,.0f} |",
        f"| packed | {per_task:,.0f} | {per_entry:,.0f} | {total / found.tasks:,.0f} |",
        f"| pruned of all that can be, and packed | {kept_task:,.0f} | {kept_entry:,.0f} | {left / found.tasks:,.0f} |",
        "",
        f"Numbered at {found.entries / found.worked.numbered_s:,.0f} entries a second, verified at "
        f"{found.entries / found.worked.verified_s:,.0f}.",
        "",
        "| table or index | packed | pruned | bytes each |",
        "|---|---|---|---|",
        *(_row(found, table, name) for table, name in sorted(found.packed, key=lambda key: (_rank(key[0]), key[0] != key[1], key))),
        "",
    ]
    return "\n".join(line for line in lines if line is not None)


def _rank(table: str) -> int:
    order = (*OF_A_TASK, *OF_AN_ENTRY)
    return order.index(table) if table in order else len(order)


def _row(found: Measured, table: str, name: str) -> str | None:
    """What is empty but for its first page is left out."""
    count, of = (found.tasks, "a task") if table in OF_A_TASK else (found.entries, "an entry")
    packed, pruned = (sizes.get((table, name), 0) for sizes in (found.packed, found.pruned))
    if max(packed, pruned) < 4 * count:
        return None
    return f"| {table if table == name else f'{table}: {name}'} | {packed:,} | {pruned:,} | {packed / count:,.0f} {of} |"


if __name__ == "__main__":
    main()
