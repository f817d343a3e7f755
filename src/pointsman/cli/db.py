"""`pointsman db …`: is the file sound, a copy of it, and the whole record as lines of JSON; from `moving`, the newest schema,
another house, and what need not be kept."""

from pathlib import Path
from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import asking, moving, options, output
from pointsman.config import settings
from pointsman.errors import FAILED

app = typer.Typer(help="Look after the database.", rich_markup_mode=None)
app.command("migrate", short_help="Bring the database to the newest schema.")(moving.migrate)
app.command("copy", short_help="Copy the whole database into another, while it is in use.")(moving.copy)
app.command("prune", short_help="Remove what need not be kept for ever.")(moving.prune)

Target = Annotated[Path, options.argument(metavar="FILE", help="The copy to write.")]


@app.command("check")
def check(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Check the database file itself: its pages, indexes and constraints. Exit status 1 when something is wrong."""
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        faults = pm.check()
    if config.json:
        output.as_json({"ok": not faults, "db": pm.url, "faults": faults})
    else:
        output.findings(faults, f"{pm.url} is sound")
    if faults:
        raise typer.Exit(FAILED)


@app.command("export", short_help="Print the whole record as lines of JSON.")
def export(db: options.Db = None, work: options.Work = None) -> None:
    """Print the whole record as lines of JSON: published machines, then every entry with its payload and hashes.

    The format is described in docs/past.md. The last line says how many there were; a file without it was cut.
    """
    config = settings(db=db, work=work)
    with opened(config, publish=False) as pm:
        for item in pm.export():
            output.as_json(item, indent=None)


@app.command("backup", short_help="Copy the database while it is in use.")
def backup(file: Target, yes: options.Yes = False, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Copy the database, as of one moment and while it is in use, into FILE.

    FILE is there whole or not at all. One that is there is replaced only after a yes. `pointsman verify` judges the copy
    as it judges any database.
    """
    config = settings(db=db, work=work, json=json)
    target = file.absolute()
    with opened(config, publish=False) as pm:
        there = target.exists()
        if there:
            asking.before_overwriting([target], yes=yes)
        pm.backup(target, replace=there)
    if config.json:
        output.as_json({"db": pm.url, "copy": f"sqlite:///{target}", "bytes": target.stat().st_size})
    else:
        output.line(f"copied {pm.url}\nto sqlite:///{target}, {target.stat().st_size:,} bytes")
