"""Empty databases for tests, on both stores: a SQLite file, or a database of a real PostgreSQL server.

The server comes with a pip package and lives as long as the test session; `POINTSMAN_TEST_POSTGRES` names another, in
which databases are made and dropped.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from bench.postgres_server import cluster, spelled
from pointsman.store.connect import connect
from pointsman.testing import FakeClock

STORES = ("sqlite", "postgres")
VARIABLE = "POINTSMAN_TEST_POSTGRES"
__all__ = ["SETTINGS", "STORES", "PostgresServer", "cluster", "empty", "packaged", "running", "spelled"]
NAME = "pointsman_test"
SETTINGS = """
max_connections = 200
shared_buffers = 64MB
max_wal_size = 8GB
checkpoint_timeout = 1h
"""

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
"""Ends every session of a database but the one that says so."""

_numbers = count()


@dataclass
class PostgresServer:
    """A server on which databases can be made. `made` are those that were."""

    conninfo: str
    made: list[str]

    def execute(self, sql: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """On the server, or in one of its databases; outside any transaction."""
        with psycopg.connect(url or self.conninfo, autocommit=True) as session:
            cursor = session.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def create(self, template: str = "template0") -> str:
        """The URL of a new database."""
        name = f"{NAME}_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} ENCODING 'UTF8'")
        self.made.append(name)
        return self.url(name)

    def url(self, name: str) -> str:
        return spelled(make_conninfo(self.conninfo, dbname=name))

    @property
    def address(self) -> tuple[str, int] | str:
        """Where it listens: a host and a port, or the path of a socket."""
        with psycopg.connect(self.conninfo) as session:
            host, port = session.info.host, session.info.port
        return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)

    def empty(self) -> str:
        """A new database with Pointsman's tables and nothing in them: a copy of one, since that is quick."""
        if not self.made or self.made[0] != f"{NAME}_{os.getpid()}_template":
            self._template()
        return self.create(self.made[0])

    def _template(self) -> None:
        name = f"{NAME}_{os.getpid()}_template"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        self.made.insert(0, name)
        connect(self.url(name), clock=FakeClock()).close()


@contextmanager
def packaged(settings: str = SETTINGS) -> Iterator[str]:
    """A server of our own; its connection string. It is stopped and removed at the end."""
    with cluster(settings) as server:
        yield make_conninfo(server.get_uri())


@contextmanager
def running() -> Iterator[PostgresServer]:
    if named := os.environ.get(VARIABLE):
        server = PostgresServer(make_conninfo(named), [])
        try:
            yield server
        finally:
            for name in reversed(server.made):
                server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    else:
        with packaged() as conninfo:
            yield PostgresServer(conninfo, [])


def empty(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty database on either store."""
    return f"sqlite:///{folder}/work.db" if kind == "sqlite" else request.getfixturevalue("postgres").empty()
