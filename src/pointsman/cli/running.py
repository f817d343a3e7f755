"""`pointsman run`: a command for each task that waits."""

import json as jsons
import math
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from pointsman.app import opened
from pointsman.cli import options, output, views
from pointsman.cli.acting import LONGEST_GRACE_S, named, served, span
from pointsman.cli.stopping import heeding
from pointsman.config import Config, handed_on, settings
from pointsman.engine.views import task_json
from pointsman.errors import FAILED, Refusal, Refused, invalid
from pointsman.kernel.task import Task
from pointsman.worker.runner import Order, Ran, Runner

STDERR = 2

Command = Annotated[list[str], options.argument(metavar="-- COMMAND...", help="The program and its arguments; no shell reads them.")]
Loop = Annotated[bool, typer.Option("--loop", help="When the command has ended, take the next task, until SIGTERM or Ctrl-C.")]
LeaseSeconds = Annotated[
    float | None, options.flag("--lease-s", metavar="SECONDS", help="Hold a task for so long at a time; else the state's own time.")
]
WaitSeconds = Annotated[
    float | None,
    options.flag("--wait-s", metavar="SECONDS", help="How long to wait for a task. Default: not at all, with --loop for ever."),
]
Grace = Annotated[float, typer.Option("--grace", metavar="SECONDS", help="Between SIGTERM and SIGKILL.")]


def run(
    command: Command,
    machine: options.Machine = None,
    tag: options.OfTags = None,
    capability: options.Capabilities = None,
    loop: Loop = False,
    name: options.As = None,
    lease_s: LeaseSeconds = None,
    wait_s: WaitSeconds = None,
    grace: Grace = 10.0,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Claim a task, run a command with it, and keep its lease while the command works.

    The command finds the task as JSON in the file that POINTSMAN_TASK names, POINTSMAN_TASK_ID, POINTSMAN_EPOCH and
    POINTSMAN_SESSION, and its settings POINTSMAN_DB, POINTSMAN_WORK and POINTSMAN_AS, so that it can move the task itself:

    pointsman run --as ci -- sh -c 'pointsman task propose $POINTSMAN_TASK_ID start_draft --epoch $POINTSMAN_EPOCH'

    It is stopped when the lease is lost. What is still held when it ends is given back: counted as an error when it failed.
    Exit status 0 when it ended with 0, 1 when it failed, 3 when no task waits or the lease was lost; with --loop 0.
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    by = named(config)
    if shutil.which(command[0]) is None:
        raise invalid(("COMMAND", f"there is no program {command[0]}"))
    grace_s, patience_s = (
        span("--grace", grace, LONGEST_GRACE_S),
        span("--wait-s", (math.inf if loop else 0.0) if wait_s is None else wait_s),
    )
    with _handing(config, by) as environment, opened(config, duties=True) as pm:
        stdout = STDERR if config.json else None
        order = Order(served(pm, machine), command, environment, grace_s, lease_s, stdout, tag or (), capability or ())
        with Runner(pm, by, order) as runner, heeding(runner.stop):
            if loop:
                runner.loop(patience_s, lambda ran: _told(config, ran))
            else:
                _ended(config, runner, runner.run_once(patience_s))


@contextmanager
def _handing(config: Config, by: str) -> Iterator[Any]:
    """What each task's command finds in its environment, and in a file that lasts as long as the next task does not come."""
    with TemporaryDirectory(prefix="pointsman-") as folder:
        path = Path(folder) / "task.json"

        def environment(task: Task) -> Mapping[str, str]:
            path.write_text(jsons.dumps(task_json(task), indent=2), encoding="utf-8")
            told = {"TASK": str(path), "TASK_ID": task.id, "EPOCH": str(task.epoch), "SESSION": task.session or ""}
            return {**handed_on(config, by), **{f"POINTSMAN_{key}": value for key, value in told.items()}}

        yield environment


def _ended(config: Config, runner: Runner, ran: Ran | None) -> None:
    """How one task ended, as an exit status."""
    if ran is None:
        if runner.stopped is not None:
            return
        raise Refused(Refusal("nothing_to_claim", f"no task of {runner.order.machine} waits"))
    _told(config, ran)
    if ran.lost is not None:
        raise Refused(ran.lost)
    if not ran.end.well:
        raise typer.Exit(FAILED)


def _told(config: Config, ran: Ran) -> None:
    if config.json:
        output.as_json(_as_json(ran), indent=None)
        sys.stdout.flush()
    else:
        output.note("; ".join([f"the command {ran.end}", *_about(ran), views.summary(ran.task)]))


def _about(ran: Ran) -> Iterator[str]:
    if ran.lost is not None:
        yield f"{ran.lost.code}: {ran.lost.detail}"
    if ran.released:
        yield "given back"


def _as_json(ran: Ran) -> dict[str, Any]:
    """One object a task: how the command ended, and the task as it then stood."""
    return {
        "status": ran.end.status,
        "signal": ran.end.signal,
        "lost": None if ran.lost is None else ran.lost.as_json(),
        "released": ran.released,
        "task": task_json(ran.task),
    }
