"""A batch: fifty thousand tasks, taken and finished a hundred at a time by several callers, with its progress on the terminal.

    python examples/enrichment.py --db postgresql://USER@HOST/NAME [--tasks N] [--workers N]

Without --db on a file that is thrown away. What is enriched is played by a function; put a service in its place.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TaskID, TimeRemainingColumn
from rich.progress import Task as Shown
from rich.text import Text

from pointsman import Event, Machine, NonBlank, Pointsman, State, Task, minutes, owner, result

AT_ONCE = 100
MADE = 1_000


class Companies(Machine, name="companies"):
    """A domain, and what is found out about it."""

    domain: NonBlank
    country: str | None = result()

    new = State(initial=True)
    working = State(lease=minutes(5))
    enriched = State(final=True)
    failed = State(final=True, outcome="failed")

    take = Event(new >> working, acquires=True)
    enrich = Event(working >> enriched, by=owner, sets="country")
    fail = Event(working >> failed, by=owner)


class Speed(ProgressColumn):
    """How many a second, lately."""

    def render(self, task: Shown) -> Text:
        return Text("" if task.speed is None else f"{task.speed:,.0f} a second")


def country(domain: str) -> str:
    """What a service would be asked."""
    return {"de": "Germany", "fr": "France"}.get(domain.rpartition(".")[2], "unknown")


def make(pm: Pointsman, tasks: int) -> None:
    for begin in range(0, tasks, MADE):
        numbers = range(begin, min(tasks, begin + MADE))
        domains = [f"company-{number}.{('de', 'fr', 'com')[number % 3]}" for number in numbers]
        pm.create_many("companies", [{"domain": domain} for domain in domains], by="import")


def work(pm: Pointsman, name: str, progress: Progress, bar: TaskID) -> int:
    """Until nothing waits; how many."""
    count = 0
    while tasks := pm.claim_many("companies", AT_ONCE, by=name):
        asked = [(task.id, task.epoch, {"country": country(task.fields["domain"])}) for task in tasks]
        done = [answer for answer in pm.finish_many("enrich", asked, by=name) if isinstance(answer, Task)]
        count += len(done)
        progress.update(bar, advance=len(done))
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description="Enrich many tasks, with the progress shown.")
    parser.add_argument("--db", metavar="URL", help="an empty database; else a file that is thrown away")
    parser.add_argument("--tasks", type=int, default=50_000, metavar="N")
    parser.add_argument("--workers", type=int, default=4, metavar="N")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Pointsman(options.db or f"sqlite:///{folder}/work.db", [Companies]) as pm:
        make(pm, options.tasks)
        columns = (BarColumn(), MofNCompleteColumn(), Speed(), TimeRemainingColumn())
        with Progress(*columns) as progress, ThreadPoolExecutor(options.workers) as pool:
            bar = progress.add_task("enriched", total=options.tasks)
            counts = list(pool.map(lambda number: work(pm, f"worker-{number}", progress, bar), range(options.workers)))
            (shown,) = progress.tasks
            took_s = shown.finished_time or shown.elapsed or 0.0
        left = len(pm.list(machine="companies", open=True, limit=1))
        print(f"{sum(counts)} enriched in {took_s:.1f} s, {sum(counts) / max(took_s, 0.001):,.0f} a second; {left} left")
        sys.exit(0 if sum(counts) == options.tasks and not left else 1)


if __name__ == "__main__":
    main()
