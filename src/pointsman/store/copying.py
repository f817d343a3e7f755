"""Every row of every table, from one database to another, a page at a time.

Which tables there are, their columns and their keys stands in columns.py; the statements are drawn from
sql/copy/rows.sql, once for each table. A target carries a mark from before its first row until its copy was verified;
`connect` refuses a database that carries it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from pointsman.errors import StoreError
from pointsman.kernel.chain import canonical
from pointsman.store import statements
from pointsman.store.columns import COLUMNS, KEYS
from pointsman.store.database import Database, Row, Tx
from pointsman.store.statements import Statement
from pointsman.types import iso

SQL = files("pointsman.store") / "sql" / "copy"
PAGE = 200
MARK = "unfinished"
TABLES = tuple(table for table in COLUMNS if table != MARK)
"""What is copied, in an order in which foreign keys find what they name."""

MADE = frozenset({"lanes"})
"""What the schema itself puts a row into: it does not count as held, and gives way to what is brought."""

Told = Callable[[str, int], None]
"""Is told a table and how many of its rows have arrived, after each page."""


@cache
def drawn(dialect: str) -> Mapping[str, Statement]:
    """The statements of a copy, those of one table under the name `WHAT:TABLE`."""
    written = statements.load(SQL, dialect)
    return {
        name: statement
        for each in written.values()
        for name, statement in (_for_tables(each) if "/*table*/" in each.sql else [(each.name, each)])
    }


def _for_tables(template: Statement) -> Iterator[tuple[str, Statement]]:
    for table in TABLES:
        name = f"{template.name}:{table}"
        marks = _marks(table)
        sql = template.sql
        for mark, text in marks.items():
            sql = sql.replace(f"/*{mark}*/", text)
        after = _after(table) if "/*after*/" in template.sql else ()
        yield name, replace(template, name=name, sql=sql, parameters=(*template.parameters, *after))


def _marks(table: str) -> Mapping[str, str]:
    columns = COLUMNS[table]
    return {
        "table": f'"{table}"',
        "columns": ", ".join(f'"{column}"' for column in columns),
        "key": ", ".join(f'"{column}"' for column in KEYS[table]),
        "after": ", ".join(f":{name}" for name in _after(table)),
        "members": ", ".join(f"json_extract(value, '$.{column}')" for column in columns),
    }


def _after(table: str) -> tuple[str, ...]:
    return tuple(f"after_{number}" for number in range(len(KEYS[table])))


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy into a target, under an id of its own: another that begins takes the target over."""

    id: str
    source: str
    target: Database

    def begin(self) -> None:
        """Mark the target, which must hold nothing but what an unfinished copy left; that goes."""
        self.target.run(self._begin)

    def _begin(self, tx: Tx) -> None:
        left = tx("find_unfinished")
        held = [table for table in TABLES if tx(f"holds_rows:{table}")[0]]
        if left is None and (others := [table for table in held if table not in MADE]):
            why = f"it holds something ({', '.join(others)}); a copy needs an empty one"
            raise StoreError("store_unavailable", f"database {self.target.url}: {why}")
        for table in reversed(held):
            tx(f"clear_rows:{table}")
        if left is not None:
            tx("lift_unfinished", copy=left[0])
        tx("mark_unfinished", copy=self.id, source=self.source, begun_at=tx.now)

    def put(self, table: str, rows: list[Row]) -> None:
        """Write a page, while this copy is the one being written."""
        page = canonical([dict(zip(COLUMNS[table], row, strict=True)) for row in rows])
        self.target.run(lambda tx: self._marked(tx, f"put_rows:{table}", rows=page))

    def close_table(self, table: str) -> None:
        """What comes next into a table gets a key beyond those that were brought."""
        if KEYS[table] == ("key",):
            self.target.run(lambda tx: self._marked(tx, f"go_on_from:{table}"))

    def await_number(self, entry: int) -> None:
        self.target.run(lambda tx: self._marked(tx, "wait_for_number", entry=entry))

    def finish(self) -> None:
        """Lift the mark."""
        if self.target.run(lambda tx: tx("lift_unfinished", copy=self.id)) is None:
            raise self._overtaken()

    def _marked(self, tx: Tx, statement: str, /, **values: Any) -> None:
        if tx("still_unfinished", copy=self.id) is None:
            raise self._overtaken()
        tx(statement, **values)

    def _overtaken(self) -> StoreError:
        return StoreError("store_unavailable", f"database {self.target.url}: another copy into it began meanwhile")


def pages(tx: Tx, table: str) -> Iterator[list[Row]]:
    """All rows of a table in the order of its key."""
    rows = tx(f"first_rows:{table}", limit=PAGE)
    places = [list(COLUMNS[table]).index(column) for column in KEYS[table]]
    while rows:
        yield rows
        after = zip(_after(table), (rows[-1][place] for place in places), strict=True)
        rows = tx(f"rows_after:{table}", **dict(after), limit=PAGE)


def refuse_unfinished(db: Database) -> None:
    """A StoreError for a database into which a copy was begun and not ended."""
    if (left := db.read(lambda tx: tx("find_unfinished"))) is not None:
        why = f"it is the unfinished copy of {left[1]}, begun at {iso(left[2])}; copy that anew into it with: pointsman db copy --to"
        raise StoreError("store_unavailable", f"database {db.url}: {why}")
