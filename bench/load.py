"""Large boards. `queue` and `move` make them by the engine's own units of work, a thousand to a commit: every row is what a
call would write. `fill` multiplies the row of one task inside the database, history left out: enough to be claimed."""

from functools import partial
from typing import Any

import apsw
import psycopg

from bench.python_api import BY
from pointsman import Pointsman, Task
from pointsman.engine import propose as units
from pointsman.engine.decision import Done
from pointsman.kernel.case import Proposal
from pointsman.kernel.terms import Terms
from pointsman.store.columns import COLUMNS
from pointsman.store.database import Tx

GROUP = 1_000
FIELDS = {"title": "Release notes", "brief": "Say what changed in version two"}


def queue(pm: Pointsman, count: int) -> None:
    """`count` more tasks wait."""
    for size in _groups(count):
        pm.engine.db.run(partial(_create, pm, size))


def fill(pm: Pointsman, count: int, **terms: Any) -> None:
    """`count` more tasks with these terms wait, in a database on any URL; each a little later than the one before."""
    if count < 1:
        return
    task = pm.create("tasks", FIELDS, by=BY, **terms)
    copied = [name for name in COLUMNS["tasks"] if name not in ("key", "id", "place")]
    _raw(pm.url, MULTIPLIED.format(columns=", ".join(copied), id=task.id, last=count - 1))


MULTIPLIED = """
INSERT INTO tasks (id, place, {columns})
WITH RECURSIVE copies (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copies WHERE number < {last})
SELECT substr(id, 1, 24) || substr(CAST(1000000000000 + number AS TEXT), 2), place + number, {columns}
FROM tasks CROSS JOIN copies
WHERE id = '{id}' AND {last} > 0
"""
"""The last twelve digits of an id count the copies."""


def _raw(url: str, sql: str) -> None:
    """On a connection of its own; then the database learns how its tables have grown."""
    if url.startswith("sqlite:"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql)
        connection.execute("ANALYZE tasks")
        connection.close()
        return
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("SET search_path = pointsman")
        session.execute(sql.encode())
        session.execute("VACUUM ANALYZE tasks")


def move(pm: Pointsman, task: Task, count: int) -> None:
    """`count` more versions of a task that is being drafted."""
    for size in _groups(count):
        pm.engine.db.run(partial(_draft, pm, task, size))


def _groups(count: int) -> list[int]:
    return [min(GROUP, count - begun) for begun in range(0, count, GROUP)]


def _create(pm: Pointsman, size: int, tx: Tx) -> None:
    for _ in range(size):
        deciding = pm.deciding(BY, None, None, {})
        units.create(deciding, "tasks", FIELDS, Terms(), Proposal("create", {}, deciding.call.by), tx, False)


def _draft(pm: Pointsman, task: Task, size: int, tx: Tx) -> None:
    for _ in range(size):
        deciding = pm.deciding(BY, None, None, {})
        asked = Proposal("start_draft", {}, deciding.call.by, epoch=task.epoch)
        moved = units.propose(deciding, task.id, asked, tx, False)
        assert isinstance(moved, Done), "a draft can always be begun again"
