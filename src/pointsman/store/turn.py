"""Whose turn it is to write, among the processes that share one database file.

SQLite's own busy handler is not fair: a process that has just committed takes the lock again before a sleeping rival
looks. Two advisory locks beside the database make it fair. Whoever wants the turn first becomes *next*, stays next until
it has the turn, and only then lets somebody else become next; a process that gives its turn back finds the place taken.
The kernel drops both locks when their process dies. They order writers and guard nothing: SQLite's lock does that.
"""

import fcntl
import os
import time

SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.00005, 0.005


class Turn:
    """One seat at the table. Used by one thread at a time; `give` and `close` may be repeated."""

    def __init__(self, database: str, mode: int):
        """`mode` is the database's own, so that whoever may write it may take a turn. OSError when a file cannot be had."""
        self._next = _open(f"{database}-next", mode)
        try:
            self._turn = _open(f"{database}-turn", mode)
        except OSError:
            os.close(self._next)
            raise
        self._open = True

    def take(self, patience_s: float) -> bool:
        """Wait for the turn; False when it did not come within `patience_s`."""
        deadline = time.monotonic() + patience_s
        if not _lock(self._next, deadline):
            return False
        try:
            return _lock(self._turn, deadline)
        finally:
            fcntl.flock(self._next, fcntl.LOCK_UN)

    def give(self) -> None:
        if self._open:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._open:
            self._open = False
            os.close(self._turn)
            os.close(self._next)


def _open(path: str, mode: int) -> int:
    """Two processes may create the file at once: both get the same one. Never through a link somebody laid there."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, mode & 0o666)


def _lock(file: int, deadline: float) -> bool:
    """Look again after an eighth of the time waited so far: prompt for a short wait, cheap for a long one."""
    if _try(file):
        return True
    began = time.monotonic()
    while (now := time.monotonic()) < deadline:
        time.sleep(min(max((now - began) / 8, SHORTEST_LOOK_S), LONGEST_LOOK_S))
        if _try(file):
            return True
    return False


def _try(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
