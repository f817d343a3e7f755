"""A process whose wall clock is wrong, while the uptime of the machine is what it is.

    python skewed.py URL SKEW_S

Keeps the store's time and fires what is due, round after round: one for each line that it reads, which says by how many seconds
the clock is wrong from here on. Prints by how many seconds the store's time is then off.
"""

import sys

import pointsman.engine.pointsman as facade
from pointsman import Event, Machine, Pointsman, State, minutes, seconds
from pointsman.engine import chance, duties
from pointsman.engine.timers import Deadlines
from pointsman.types import SECOND


class Timed(Machine, name="timed"):
    scheduled = State(initial=True)
    due = State(deadline=minutes(30), on_deadline="remind")
    failed = State(final=True, outcome="failed")
    begin = Event(scheduled >> due)
    drop = Event((scheduled | due) >> failed)


def main(url: str, skew_s: int) -> None:
    skew = [seconds(skew_s)]
    facade.wall_clock = lambda: chance.wall_clock() + skew[0]  # as the operating system would tell it
    with Pointsman(url, [Timed]) as pm:
        for line in sys.stdin:
            skew[0] = seconds(int(line))
            duties.keep_time(pm.engine)
            Deadlines(pm.engine).run_once()
            now = pm.engine.db.run(lambda tx: tx.now)
            print((now - chance.wall_clock()) // SECOND, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
