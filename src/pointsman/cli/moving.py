"""`pointsman db migrate`, `copy` and `prune`: the newest schema, another house, and what need not be kept for ever."""

import re
from typing import Annotated, Any

import typer

from pointsman.app import migrated, opened
from pointsman.cli import asking, options, output
from pointsman.config import settings
from pointsman.engine.moving import Arrived
from pointsman.errors import FAILED, invalid
from pointsman.store.pruning import Removed
from pointsman.types import Duration, seconds

Create = Annotated[bool, options.flag("--create", help="Make the database, or its tables, when there is none.")]
To = Annotated[str, options.flag("--to", metavar="URL", help="The database to write, which must hold nothing.")]
Age = Annotated[str, options.flag("--older-than", metavar="AGE", help="An age such as 30d, 12h, 90m or 45s.")]
Payloads = Annotated[
    bool, options.flag("--payloads", help="Also what the entries of tasks held that have been final for so long. Their entries stay.")
]

_AGE = re.compile(r"([0-9]{1,6})([dhms])")
_UNIT_S = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


def migrate(create: Create = False, db: options.Db = None, json: options.Json = None) -> None:
    """Bring the database to the newest schema, and say which steps that took. Every command that opens a database does so
    too; this one does nothing else. Only with --create is a database made where none is."""
    config = settings(db=db, json=json)
    done = migrated(config, create=create)
    if config.json:
        output.as_json({"db": done.url, "schema": done.schema, "steps": list(done.steps)})
        return
    taken = f"took {output.counted(len(done.steps), 'step')}: {', '.join(done.steps)}" if done.steps else "nothing to do"
    output.line(f"{done.url}\nschema {done.schema}, the newest; {taken}")


def copy(to: To, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Copy the whole database into another, as of one moment and while it is in use: from SQLite to PostgreSQL, or to
    another of the same kind. Tables are made there; a target that holds anything is refused.

    The copy is verified where it arrives. Until then the target is refused as a database, also when this command is
    killed; start it again and it begins anew.
    """
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        try:
            arrived = pm.copy(to, lambda table, rows: output.progress(f"{table}: {rows:,}" if rows else table))
        finally:
            output.progress("")
    if config.json:
        output.as_json(_data(arrived))
    else:
        _say(arrived)
    if not arrived.report.ok:
        raise typer.Exit(FAILED)


def _data(arrived: Arrived) -> dict[str, Any]:
    faults = [{"task": fault.task, "version": fault.version, "what": fault.what} for fault in arrived.report.faults]
    head = {"seq": arrived.head.seq, "hash": arrived.head.hash}
    return {"ok": arrived.report.ok, "db": arrived.source, "to": arrived.target, "rows": dict(arrived.rows), "head": head, "faults": faults}


def _say(arrived: Arrived) -> None:
    output.line(f"copied {arrived.source}\nto {arrived.target}")
    output.table(("table", "rows"), [(table, f"{rows:,}") for table, rows in arrived.rows.items() if rows])
    if arrived.report.ok:
        output.line(f"verified there, up to feed number {arrived.head.seq}")
        return
    output.line("NOT INTACT there, so it stays closed; see what `pointsman verify` says of the source")
    output.table(("task", "version", "what"), [(fault.task, fault.version, fault.what) for fault in arrived.report.faults])


def prune(
    older_than: Age,
    payloads: Payloads = False,
    yes: options.Yes = False,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Remove what is older and need not be kept for ever: idempotency records (a request repeated after that is a new
    one), refusals, settled proposals, and judgements of tasks that have been final for so long.

    Without --yes it is counted first, which looks through everything, and asked. Entries stay, and so do their hashes:
    `pointsman verify` knows what was pruned. With --payloads a final task's earlier versions can no longer be read (410);
    its last one can.
    """
    config = settings(db=db, work=work, json=json)
    age = _age(older_than)
    with opened(config, publish=False) as pm:
        if not yes:
            there = _words(pm.prunable(age, payloads=payloads))
            asking.allowed(f"Remove what is older than {older_than} for good: {there}?", f"{there} would be removed", yes=yes)
        try:
            removed = pm.prune(age, payloads=payloads, told=lambda so_far: output.progress(f"removed {_words(so_far)}"))
        finally:
            output.progress("")
    if config.json:
        output.as_json({"db": pm.url, "removed": _counts(removed)})
    else:
        output.line(f"removed {_words(removed)}")


def _age(text: str) -> Duration:
    found = _AGE.fullmatch(text)
    if found is None:
        raise invalid(("--older-than", "an age such as 30d, 12h, 90m or 45s"))
    return seconds(int(found[1]) * _UNIT_S[found[2]])


_NAMES = {
    "requests": ("idempotency record", ""),
    "refusals": ("refusal", ""),
    "proposals": ("settled proposal", ""),
    "judgements": ("judgement", ""),
    "tasks": ("task's payloads", "tasks' payloads"),
}


def _counts(removed: Removed) -> dict[str, int]:
    return {name: getattr(removed, name) for name in _NAMES}


def _words(removed: Removed) -> str:
    said = [output.counted(count, *_NAMES[name]) for name, count in _counts(removed).items() if count]
    return ", ".join(said) or "nothing"
