"""Servers that fire what is due, one of them killed at each point of its way, and what they made of it.

    python firing.py URL

Each server is a process of its own, forked from this one, which holds no database itself. A round is an hour: one task whose
deadline passes in it, and one due moment of a schedule. In each a server kills itself with SIGKILL at the next point that it
passes on its way, and then two others come, at the same moment and with clocks of their own. Prints the points.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from pointsman import Event, Machine, Pointsman, Schedule, State, hours, minutes
from pointsman.engine.timers import Deadlines, Schedules
from pointsman.testing import FakeClock
from pointsman.types import Instant, instant

START = instant("2026-01-01T00:30:00Z")
HOUR = hours(1)


class Timed(Machine, name="timed"):
    made: str | None = None
    scheduled = State(initial=True)
    due = State(deadline=minutes(30), on_deadline="remind")
    failed = State(final=True, outcome="failed")
    begin = Event(scheduled >> due)
    drop = Event((scheduled | due) >> failed)
    hourly = Schedule("0 * * * *")


def fire(url: str, now: Instant, probe: Callable[[str], None] | None = None) -> None:
    """One server: everything that is due now."""
    watching: list[Callable[[str], None]] = []

    def watched(point: str) -> None:
        for told in watching:
            told(point)

    with Pointsman(url, [Timed], clock=FakeClock(now), probe=watched) as pm:
        watching += [probe] if probe else []
        Deadlines(pm.engine).run_once()
        Schedules(pm.engine).run_once()
        watching.clear()


def started(work: Callable[[], None]) -> int:
    """A process of its own."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return child


def ended(child: int) -> int:
    return os.waitpid(child, 0)[1]


def well(work: Callable[[], None]) -> None:
    assert ended(started(work)) == 0, "a server that is left alone ends well"


def begun(url: str, now: Instant) -> None:
    with Pointsman(url, [Timed], clock=FakeClock(now)) as pm:
        pm.propose(pm.create("timed", {}, by="ann").id, "begin", by="ann")
        Schedules(pm.engine).run_once()


def counts(point: str) -> bool:
    """Between a statement and the next nothing happens."""
    return not point.startswith("after:")


def points(url: str, now: Instant, folder: Path) -> list[str]:
    """Every point that a server passes which fires one deadline and one moment."""
    passed = folder / "points"
    well(lambda: fire(url, now, lambda point: _append(passed, point)))
    return [point for point in passed.read_text().splitlines() if counts(point)]


def _append(file: Path, point: str) -> None:
    with file.open("a") as out:
        print(point, file=out)


def dying_at(number: int) -> Callable[[str], None]:
    """Kills its process at the point with this number."""
    left: Iterator[int] = iter(range(number, -1, -1))

    def probe(point: str) -> None:
        if counts(point) and next(left) == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return probe


def main(url: str) -> None:
    now = START
    with TemporaryDirectory() as folder:
        well(lambda: begun(url, now))
        found = points(url, now + HOUR, Path(folder))
    for number, point in enumerate(found):
        now += HOUR
        well(lambda now=now: begun(url, now))
        status = ended(started(lambda now=now, number=number: fire(url, now + HOUR, dying_at(number))))
        assert os.WIFSIGNALED(status), f"{point} was never passed"
        servers = [started(lambda now=now, late=late: fire(url, now + HOUR + late)) for late in (0, minutes(5))]
        assert [ended(server) for server in servers] == [0, 0]
        print(point, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
