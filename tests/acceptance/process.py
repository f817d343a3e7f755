"""A real server process: started by the command line, ready when it says so, stopped by SIGTERM."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 30


@dataclass(frozen=True)
class Served:
    url: str
    pid: int
    db: str
    process: "subprocess.Popen[str]"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


def start(db: str, *options: str) -> Served:
    command = [sys.executable, "-m", "pointsman", "serve", "--db", db, "--port", "0", "--json", *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the server ended before it was ready: {process.communicate()[1]}")
    return Served(**json.loads(line), process=process)


def stop(served: Served) -> tuple[int, str]:
    """Exit status and what was written to stderr."""
    served.process.terminate()
    try:
        _, told = served.process.communicate(timeout=PATIENCE_S)
    finally:
        served.process.kill()
    return served.process.returncode, told


@contextmanager
def running(db: str) -> Iterator[Served]:
    """A server that must end well, by `stop` or at the end of the block."""
    served = start(db)
    try:
        yield served
    except BaseException:
        served.process.kill()
        served.process.communicate()
        raise
    if served.process.poll() is None:
        status, told = stop(served)
        assert status == 0
        assert "Traceback" not in told, told


def serving(folder: Path) -> AbstractContextManager[Served]:
    return running(f"sqlite:///{folder}/work.db")
