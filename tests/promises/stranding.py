"""A process that ends tasks for which others wait, and kills itself with SIGKILL while it tells them.

    python stranding.py URL CRASH_POINT PASSES

It dies when it passes the crash point for the given time after it said "ready" on stdout.
"""

import os
import signal
import sys
from contextlib import suppress

from engine.graph_world import OLGA, OWNER, Parts, batch, make, parent, take
from pointsman import Pointsman, Refused, Task

NAMES = ("upstream", "stays", "falls", "under", "goes", "above", "first", "second", "family", "child", "below")


def world(pm: Pointsman) -> dict[str, Task]:
    """Dependents of every fate and one below them; a parent that waits for two children; a family to be cancelled."""
    upstream = make(pm, "upstream")
    stays, falls, goes = (
        make(pm, name, (upstream, fate)) for name, fate in (("stays", "block"), ("falls", "cancel"), ("goes", "continue"))
    )
    under = make(pm, "under", (falls, "cancel"))
    above, family = parent(pm), parent(pm)
    first, second = batch(pm, above, {"fields": {"name": "first"}}, {"fields": {"name": "second"}}, join="all")
    (child,) = batch(pm, family, {"fields": {"name": "child"}})
    (below,) = batch(pm, take(pm, child), {"fields": {"name": "below"}})
    return dict(zip(NAMES, (upstream, stays, falls, under, goes, above, first, second, family, child, below), strict=True))


def act(pm: Pointsman, tasks: dict[str, Task]) -> None:
    """What is to happen; what has happened already is refused."""
    with suppress(Refused):
        pm.propose(tasks["upstream"].id, "fail", by="ann")
    for name in ("first", "second"):
        held = pm.get(tasks[name].id)
        with suppress(Refused):
            held = held if held.owner == OWNER else take(pm, held)
            pm.propose(held.id, "finish", by=OWNER, epoch=held.epoch)
    with suppress(Refused):
        pm.cancel(tasks["family"].id, by=OLGA, reason="not wanted", cascade=True)


def main(url: str, crash_point: str, passes: str) -> None:
    left = [0]

    def probe(point: str) -> None:
        if point == crash_point and left[0]:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    with Pointsman(url, [Parts], probe=probe) as pm:
        tasks = world(pm)
        print("ready", *(task.id for task in tasks.values()), flush=True)
        left[0] = int(passes)
        act(pm, tasks)


if __name__ == "__main__":
    main(*sys.argv[1:])
