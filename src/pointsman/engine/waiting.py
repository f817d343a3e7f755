"""Waiting for something to come: the one place where anybody looks again and again.

Whoever waits is told when something it waits for may have been committed. Such a hint can be lost (a connection is cut, or a
process of another host cannot be heard), so it also looks by itself, after a poll interval. Of those who wait for the very
same work only the first does: the others are told by whoever leaves.
"""

from collections.abc import Callable, Hashable
from typing import TypeVar

from pointsman.engine.steps import Await, Steps
from pointsman.engine.view import Engine
from pointsman.store.database import Topic

T = TypeVar("T")

POLL_S = 1.0
"""What a lost hint costs at most. A thousand who wait for a thousand tasks look a thousand times a second."""

QUEUE_POLL_S = 0.5
"""The same for work to take, where one looks for all: also how late a lapse, which nobody commits, is found."""

BEHIND_S = 60.0
"""Who stands behind somebody is told by that one. This is only for the case that its program stands still."""


def until(
    engine: Engine,
    topic: Topic,
    look: Callable[[], Steps[T | None]],
    wait_s: float,
    *,
    line: Hashable = None,
    poll_s: float = POLL_S,
) -> Steps[T | None]:
    """Look, and again whenever told or after `poll_s` without, until a look finds something or `wait_s` seconds are over;
    then None, after a last look. `line` is what only one of those who name it can have."""
    if wait_s <= 0:
        return (yield from look())
    ends = engine.elapsed() + wait_s
    with engine.db.hints.waiting(topic, line) as place:
        while True:
            hint = place.listen()
            found = yield from look()
            left = ends - engine.elapsed()
            if found is not None or left <= 0:
                return found
            yield Await(hint, min(left, poll_s if place.first else BEHIND_S))
