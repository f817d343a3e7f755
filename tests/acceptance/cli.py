"""The real command in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pointsman
from edges.cli import Ended

COMMAND = [sys.executable, "-m", "pointsman"]
PATIENCE_SECONDS = 30


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POINTSMAN_")}
    return kept | {"PYTHONPATH": str(Path(pointsman.__file__).parents[1])} | dict(extra or {})


def run(cwd: Path, *argv: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ended:
    done = subprocess.run(
        [*COMMAND, *argv], cwd=cwd, env=environment(env), input=stdin, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@contextmanager
def serving(cwd: Path, *argv: str) -> Iterator[dict[str, Any]]:
    """A server on a free port, as its ready line describes it; stopped with SIGTERM, which must end in status 0."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*COMMAND, "serve", "--port", "0", "--json", *argv], cwd=cwd, env=environment(), **pipes)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.communicate()[1]
        ready = json.loads(line)
        assert ready["pid"] == process.pid
        yield ready
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (0, ""), err
