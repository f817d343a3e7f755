"""`pointsman hold …`: stop what matches for a while, and let it go again."""

from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import options, output, views
from pointsman.cli.acting import named
from pointsman.config import settings
from pointsman.engine.views import hold_json
from pointsman.errors import invalid
from pointsman.kernel.hold import Hold
from pointsman.types import Instant, instant

app = typer.Typer(help="Stop events on some tasks for a while and a reason, and let them go again.", rich_markup_mode=None)

Event = Annotated[str | None, options.flag("--event", metavar="EVENT", help="Only this event.")]
State = Annotated[str | None, options.flag("--state", metavar="STATE", help="Only tasks in this state.")]
Tag = Annotated[str | None, options.flag("--tag", metavar="TAG", help="Only tasks with this tag.")]
Reason = Annotated[str, options.flag("--reason", metavar="TEXT", help="Why: whoever is stopped is told.")]
From = Annotated[str | None, options.flag("--from", metavar="TIME", help="Since when, as 2026-01-31T12:00:00Z. Default: now.")]
Until = Annotated[str | None, options.flag("--until", metavar="TIME", help="Until when. Default: until it is lifted.")]
Rate = Annotated[
    int | None, options.flag("--release-per-s", metavar="N", help="When it has ended, at most N of what it held back are claimed a second.")
]
HoldId = Annotated[str, options.argument(metavar="ID", help="The hold's id.")]


@app.command("add")
def add(
    reason: Reason,
    machine: options.OfMachine = None,
    event: Event = None,
    state: State = None,
    tag: Tag = None,
    start: From = None,
    until: Until = None,
    release_per_s: Rate = None,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Stop every event that fits all that is named: claims too, renewals and releases not.

    pointsman hold add --event claim --tag openai --reason "the provider is down" --as olga
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    match = {word: value for word, value in (("machine", machine), ("event", event), ("state", state), ("tag", tag)) if value is not None}
    times = _time("--from", start), _time("--until", until)
    with opened(config, publish=False) as pm:
        hold = pm.hold(match, by=named(config), reason=reason, start=times[0], until=times[1], release_per_s=release_per_s)
    _told("placed", hold, as_json=config.json)


@app.command("list")
def list_(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Every hold, oldest first, also those that ended."""
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        found: list[Hold] = []
        while page := pm.holds(after=found[-1].id if found else None):
            found += page
    if config.json:
        output.as_json({"holds": [hold_json(hold) for hold in found]})
    else:
        output.table(("id", "on", "from", "until", "reason", "by", "lifted"), [_row(hold) for hold in found])


@app.command("lift")
def lift(id: HoldId, name: options.As = None, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """End a hold. What it held back is claimed at no more than its rate."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        hold = pm.lift(id, by=named(config))
    _told("lifted", hold, as_json=config.json)


def _time(flag: str, text: str | None) -> Instant | None:
    try:
        return None if text is None else instant(text)
    except (ValueError, OverflowError):
        raise invalid((flag, "must be a time with its offset, as in 2026-01-31T12:00:00Z")) from None


def _told(did: str, hold: Hold, *, as_json: bool) -> None:
    if as_json:
        output.as_json(hold_json(hold))
    else:
        output.line(output.visible(f"{did}: hold {hold.id} on {hold.match}"))


def _row(hold: Hold) -> tuple[object, ...]:
    until = "" if hold.until is None else views.when(hold.until)
    lifted = "" if hold.lifted_at is None else f"{views.when(hold.lifted_at)} by {hold.lifted_by}"
    return (hold.id, str(hold.match), views.when(hold.begins), until, hold.reason, hold.placed_by, lifted)
