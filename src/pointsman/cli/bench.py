"""`pointsman bench`: the figures of this machine, beside floors measured in the same run."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from pointsman.config import unset_environment
from pointsman.errors import invalid

Quick = Annotated[bool, typer.Option("--quick", help="One short round of each figure.")]
Server = Annotated[
    str | None,
    typer.Option("--db", metavar="URL", help="Only what is measured on PostgreSQL, on this server, in databases made for it and dropped."),
]
PLACES = (Path(__file__).resolve().parents[1] / "_bench", Path(__file__).resolve().parents[3])
"""Where the package `bench` lies: inside an installed Pointsman, or at the root of a checkout."""


def bench(quick: Quick = False, db: Server = None) -> None:
    """Measure, and print one table: each figure, a floor measured in the same run, and their ratio.

    Takes some minutes, about one with --quick. Writes temporary databases only. docs/benchmarks.md is such a table.
    """
    place = next((place for place in PLACES if (place / "bench" / "__main__.py").is_file()), None)
    if place is None:
        raise invalid(("bench", "the benchmark was left out of this installation"))
    path = os.pathsep.join([str(place), *(os.path.abspath(entry) for entry in sys.path if entry)])
    command = [sys.executable, "-m", "bench", *(["--quick"] if quick else []), *(["--db", db] if db else [])]
    with tempfile.TemporaryDirectory(prefix="pointsman-bench-") as folder:  # where no pointsman.toml says what to serve
        done = subprocess.run(command, cwd=folder, env={**unset_environment(), "PYTHONPATH": path}, check=False)
    raise typer.Exit(done.returncode)
