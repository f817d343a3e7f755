"""Named statements as PostgreSQL takes them: numbered parameters, and row locks where the text marks them.

`/*lock*/` becomes FOR NO KEY UPDATE, which the foreign keys of other transactions do not wait for; `/*lock:skip*/`
passes over what is locked. Where a unit only reads, both stay comments. `/*waits*/` stays one always: it marks a statement that
may wait for something else than a row, behind which the time is another.

A statement of shape `:sure` is put into `sure` of sql/postgres/server.sql, which fails where it finds nothing: it is sent together
with the COMMIT that must then not happen.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.store.statements import TOKEN, Statement

WAITS = ("/*lock*/", "/*waits*/")
LOCKS: Mapping[str, str] = {"/*lock*/": "FOR NO KEY UPDATE", "/*lock:skip*/": "FOR NO KEY UPDATE SKIP LOCKED"}
PLACE = "/*statement*/"


@dataclass(frozen=True, slots=True, eq=False)
class Spelled:
    """A statement as it is sent. `parameters` are in the order of their numbers. `decides` when what it reads is locked,
    or would be in a unit that writes; one that `waits` may have to wait for somebody."""

    name: str
    shape: str
    sql: bytes
    parameters: tuple[str, ...]
    decides: bool = False
    waits: bool = False


def for_writing(statements: Mapping[str, Statement], asked: Mapping[str, Statement]) -> Mapping[str, Spelled]:
    return {name: _spelled(statement, LOCKS, asked["sure"].sql) for name, statement in statements.items()}


def for_reading(statements: Mapping[str, Statement]) -> Mapping[str, Spelled]:
    return {name: _spelled(statement, {}) for name, statement in statements.items()}


def _spelled(statement: Statement, locks: Mapping[str, str], sure: str = PLACE) -> Spelled:
    numbers = {name: f"${number}" for number, name in enumerate(statement.parameters, 1)}
    sql = TOKEN.sub(lambda found: numbers.get(found["parameter"]) or locks.get(found[0], found[0]), statement.sql)
    whole = sure.replace(PLACE, sql) if statement.shape == ":sure" else sql
    decides, waits = (any(mark in statement.sql for mark in marks) for marks in (LOCKS, WAITS))
    return Spelled(statement.name, statement.shape, whole.encode(), statement.parameters, decides, waits and bool(locks))
