"""Chance and the clock of a running process: the one place that asks the operating system for either."""

import os
import secrets
import threading
import time
from functools import cache
from pathlib import Path

from pointsman.types import Duration, Instant

BUFFER = 4096
UPTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps. Where it has another name, as on macOS, the monotonic clock does so itself."""
BOOT = Path("/proc/sys/kernel/random/boot_id")
"""Another one each time that a machine is started; on Linux alone."""


def wall_clock() -> Instant:
    return time.time_ns() // 1000


def uptime() -> Duration:
    """How long the machine has been up: the same for all its processes, and set by nobody. Each time that it is started the count
    begins elsewhere, where that can be told, so that two starts are not taken for one."""
    return _start() + time.clock_gettime_ns(UPTIME) // 1000


@cache
def _start() -> Duration:
    try:
        return (int(BOOT.read_text().partition("-")[0], 16) % 2**15) << 47
    except (OSError, ValueError):
        return 0


def elapsed() -> float:
    """Seconds by which a wait is measured, from no moment in particular; they go on whatever is done to the clock."""
    return time.monotonic()


class Entropy:
    """Random bits from the operating system, fetched in bulk: a system call per id costs more than the id.

    A forked child starts with an empty buffer, so that it never repeats its parent's bits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left = b""
        os.register_at_fork(after_in_child=self._restart)

    def __call__(self, bits: int) -> int:
        size = (bits + 7) // 8
        with self._lock:
            if len(self._left) < size:
                self._left = secrets.token_bytes(max(BUFFER, size))
            taken, self._left = self._left[:size], self._left[size:]
        return int.from_bytes(taken) >> size * 8 - bits

    def _restart(self) -> None:
        self._lock = threading.Lock()
        self._left = b""


entropy = Entropy()
