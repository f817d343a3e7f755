"""Server processes that the bench starts, waits for, weighs and stops."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import raw

PATIENCE_S = 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pointsman(db: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "pointsman", "serve", "--db", f"sqlite:///{db}", "--port", str(port)]


def small_json(port: int) -> list[str]:
    return [sys.executable, "-m", "bench.small_json", str(port)]


def noop_tool(port: int) -> list[str]:
    return [sys.executable, "-m", "bench.noop_tool", str(port)]


def environment() -> dict[str, str]:
    """What lets a child process import what this one can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The process from its first healthy answer on; stopped by SIGTERM at the end."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment())
    try:
        wait_healthy(process, port)
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def wait_healthy(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        with suppress(ConnectionError):
            if raw.ask(port, raw.get("/healthz"))[0] == 200:
                return
        time.sleep(0.005)
    raise TimeoutError(f"{process.args} did not become healthy in {PATIENCE_S} s")


def resident_mib(pid: int) -> float:
    """Resident memory, as `ps` sees it."""
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) / 1024
