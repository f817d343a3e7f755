"""`pointsman worker`: the handlers of a work file, called with tasks."""

import sys
from functools import partial
from queue import SimpleQueue
from typing import Annotated

import typer

from pointsman.app import working
from pointsman.cli import options, output
from pointsman.cli import working as shown
from pointsman.cli.acting import LONGEST_GRACE_S, named, span
from pointsman.cli.stopping import heeding
from pointsman.config import settings
from pointsman.worker.worker import GRACE_S, Worker

Concurrency = Annotated[int, typer.Option("--concurrency", min=1, max=64, metavar="N", help="Work on so many tasks at a time.")]
Grace = Annotated[float, typer.Option("--grace", metavar="SECONDS", help="How long tasks in work may take to end after SIGTERM or Ctrl-C.")]


def worker(
    work: options.WorkFile = None,
    name: options.As = None,
    concurrency: Concurrency = 1,
    grace: Grace = GRACE_S,
    db: options.Db = None,
    json: options.Json = None,
) -> None:
    """Claim tasks and call the functions with them that WORK.PY marks with `@worker.on(...)`, until SIGTERM or Ctrl-C.

    WORK.PY says `worker = Worker()`; its database comes from here. Prints one line when ready and one for each task that was in
    work; on a terminal it shows what is in work. A function that raises gives its task back, counted as an error; what is not
    done --grace seconds after the signal is given back uncounted.
    """
    config = settings(work=work, db=db, json=json, **{"as": name})
    by, grace_s = named(config), span("--grace", grace, LONGEST_GRACE_S)
    told = SimpleQueue[int]()
    with working(config) as (pm, found), heeding(told.put):
        found.check()
        _ready(found, by, pm.url, json=config.json)
        found.start(by, concurrency=concurrency, told=partial(shown.ended, json=config.json))
        try:
            shown.watch(told, found.in_hand, json=config.json)
        finally:
            found.stop(grace_s)


def _ready(found: Worker, by: str, db: str, *, json: bool) -> None:
    routes = [{"machine": route.machine, "state": route.state} for route in found.routes]
    if json:
        output.as_json({"as": by, "db": db, "on": routes}, indent=None)
    else:
        waiting = ", ".join(route.machine if route.state is None else f"{route.machine} ({route.state})" for route in found.routes)
        output.line(output.visible(f"working as {by} on {waiting} in {db}"))
    sys.stdout.flush()
