"""The schema on PostgreSQL, by numbered steps that only go forward.

Each step and its row in `steps` are one transaction, under an advisory lock that all processes take: a step killed or
failing half-way has never been, and several processes may start at once.
"""

from collections.abc import Sequence
from dataclasses import replace

import psycopg

from pointsman.errors import StoreError
from pointsman.store.database import Probe
from pointsman.store.migrate import Migration
from pointsman.store.postgres_errors import fault, unavailable
from pointsman.store.postgres_server import Server, Session

PATIENCE_S = 600.0
"""A step may rebuild a table."""


def migrate(server: Server, schema: Sequence[Migration], create: bool, probe: Probe) -> None:
    """Bring the database to the last step of `schema`. A StoreError leaves it at the last whole step."""
    waiting = replace(server, patience=replace(server.patience, statement_s=PATIENCE_S))
    session = waiting.connect()
    try:
        while _forward(waiting, session, schema, create, probe):
            pass
    except psycopg.Error as error:
        raise fault(error, server.url) or unavailable(server.url, str(error).partition("\n")[0]) from error
    finally:
        session.close()


def _forward(server: Server, session: Session, schema: Sequence[Migration], create: bool, probe: Probe) -> bool:
    """Apply the next step, if there is one."""
    with session.transaction():
        server.ask(session, "take_schema")
        done = _done(server, session, create)
        if done > len(schema):
            raise unavailable(server.url, f"its schema is number {done}, newer than {len(schema)}, the last one known here")
        if done == len(schema):
            return False
        _apply(server, session, schema[done])
        probe("migration.before")
    probe("migration.after")
    return True


def _done(server: Server, session: Session, create: bool) -> int:
    """The number of the last step; an empty schema is made here, if `create` says so."""
    there, ours, tables = server.ask(session, "schema_found")[0]
    if ours:
        return server.ask(session, "last_step")[0][0]
    if tables:
        raise unavailable(server.url, "its schema pointsman belongs to another program")
    if not create:
        raise unavailable(server.url, "it holds nothing of Pointsman")
    if not there:
        server.ask(session, "make_schema")
    server.ask(session, "make_steps")
    return 0


def _apply(server: Server, session: Session, step: Migration) -> None:
    try:
        session.execute(step.sql.encode())
        server.ask(session, "add_step", number=step.number, name=step.name)
    except psycopg.Error as error:
        raise fault(error, server.url) or _failed(server, step, error) from error


def _failed(server: Server, step: Migration, error: psycopg.Error) -> StoreError:
    why = error.diag.message_primary or str(error)
    return unavailable(server.url, f"migration {step.name} failed and was taken back: {why}")
