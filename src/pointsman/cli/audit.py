"""`pointsman audit …`: the facts of a task, and entries of the whole board, for whoever has to show them to somebody."""

from typing import Annotated, Any

import typer

from pointsman.app import opened
from pointsman.cli import options, output, paging, views
from pointsman.config import settings
from pointsman.errors import invalid
from pointsman.kernel.effect import Allowed
from pointsman.types import Instant, instant

app = typer.Typer(help="Show what happened, to somebody who was not there.", rich_markup_mode=None)

Actor = Annotated[str | None, options.flag("--actor", metavar="NAME", help="Only entries by NAME.")]
Of = Annotated[str | None, options.flag("--event", metavar="EVENT", help="Only entries of this event.")]
From = Annotated[str | None, options.flag("--from", metavar="TIME", help="From this time on, such as 2026-01-31T12:00:00Z.")]
To = Annotated[str | None, options.flag("--to", metavar="TIME", help="Before this time.")]


@app.callback()
def _group() -> None:
    """Show what happened, to somebody who was not there."""


@app.command("report", short_help="Everything that is known of one task.")
def report(id: options.TaskId, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Everything that is known of one task: as it stands, who worked on it, its whole history, every decision with the
    content that was shown, and what is still open to whom."""
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        told = pm.report(id)
        if config.json:
            output.as_json(told)
            return
        task = pm.get(id)
        views.task(task, pm.machines.get(task.machine), asked_by=None, past=True)
        output.line()
        views.history(pm.history(id), whole_board=False, title="history")
    _say(told)


def _say(told: dict[str, Any]) -> None:
    output.line()
    output.pairs([("created by", told["created_by"]), ("contributors", ", ".join(told["contributors"]) or "none")])
    if told["decisions"]:
        rows = [(item["event"], item["by"], item["at"], item["revision"], item["shown"] or "blind") for item in told["decisions"]]
        output.line()
        output.table(("decision", "by", "at", "revision", "shown"), rows, "decisions")
    if told["open"]:
        output.line()
        output.table(("still open", "who may ask"), list(told["open"].items()), "open")
    views.effects([Allowed(**{**item, "given": tuple(item["given"])}) for item in told["effects"]])


@app.command("export", short_help="Print entries of the whole board as lines of JSON, newest first.")
def export(
    actor: Actor = None,
    event: Of = None,
    start: From = None,
    end: To = None,
    limit: options.Limit = None,
    db: options.Db = None,
    work: options.Work = None,
) -> None:
    """Print entries of the whole board as lines of JSON, newest first: all of them, or those by whom, of what and when.

    Each has the members that `task history --json` shows. For a record that can be verified by itself, see `db export`.
    """
    config = settings(db=db, work=work)
    wanted = {"actor": actor, "event": event, "start": _time("--from", start), "end": _time("--to", end)}
    with opened(config, publish=False) as pm:
        for entry in paging.entries(lambda before, size: pm.audit(**wanted, before=before, limit=size), limit):
            output.as_json(entry.as_json(), indent=None)


def _time(flag: str, text: str | None) -> Instant | None:
    try:
        return None if text is None else instant(text)
    except (ValueError, OverflowError):
        raise invalid((flag, "write a time with its offset, such as 2026-01-31T12:00:00Z")) from None
