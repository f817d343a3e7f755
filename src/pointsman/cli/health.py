"""`pointsman verify` and `doctor`: is the record whole, is the set-up right."""

from pathlib import Path
from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import heads, options, output
from pointsman.config import settings
from pointsman.engine.verify import Report
from pointsman.errors import FAILED

Head = Annotated[
    Path | None, options.flag("--head", metavar="FILE", help="A head kept from before: nothing up to it may be missing or changed.")
]
WriteHead = Annotated[
    Path | None, options.flag("--write-head", metavar="FILE", help="When all is well, write the feed's head here. Keep it elsewhere.")
]


def verify(
    head: Head = None,
    write_head: WriteHead = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Recompute the hash chain of every task and of the feed, fold each history and compare it with the live row.

    Exit status 1 when an entry or a row was altered; the first bad entry of each task is named. A cut tail leaves no
    trace in the database itself: it is found against a head that was written before and kept elsewhere.
    """
    config = settings(db=db, work=work, json=json)
    known = None if head is None else heads.read(head)
    with opened(config, publish=False) as pm:
        new = {} if write_head is None else pm.head()
        report = pm.verify(known)
    kept = write_head if report.ok else None
    if kept is not None:
        heads.write(kept, new)
    if config.json:
        output.as_json(_data(report) | ({} if kept is None else {"head": new}))
    else:
        _say(report)
    if kept is not None and not config.json:
        output.line(f"head: feed number {new['seq']}, written to {kept}")
    if not report.ok:
        raise typer.Exit(FAILED)


def _data(report: Report) -> dict[str, object]:
    faults = [{"task": fault.task, "version": fault.version, "what": fault.what} for fault in report.faults]
    return {"ok": report.ok, "tasks": report.tasks, "entries": report.entries, "faults": faults}


def _say(report: Report) -> None:
    found = "verified" if report.ok else "NOT INTACT"
    sizes = ((report.tasks, "task", "tasks"), (report.entries, "entry", "entries"), (len(report.faults), "fault", "faults"))
    output.line(f"{found}: {', '.join(output.counted(*size) for size in sizes)}")
    if report.faults:
        output.table(("task", "version", "what"), [(fault.task, fault.version, fault.what) for fault in report.faults])


def doctor(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Look for trouble in the set-up: functions that changed or are missing, machines that cannot be served.

    Exit status 1 when there is something to see to.
    """
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        warnings = pm.doctor()
    if config.json:
        output.as_json({"ok": not warnings, "db": pm.url, "warnings": warnings})
    else:
        output.findings(warnings, "nothing to see to")
    if warnings:
        raise typer.Exit(FAILED)
