"""Moving house: the whole of one database into another, read as of one moment, verified where it arrives.

A process that dies in the middle leaves a target that says so and is refused as a working database, until a copy into it
has ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.engine import verify
from pointsman.engine.verify import Report
from pointsman.errors import invalid
from pointsman.store import copying, feed
from pointsman.store.copying import Copy, Told
from pointsman.store.database import Database, Tx
from pointsman.store.feed import Head
from pointsman.store.history import LAST


@dataclass(frozen=True, slots=True)
class Arrived:
    """What arrived: rows by table, the source's head at the moment of the copy, and what verifying the target found. A
    target that does not verify keeps its mark."""

    source: str
    target: str
    rows: Mapping[str, int]
    head: Head
    report: Report


def copy(source: Database, target: Database, copy_id: str, told: Told) -> Arrived:
    """Copy everything of `source` into `target`, which holds nothing."""
    if _kind(source) == "postgresql" and _kind(target) != "postgresql":
        why = "from PostgreSQL a copy goes to PostgreSQL: there entries are committed in another order than that of their keys"
        raise invalid(("to", why))
    writing = Copy(copy_id, source.url, target)
    rows, head = source.read(lambda tx: _copied(tx, writing, told))
    told("verifying", 0)
    report = _verified(target, rows, head)
    if report.ok:
        writing.finish()
    return Arrived(source.url, target.url, rows, head, report)


def _kind(db: Database) -> str:
    return db.url.partition(":")[0]


def _copied(tx: Tx, writing: Copy, told: Told) -> tuple[dict[str, int], Head]:
    """On one snapshot of the source. A second run of this unit begins by clearing what the first one wrote."""
    writing.begin()
    rows = {table: _table(tx, writing, table, told) for table in copying.TABLES}
    for waiting in tx("unnumbered", limit=LAST):
        writing.await_number(waiting[0])
    return rows, feed.head(tx)


def _table(tx: Tx, writing: Copy, table: str, told: Told) -> int:
    count = 0
    for page in copying.pages(tx, table):
        writing.put(table, page)
        count += len(page)
        told(table, count)
    writing.close_table(table)
    return count


def _verified(target: Database, rows: Mapping[str, int], head: Head) -> Report:
    """As any database is, and that nothing came from elsewhere."""
    report = verify.verify(target, {"seq": head.seq, "hash": head.hash})
    if report.ok and (report.tasks, report.entries) != (rows["tasks"], rows["entries"]):
        return Report(report.tasks, report.entries, (verify.Broken("the target holds tasks or entries that were not copied"),))
    return report
