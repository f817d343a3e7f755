"""Figures of the Python API on PostgreSQL, beside one statement for a transition on the same server; and the next claim of ever
longer queues."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench import closure, one_statement
from bench.growth import flat
from bench.jobs import BATCHES, Jobs, do
from bench.load import FIELDS
from bench.postgres_server import database, execute, running, version
from bench.python_api import BY, again, drafting
from bench.table import Effort, Line, beside
from pointsman import Pointsman, Tasks

WARM_S = 0.5
CALLERS = (1, 4, 16)
MOST = CALLERS[-1]
SEVERAL = ((1, MOST), (16, 4), (100, 4))
"""Jobs by one call, and how many call: with many at once a few keep the server busy."""
MORE = """
DO $$ BEGIN EXECUTE (
    SELECT format(
        'INSERT INTO pointsman.tasks (%s) SELECT %s FROM pointsman.tasks AS t, generate_series(1, {count}) AS n',
        string_agg(quote_ident(attname), ', '),
        string_agg(CASE attname WHEN 'id' THEN 'gen_random_uuid()' WHEN 'place' THEN 'place + n' ELSE quote_ident(attname) END, ', ')
    )
    FROM pg_attribute
    WHERE attrelid = 'pointsman.tasks'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'key'
); END $$
"""
"""So many more rows like the one that is there, each with an id and a place of its own."""


def figures(url: str | None, effort: Effort) -> list[Line]:
    """On the server that `url` names, in databases made for this and dropped; else on a server of our own."""
    with running(url) as server:
        return [
            Line("PostgreSQL: the server", version(server)),
            *(transitions(server, callers, effort) for callers in CALLERS),
            driver(server, effort),
            *(jobs(server, batch, callers, effort) for batch, callers in SEVERAL),
            claims(server, effort),
        ]


def transitions(server: str, callers: int, effort: Effort) -> Line:
    with database(server) as floor, database(server) as url, Pointsman(url) as pm:
        calls = [again(pm, drafting(pm)) for _ in range(callers)]
        return beside(
            f"PostgreSQL, transitions, {callers} caller{'s' if callers > 1 else ''}",
            lambda: one_statement.by_asyncpg(floor, callers, effort.seconds),
            lambda: warm(calls, effort),
            effort,
            "≥ 0.3, aim 0.5" if callers == MOST else "",
        )


def driver(server: str, effort: Effort) -> Line:
    """The driver that Pointsman stands on, beside the quickest."""
    with database(server) as url:
        return beside(
            f"PostgreSQL, one statement by psycopg, by asyncpg, {MOST} connections",
            lambda: one_statement.by_asyncpg(url, MOST, effort.seconds),
            lambda: one_statement.by_psycopg(url, MOST, effort.seconds),
            effort,
        )


def jobs(server: str, batch: int, callers: int, effort: Effort) -> Line:
    """Each made beforehand, claimed and finished: by calls of its own, or with others."""
    with database(server) as floor, database(server) as url, Pointsman(url, machines=[Jobs, Tasks]) as pm:
        pm.create("jobs", {}, by=BY)
        execute(url, MORE.format(count=round(30_000 * effort.seconds) + batch * MOST), "VACUUM ANALYZE pointsman.tasks")
        name = "one by one" if batch == 1 else f"{batch} by one call each"
        return beside(
            f"PostgreSQL, no-op jobs, claimed and finished, {name}, {callers} callers",
            lambda: one_statement.by_asyncpg(floor, MOST, effort.seconds),
            lambda: batch * warm([lambda: do(pm, batch)] * callers, effort),
            effort,
            "≥ 1.24" if batch == BATCHES[-1] else "",
        )


def claims(server: str, effort: Effort) -> Line:
    """The next task of ever longer queues, claimed durably."""
    with ExitStack() as stack:
        made = {size: _waiting(stack, server, size) for size in effort.queued}
        calls = {size: lambda pm=pm: pm.claim("tasks", by=BY) for size, pm in made.items()}
        return flat("PostgreSQL, claim next; {} queued", calls, effort)


def _waiting(stack: ExitStack, server: str, size: int) -> Pointsman:
    url = stack.enter_context(database(server))
    pm = stack.enter_context(Pointsman(url))
    pm.create("tasks", FIELDS, by=BY)
    execute(url, MORE.format(count=size - 1), "VACUUM ANALYZE pointsman.tasks")
    return pm


def warm(calls: Sequence[Callable[[], object]], effort: Effort) -> float:
    """Calls per second, once every caller has its connection."""
    closure.rate(calls, min(WARM_S, effort.seconds))
    return closure.rate(calls, effort.seconds)
