"""`pointsman verify`, `db check` and `doctor`: is the record whole, is the file sound, is the set-up right."""

import typer

from pointsman.app import opened
from pointsman.cli import options, output
from pointsman.config import settings
from pointsman.errors import FAILED

db = typer.Typer(help="Look after the database.", rich_markup_mode=None)


def verify(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Recompute the hash chain of every task, fold its history and compare it with the live row.

    Exit status 1 when an entry or a row was altered; the first bad entry of each task is named.
    """
    config = settings(db=db, work=work, json=json)
    with opened(config) as pm:
        report = pm.verify()
    faults = [{"task": fault.task, "version": fault.version, "what": fault.what} for fault in report.faults]
    if config.json:
        output.as_json({"ok": report.ok, "tasks": report.tasks, "entries": report.entries, "faults": faults})
    else:
        found = "verified" if report.ok else "NOT INTACT"
        sizes = ((report.tasks, "task", "tasks"), (report.entries, "entry", "entries"), (len(faults), "fault", "faults"))
        counts = (output.counted(*size) for size in sizes)
        output.line(f"{found}: {', '.join(counts)}")
        if faults:
            output.table(("task", "version", "what"), [tuple(fault.values()) for fault in faults])
    _exit(report.ok)


@db.callback()
def _group() -> None:
    """Look after the database."""


@db.command("check")
def check(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Check the database file itself: its pages, indexes and constraints. Exit status 1 when something is wrong."""
    config = settings(db=db, work=work, json=json)
    with opened(config) as pm:
        faults = pm.check()
    if config.json:
        output.as_json({"ok": not faults, "db": config.db, "faults": faults})
    else:
        _say(faults, f"{config.db} is sound")
    _exit(not faults)


def doctor(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Look for trouble in the set-up: functions that changed or are missing, machines that cannot be served.

    Exit status 1 when there is something to see to.
    """
    config = settings(db=db, work=work, json=json)
    with opened(config) as pm:
        warnings = pm.doctor()
    if config.json:
        output.as_json({"ok": not warnings, "db": config.db, "warnings": warnings})
    else:
        _say(warnings, "nothing to see to")
    _exit(not warnings)


def _say(findings: list[str], otherwise: str) -> None:
    for finding in findings:
        output.line(output.visible(finding))
    if not findings:
        output.line(otherwise)


def _exit(ok: bool) -> None:
    if not ok:
        raise typer.Exit(FAILED)
