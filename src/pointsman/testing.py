"""For the tests of programs that embed Pointsman: a clock that moves when told, and chance that repeats itself."""

import random
from collections.abc import Callable

from pointsman.types import Duration, Instant


class FakeClock:
    """The store's clock in a test: pass it as `Pointsman(..., clock=FakeClock())` and move it by hand.

    With `uptime=clock.uptime` beside it, `advance` is time that passes, and `jump` a clock that somebody has set."""

    def __init__(self, now: Instant = 1_767_225_600_000_000, uptime: Duration = 0):
        self.now, self._uptime = now, uptime

    def __call__(self) -> Instant:
        return self.now

    def advance(self, by: Duration) -> None:
        self.now += by
        self._uptime += by

    def jump(self, by: Duration) -> None:
        self.now += by

    def uptime(self) -> Duration:
        return self._uptime


def seeded(seed: int) -> Callable[[int], int]:
    """Chance that gives the same ids and nonces in every run: pass it as `Pointsman(..., chance=seeded(1))`."""
    return random.Random(seed).getrandbits
