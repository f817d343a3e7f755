"""`python -m bench [--quick] [--write FILE]`: measure, and print one table."""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import flat, growth, python_api, rivals, stream, tools, waiting
from bench.table import Effort, Line, machine, render

EXPLAINED = """\
A *transition* is one accepted `start_draft`: rights, state, version and evidence judged, the row updated, the entry
hashed and inserted, one durable commit. `floor` is measured in the same run on the same machine, in turn with the
figure, and `ratio` is the figure by its floor: absolute numbers move from machine to machine, ratios much less.
`aim` is what is
wanted, reached or not. Client and server share the processors. The floors are `bench/closure.py` and `bench/small_json.py`."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures beside floors measured in the same run.")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page, as docs/benchmarks.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=_disk()) as name:
        folder = Path(name)
        where = machine(folder)
        print(where, flush=True)
        table = render(measure(folder, Effort.of(options.quick)))
    print(f"\n{table}")
    if options.write:
        command = "make bench" + (" QUICK=1" if options.quick else "")
        options.write.write_text(f"# Benchmarks\n\nPrinted by `{command}` on: {where}.\n\n{table}\n\n{EXPLAINED}\n")


def measure(folder: Path, effort: Effort) -> list[Line]:
    groups: Iterable[tuple[str, Callable[[], list[Line]]]] = (
        ("the Python API", lambda: python_api.figures(folder, effort)),
        ("the flat service", lambda: flat.figures(folder, effort)),
        ("the feed", lambda: stream.figures(folder, effort)),
        ("two processes", lambda: rivals.figures(folder, effort)),
        ("MCP tools", lambda: tools.figures(folder, effort)),
        ("growth", lambda: growth.figures(folder, effort)),
        ("slow checks", lambda: waiting.figures(folder)),
    )
    lines: list[Line] = []
    for name, group in groups:
        print(f"measuring {name}…", flush=True)
        lines += group()
    return lines


def _disk() -> str | None:
    """/tmp often lies in memory, where fsync costs nothing; /var/tmp does not."""
    return "/var/tmp" if Path("/var/tmp").is_dir() else None


if __name__ == "__main__":
    main()
