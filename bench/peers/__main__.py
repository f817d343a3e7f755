"""`python -m bench.peers [--quick] [--write FILE] [NAME …]`: peers and Pointsman on one throw-away PostgreSQL, in one run.

Every figure is set beside the same floor, which is measured anew before each. A system that does not install or
does not do a thing says so in its line.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Timer

from bench import throwaway
from bench.__main__ import PEERS
from bench.peers.driver import LACKS
from bench.table import Line, machine, render

HERE = Path(__file__).parent
SYSTEMS = ("pgqueuer", "procrastinate", "oban", "dbos", "huey")
BATCHES = {1: 500, 16: 4_000, 100: 8_000}
HEADING = "## Beside others"
PLAIN_S = 120.0
FLOOR_CALLERS, FLOOR_STEPS = 16, 16_000


@dataclass(frozen=True, slots=True)
class Run:
    """One system under order: which interpreter, how much of the usual work, and for how long a recovery is waited for."""

    name: str
    python: str
    share: float
    limit_s: float

    def command(self, url: str, *order: object) -> list[str]:
        return [self.python, str(HERE / f"on_{self.name}.py"), url, *map(str, order)]

    def does(self, url: str, verb: object) -> bool:
        """Whether its driver has a verb; one that has it is not begun, for want of numbers."""
        return subprocess.run(self.command(url, verb, "?"), capture_output=True, check=False).returncode != LACKS

    def figure(self, what: str, floor: float, url: str, *order: object) -> Line:
        """The rate that its driver says, beside the floor."""
        name = f"{self.name} {self.version()}: {what}"
        try:
            done = subprocess.run(self.command(url, *order), capture_output=True, text=True, check=False, timeout=PLAIN_S)
        except subprocess.TimeoutExpired:
            return Line(name, f"not within {PLAIN_S:g} s")
        rate = _rate(done.stdout)
        return (
            Line(name, f"{rate:,.0f}/s", f"{floor:,.0f}/s", f"{rate / floor:.2f}") if rate else Line(name, f"failed: {_last(done.stderr)}")
        )

    def version(self) -> str:
        code = f"import importlib.metadata as m; print(m.version({self.name!r}))"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    def recovery(self, url: str) -> str:
        """From kill -9 of a worker in the middle of a job to that job's next beginning, by a worker that starts at once."""
        if not _said(self.command(url, "hang"), "started", PLAIN_S):
            return "no figure"
        took = _said(self.command(url, "recover"), "again", self.limit_s)
        return f"{took:.1f} s" if took else f"not within {self.limit_s:g} s"


def _rate(said: str) -> float | None:
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return next((line["rate"] for line in lines if "rate" in line), None)


def _last(said: str) -> str:
    return next(reversed(said.strip().splitlines()), "it said nothing")


def _said(command: list[str], word: str, limit_s: float) -> float | None:
    """Start a process, wait until it says a word, kill it; how long that took, None when it never did."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        stop = Timer(limit_s, process.kill)
        stop.start()
        try:
            heard = any(f'"{word}"' in line for line in process.stdout)
            return time.perf_counter() - began if heard else None
        finally:
            stop.cancel()
            process.kill()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description="Others' figures beside ours, in one run.")
    parser.add_argument("--quick", action="store_true", help="a quarter of the work, and short recoveries")
    parser.add_argument("--python", default=sys.executable, metavar="FILE", help="the interpreter of the peers' environment")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table into this page, under its own heading")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these of {', '.join((*SYSTEMS, 'pointsman'))}")
    options = parser.parse_args()
    share, limit_s = (0.25, 40) if options.quick else (1, 330)
    names = options.names or [*SYSTEMS, "pointsman"]
    floor = Run("floor", options.python, share, limit_s)
    with throwaway.server() as server:
        where = f"{machine(Path('/var/tmp'))}, PostgreSQL {server.version()}"
        print(where, flush=True)
        lines: list[Line] = []
        for name in names:
            print(f"measuring {name}…", flush=True)
            run = Run(name, sys.executable if name == "pointsman" else options.python, share, limit_s)
            lines += measured(server, run, floor)
    table = render(lines)
    print(f"\n{table}")
    if options.write:
        write(options.write, table, where, quick=options.quick)


def measured(server: throwaway.Server, run: Run, floor: Run) -> list[Line]:
    """Every figure of one system, in a database of its own, each beside the floor of just before."""
    if not run.version():
        return [Line(run.name, "does not install here")]
    with server.database() as beside, server.database() as url:
        subprocess.run(floor.command(beside, "setup"), check=True, capture_output=True)
        prepared = subprocess.run(run.command(url, "setup"), check=False, capture_output=True, text=True)
        if prepared.returncode:
            return [Line(run.name, f"cannot be set up: {_last(prepared.stderr)}")]
        asked = [(what, order) for what, order in orders(run.share) if run.does(url, order[0])]
        found = [run.figure(what, under(floor, beside), url, *order) for what, order in asked]
        return [*found, Line(f"{run.name} {run.version()}: a job again after kill -9", run.recovery(url))]


def under(floor: Run, url: str) -> float:
    order = floor.command(url, "steps", FLOOR_CALLERS, round(FLOOR_STEPS * floor.share))
    rate = _rate(subprocess.run(order, check=True, capture_output=True, text=True).stdout)
    assert rate is not None
    return rate


def orders(share: float) -> list[tuple[str, tuple[object, ...]]]:
    """What is asked of every system: enough of it that starting up does not count."""
    jobs = [(f"no-op jobs, {batch} at a time", ("jobs", batch, round(count * share))) for batch, count in BATCHES.items()]
    steps = [
        (f"durable steps{where}, {callers} callers", (verb, callers, round(callers**0.5 * 4_000 * share)))
        for where, verb in (("", "steps"), (" on SQLite", "steps_on_a_file"))
        for callers in (1, 16)
    ]
    return [*jobs, ("enqueue in bulk", ("enqueue", round(10_000 * share))), *steps]


def write(page: Path, table: str, where: str, *, quick: bool) -> None:
    """In the place of what stood under the heading; it is the end of the page."""
    command = "make bench-peers" + (" QUICK=1" if quick else "")
    head = f"{PEERS}\n{HEADING}\n\nPrinted by `{command}` on {date.today()}, on: {where}."
    before = page.read_text().partition(PEERS)[0].rstrip() if page.exists() else ""
    page.write_text(f"{before}\n\n{head}\n\n{table}\n\n{(HERE / 'explained.md').read_text()}")


if __name__ == "__main__":
    main()
