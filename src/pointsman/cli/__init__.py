"""The command line translates: it holds no rule."""

import sys
from io import TextIOWrapper


def main() -> None:
    """The `pointsman` command."""
    from pointsman.cli.root import run

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a stream that is not UTF-8 shows what it lacks as escapes
    sys.exit(run(sys.argv[1:]))
