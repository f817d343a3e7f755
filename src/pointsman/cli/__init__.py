"""The command line translates: it holds no rule."""

import sys


def main() -> None:
    """The `pointsman` command."""
    from pointsman.cli.root import run

    sys.exit(run(sys.argv[1:]))
