"""Lists longer than a page, asked for page by page. A limit below 1 is for the engine to refuse."""

from collections.abc import Callable, Iterator

from pointsman.engine.queries import Entry
from pointsman.kernel.task import Task

PAGE = 1_000


def tasks(wanted: Callable[..., list[Task]], limit: int | None) -> Iterator[Task]:
    """At most `limit` tasks, each page following the last task of the one before."""
    last, left = None, limit
    while page := wanted(after=last, limit=_size(left)):
        yield from page
        last, left = page[-1], None if left is None else left - len(page)
        if left == 0:
            return


def entries(wanted: Callable[[int | None, int], list[Entry]], limit: int | None) -> Iterator[Entry]:
    """At most `limit` entries of the board, newest first. `wanted` answers those before a feed number, so many at most."""
    before, left = None, limit
    while page := wanted(before, _size(left)):
        yield from page
        before, left = page[-1].seq, None if left is None else left - len(page)
        if left == 0:
            return


def _size(left: int | None) -> int:
    return PAGE if left is None else min(left, PAGE)
