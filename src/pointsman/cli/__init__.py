"""The command line translates: it holds no rule."""

import os
import sys
from io import TextIOWrapper


def main() -> None:
    """The `pointsman` command."""
    _occupy()
    from pointsman.cli.root import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a stream that is not UTF-8 shows what it lacks as escapes
    sys.exit(run(sys.argv[1:]))


def _occupy() -> None:
    """Where a standard stream was closed, stand in nothing: else the next file opened gets its number, and what is printed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115
