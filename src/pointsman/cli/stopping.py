"""SIGTERM and SIGINT, taken by a command that ends by itself when told to."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def heeding(stop: Callable[[int], None]) -> Iterator[None]:
    """Inside the block a signal calls `stop` with its number, between any two steps of the main thread."""
    before = {number: signal.signal(number, lambda given, _: stop(given)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
