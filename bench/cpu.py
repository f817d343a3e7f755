"""`python -m bench.cpu`: what a transition costs in processor time, in this program and at the PostgreSQL server, beside its floor.

On SQLite on a file system in memory, where there is one, so that the disk does not count. A transition is that of `make bench`.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from bench import closure, one_statement
from bench.postgres_server import database, running
from bench.python_api import again, drafting, opened
from bench.table import Line, render
from pointsman import Pointsman

SECONDS = 3.0
MEMORY = Path("/dev/shm")
Spent = tuple[float, float, float]
"""µs a call: in the program itself, in the kernel for it, and at the server."""


def main() -> None:
    print(render([*on_sqlite(), *on_postgres()]))


def on_sqlite() -> Iterator[Line]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        for callers in (1, 32):
            with opened(folder) as pm:
                calls = [again(pm, drafting(pm)) for _ in range(callers)]
                yield line(f"SQLite, {callers} callers", spent(lambda calls=calls: closure.rate(calls, SECONDS)))
            yield line(f"SQLite, {callers} callers, the floor", spent(lambda callers=callers: closure.floor(folder, callers, SECONDS)))


def on_postgres() -> Iterator[Line]:
    with running(None) as server:
        for callers in (1, 16):
            with database(server) as url, Pointsman(url) as pm:
                calls = [again(pm, drafting(pm)) for _ in range(callers)]
                closure.rate(calls, SECONDS / 6)
                yield line(f"PostgreSQL, {callers} callers", spent(lambda calls=calls: closure.rate(calls, SECONDS)))
            with database(server) as url:
                floor = spent(lambda url=url, callers=callers: one_statement.by_asyncpg(url, callers, SECONDS))
                yield line(f"PostgreSQL, {callers} callers, the floor", floor)


def line(name: str, times: Spent) -> Line:
    own, kernel, server = times
    return Line(f"processor time, {name}", f"{own:.0f} + {kernel:.0f} µs", f"{server:.0f} µs at the server" if server >= 0.5 else "")


def spent(rate: Callable[[], float]) -> Spent:
    """While calls are made for so many seconds."""
    began, at_server = os.times(), _of_servers()
    calls = rate() * SECONDS
    ended = os.times()
    server = _of_servers() - at_server
    return 1e6 * (ended.user - began.user) / calls, 1e6 * (ended.system - began.system) / calls, 1e6 * server / calls


def _of_servers() -> float:
    """The processor time of all PostgreSQL processes, and of those that have ended, which their postmaster has."""
    found = 0.0
    for process in psutil.process_iter(["name", "cpu_times"]):
        if (process.info["name"] or "").startswith("postgres") and (times := process.info["cpu_times"]) is not None:
            found += times.user + times.system + times.children_user + times.children_system
    return found


if __name__ == "__main__":
    main()
