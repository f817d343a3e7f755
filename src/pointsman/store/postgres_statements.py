"""Named statements as PostgreSQL takes them: numbered parameters, and row locks where the text marks them.

`/*lock*/` becomes FOR NO KEY UPDATE, which the foreign keys of other transactions do not wait for; `/*lock:skip*/`
passes over what is locked. Where a unit only reads, both stay comments.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.store.statements import TOKEN, Statement

WAITS = "/*lock*/"
LOCKS: Mapping[str, str] = {WAITS: "FOR NO KEY UPDATE", "/*lock:skip*/": "FOR NO KEY UPDATE SKIP LOCKED"}


@dataclass(frozen=True, slots=True)
class Spelled:
    """A statement as it is sent. `parameters` are in the order of their numbers; one that `waits` may have to wait for a
    row."""

    name: str
    shape: str
    sql: bytes
    parameters: tuple[str, ...]
    waits: bool


def for_writing(statements: Mapping[str, Statement]) -> Mapping[str, Spelled]:
    return {name: _spelled(statement, LOCKS) for name, statement in statements.items()}


def for_reading(statements: Mapping[str, Statement]) -> Mapping[str, Spelled]:
    return {name: _spelled(statement, {}) for name, statement in statements.items()}


def _spelled(statement: Statement, locks: Mapping[str, str]) -> Spelled:
    numbers = {name: f"${number}" for number, name in enumerate(statement.parameters, 1)}
    sql = TOKEN.sub(lambda found: numbers.get(found["parameter"]) or locks.get(found[0], found[0]), statement.sql)
    return Spelled(statement.name, statement.shape, sql.encode(), statement.parameters, WAITS in locks and WAITS in statement.sql)
