"""The store's clock where a store goes by the clocks of those who use it: it only rises, and follows a jump slowly.

Three things make the time. The *wall clock* says what time it is, and may be set by anybody. The *uptime* counts how long the
machine has been up, for all its processes alike, and nobody sets it. The *mark* is the last time that the store is known to
have seen, with the uptime at which that was: one row, which a duty brings on about once a second.

The uptime says how much time has passed, and so how far the wall clock may have come. What it is ahead of that is a jump, and
is followed by `BOUND` a tick. A process that has just started has seen nothing pass: it goes on from the mark where somebody
keeps it, and else believes its clock, since what lies behind is a downtime. A clock that was put back is waited for.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock

from pointsman.store.database import Database, Tx
from pointsman.types import SECOND, Duration, Instant

log = logging.getLogger("pointsman")

TICK: Duration = SECOND
"""How often the mark is brought on, and looked at."""
BOUND: Duration = SECOND
"""How much of a jump is followed in a tick. Time then passes at twice its pace at most, and an owner who renews at a third of its
lease loses nothing by it."""
KEPT: Duration = 60 * SECOND
"""A mark that was brought on so lately has a keeper, who may have been restarted meanwhile."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A time that was seen, and the uptime at which it was."""

    at: Instant
    uptime: Duration

    def after(self, uptime: Duration) -> Instant:
        """What time it is at an uptime, if nobody has set a clock since."""
        return self.at + uptime - self.uptime

    def is_kept(self, uptime: Duration) -> bool:
        """Not so where the machine was restarted since: its uptime began anew."""
        return 0 <= uptime - self.uptime <= KEPT


def unmarked() -> Mark | None:
    """Where no mark is kept."""
    return None


class RisingClock:
    """The time of one process on one store, for all its threads. Without an uptime of its own a clock is believed whatever it
    says, forward."""

    def __init__(self, wall: Callable[[], Instant], uptime: Callable[[], Duration] | None = None):
        self._wall, self._uptime = wall, uptime
        self._lock = Lock()
        self._told: Instant = 0
        self._expected: Mark | None = None
        self._ticked: Duration = 0
        self._jumped = False

    def __call__(self, look: Callable[[], Mark | None] = unmarked) -> Instant:
        """The time. `look` finds the mark, and is asked once a tick."""
        uptime, wall = self._read()
        expected, mark = self._expected, None
        if expected is None or self._is_late(uptime):
            mark = look()
            expected = self._tick(mark, uptime, wall)
        reached = min(wall, expected.after(uptime))
        with self._lock:
            self._told = max(self._told, reached, 0 if mark is None else mark.at)
            return self._told

    def uptime(self) -> Duration:
        return self._read()[0]

    def _read(self) -> tuple[Duration, Instant]:
        """Both, the uptime first: so what is expected is never too little."""
        if self._uptime is None:
            return (wall := self._wall()), wall
        return self._uptime(), self._wall()

    def _is_late(self, uptime: Duration) -> bool:
        return abs(uptime - self._ticked) >= TICK

    def _tick(self, mark: Mark | None, uptime: Duration, wall: Instant) -> Mark:
        """What is expected from here on. Of several threads that come at once, one moves it."""
        with self._lock:
            before = self._expected
            if before is None or self._is_late(uptime):
                at = _followed(before, mark, uptime, wall)
                self._warn(wall - at)
                self._expected, self._ticked = Mark(at, uptime), uptime
            return self._expected or Mark(wall, uptime)

    def _warn(self, ahead: Duration) -> None:
        """Once for each jump."""
        if ahead > BOUND and not self._jumped:
            log.warning("the clock has jumped %d s ahead; it is followed by %d s a second, so that nothing ends by it", *_s(ahead, BOUND))
        self._jumped = ahead > 0


def _s(*spans: Duration) -> tuple[int, ...]:
    return tuple(span // SECOND for span in spans)


def _followed(before: Mark | None, mark: Mark | None, uptime: Duration, wall: Instant) -> Instant:
    """How far a wall clock is believed: as far as time has passed, and a bound; by whoever has seen none pass, as the mark's keeper
    does."""
    kept = mark.after(uptime) if mark is not None and mark.is_kept(uptime) else None
    if before is not None:
        passed = before.after(uptime)
        return max(passed, min(wall, passed + BOUND), kept or 0)
    return wall if kept is None else kept


def find(tx: Tx) -> Mark | None:
    row = tx("find_mark")
    return None if row is None else Mark(*row)


def keep(db: Database) -> bool:
    """Bring the mark on, unless somebody has within a tick; whoever comes late does nothing. Whether it was brought on. A store that
    has a clock of its own has no mark."""
    clock = db.clock
    if clock is None:
        return False
    before = db.read(find)
    if before is not None and 0 <= clock.uptime() - before.uptime < TICK:
        return False
    return db.run(partial(move, before, clock.uptime()))


def move(before: Mark | None, uptime: Duration, tx: Tx) -> bool:
    """The mark to now, from what was read; False when somebody else has moved it."""
    expected = before or Mark(0, 0)
    moved = tx("keep_mark", mark=tx.now, uptime=uptime, expected_mark=expected.at, expected_uptime=expected.uptime)
    return moved is not None
