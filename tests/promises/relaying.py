"""Relays that die at each point of their way, and what their receiver got.

    python -m promises.relaying URL FILE

Each relay is a process of its own, forked from this one, which holds no database itself. The receiver is FILE, where what it takes
is appended. In each round a task says two things; a relay kills itself with SIGKILL at the next point that it passes; then
two others come at once, when what it held is free again. Prints the points.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from pointsman import Event, Machine, Pointsman, State, minutes
from pointsman.engine.relaying import TAKEN, Answer, Inline, Relay
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.testing import FakeClock
from pointsman.types import Instant, instant
from promises.firing import counts, dying_at, ended, started, well

START = instant("2026-01-01T00:00:00Z")
ROUND = minutes(10)
TASKS, SAYINGS = 1, 2
Point = Callable[[str], None]


class Talk(Machine, name="talk"):
    """Tasks that say something whenever they are told to."""

    text: str | None = None
    open = State(initial=True)
    done = State(final=True, outcome="failed")
    say = Event(open >> open, tells="something was said")
    end = Event(open >> done)


def receiving(file: Path, passed: Point) -> Callable[[Hook, Message, Instant], Answer]:
    """A receiver that takes everything, and the points before it has and after."""

    def take(hook: Hook, message: Message, now: Instant) -> Answer:
        passed("sending")
        with file.open("a") as out:
            out.write(f"{message.task} {message.version} {message.id}\n")
        passed("sent")
        return TAKEN

    return take


def relay(url: str, file: Path, now: Instant, probe: Point | None = None) -> None:
    """One relay: everything that is due now."""
    watching: list[Point] = []

    def watched(point: str) -> None:
        for told in watching:
            told(point)

    with Pointsman(url, [Talk], clock=FakeClock(now), probe=watched) as pm:
        watching += [probe] if probe else []
        sink = receiving(file, watched)
        round_ = Relay(pm.engine, lambda hook: sink, Inline())
        while round_.run_once():
            pass
        watching.clear()
        round_.stop()


def said(url: str, now: Instant) -> None:
    with Pointsman(url, [Talk], clock=FakeClock(now)) as pm:
        if not pm.hooks():
            pm.add_hook("call:receiver", "call", ["event:say"], by="olga")
        tasks = [pm.create("talk", {}, by="ann") for _ in range(TASKS)]
        for _ in range(SAYINGS):
            for task in tasks:
                pm.propose(task.id, "say", by="ann")


def points(url: str, file: Path, now: Instant) -> list[str]:
    """Every point that a relay passes on its way."""
    with TemporaryDirectory() as folder:
        passed = Path(folder) / "points"

        def note(point: str) -> None:
            with passed.open("a") as out:
                print(point, file=out)

        well(lambda: relay(url, file, now, note))
        found = passed.read_text().splitlines()
    return [point for point in found if counts(point)]


def main(url: str, file: Path) -> None:
    now = START
    well(lambda: said(url, now))
    for number, point in enumerate(points(url, file, now)):
        now += ROUND
        well(lambda now=now: said(url, now))
        status = ended(started(lambda now=now, number=number: relay(url, file, now, dying_at(number))))
        assert os.WIFSIGNALED(status), f"{point} was never passed"
        others = [started(lambda now=now: relay(url, file, now + minutes(2))) for _ in range(2)]
        assert [ended(other) for other in others] == [0, 0]
        print(point, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
