"""What every driver of a peer shares: it is started as `python on_NAME.py URL WHAT …` and says one JSON line.

    setup            make the tables
    enqueue N        put N no-op jobs into an empty queue at once: their rate
    jobs BATCH N     the same, and do them all, so many at a time: the rate of doing
    steps CALLERS N  N durable steps by so many callers: their rate
    steps_on_a_file  the same on a SQLite file
    hang             one job, which says "started" and never ends
    recover          a worker, which says "again" when that job comes to it

A driver has what its system can do; for anything else it ends with `LACKS`. Standard library only: this runs beside foreign packages.
"""

import asyncio
import inspect
import json
import sys
import time
from collections.abc import Callable
from typing import Any

LACKS = 64


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def rate(count: int, began: float) -> None:
    say(rate=count / (time.perf_counter() - began))


def main(url: str, verbs: dict[str, Callable[..., Any]]) -> None:
    what, *numbers = sys.argv[2:]
    if what not in verbs:
        sys.exit(LACKS)
    done = verbs[what](url, *map(int, numbers))
    if inspect.iscoroutine(done):
        asyncio.run(done)


def start(**verbs: Callable[..., Any]) -> None:
    main(sys.argv[1], verbs)
