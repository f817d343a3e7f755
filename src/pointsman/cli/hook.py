"""`pointsman hook …`: who is told of what, outside."""

from typing import Annotated, cast

import typer

from pointsman.app import opened
from pointsman.cli import options, output, views
from pointsman.cli.acting import named
from pointsman.config import Config, settings
from pointsman.engine.chance import wall_clock
from pointsman.engine.hooking import LINK, Backlog, Hooks, Made
from pointsman.engine.pointsman import Pointsman
from pointsman.errors import FAILED, Refusal, Refused
from pointsman.kernel.hook import KINDS, Hook, Kind
from pointsman.kernel.message import TOPICS
from pointsman.kernel.message import named as message
from pointsman.store.outbox import Parked
from pointsman.types import iso

app = typer.Typer(help="Tell others outside what happens: webhooks, Slack, ntfy, CloudEvents.", rich_markup_mode=None)

Url = Annotated[str, options.argument(metavar="URL", help="Where to: https://…, for cloudevents file:///PATH or stdout:.")]
KindOf = Annotated[str, typer.Option("--kind", metavar="KIND", help=f"How: {', '.join(KINDS)}.")]
On = Annotated[
    list[str], options.flag("--on", metavar="TOPIC,…", help=f"Of what: {', '.join(TOPICS)}, or event:NAME for an event that `tells`.")
]
Link = Annotated[str, typer.Option("--link", metavar="URL", help="Where people reach this board, for links in notes.")]
AllowPrivate = Annotated[bool, typer.Option("--allow-private", help="Addresses that are not public are allowed, and http.")]
HookId = Annotated[str, options.argument(metavar="ID", help="The hook's id.")]
AnyHook = Annotated[str | None, options.argument(metavar="[ID]", help="One hook. Default: all of them.")]
Overlap = Annotated[float, typer.Option("--overlap", metavar="SECONDS", help="How long the old secrets go on signing too.")]


@app.command("add")
def add(
    url: Url,
    on: On,
    kind: KindOf = "webhook",
    machine: options.OfMachine = None,
    link: Link = LINK,
    allow_private: AllowPrivate = False,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Tell a receiver of every change from now on. A webhook's secret is shown once, here.

    pointsman hook add https://example.org/hook --on approval_needed,parked --as olga
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    topics = [topic.strip() for words in on for topic in words.split(",") if topic.strip()]
    with opened(config, publish=False) as pm:
        made = pm.add_hook(url, cast(Kind, kind), topics, by=named(config), machine=machine, link=link, allow_private=allow_private)
    _made("added", made, config)


@app.command("list")
def list_(db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Every hook, with how many messages wait for it. Secrets are not shown, nor the paths of URLs."""
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        found, waiting = pm.hooks(), pm.backlogs()
    if config.json:
        output.as_json({"hooks": [_json(hook, waiting.get(hook.id, Backlog())) for hook in found]})
    else:
        rows = [_row(hook, waiting.get(hook.id, Backlog())) for hook in found]
        output.table(("id", "kind", "to", "on", "machine", "waiting", "since", "disabled"), rows)


@app.command("remove")
def remove(id: HookId, name: options.As = None, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Tell a receiver nothing more. What waits for it is dropped."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        hook = pm.remove_hook(id, by=named(config))
    _told(f"removed: hook {hook.id}", {"id": hook.id, "removed": True}, config)


@app.command("rotate")
def rotate(
    id: HookId,
    overlap: Overlap = 86_400,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """A new secret, shown once, here. Messages are signed with the old ones too for a while."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        made = pm.rotate_hook(id, by=named(config), overlap_s=overlap)
    _made("rotated", made, config)


@app.command("test")
def try_(id: HookId, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """Send one message now, from here, and say what became of it."""
    from pointsman.sinks import outlet

    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        hook = _found(pm, id)
    now, sink = wall_clock(), outlet()(hook)
    if sink is None:
        raise Refused(Refusal("invalid", "id: only the program that has this function can call it"))
    answer = sink(hook, message("test", "", now, now, {}), now)
    taken = answer.what == "taken"
    _told("taken" if taken else f"not taken: {answer.why}", {"id": hook.id, "taken": taken, "why": answer.why}, config)
    if not taken:
        raise typer.Exit(FAILED)


@app.command("dead")
def dead(id: AnyHook = None, db: options.Db = None, work: options.Work = None, json: options.Json = None) -> None:
    """What could not be delivered: parked lanes, each with all messages of one hook about one task."""
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        found = [lane for hook in _meant(pm, id) for lane in _dead(pm, hook)]
    if config.json:
        output.as_json({"lanes": [_lane_json(lane) for lane in found]})
    else:
        rows = [(lane.hook, lane.task, lane.waiting, lane.tries, views.when(lane.parked_at), lane.error) for lane in found]
        output.table(("hook", "task", "waiting", "tries", "parked", "why"), rows)


@app.command("redrive")
def redrive(
    id: AnyHook = None, name: options.As = None, db: options.Db = None, work: options.Work = None, json: options.Json = None
) -> None:
    """Begin anew on what could not be delivered, and enable the hook if its receiver had said that it is gone."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        lanes = sum(pm.redrive(hook.id, by=named(config)) for hook in _meant(pm, id))
    _told(f"redriven: {lanes} lanes", {"lanes": lanes}, config)


def _found(pm: Pointsman, id: str) -> Hook:
    for hook in pm.hooks():
        if hook.id == id.lower():
            return hook
    raise Refused(Refusal("unknown_hook", "no hook has this id, or it was removed"))


def _meant(pm: Pointsman, id: str | None) -> Hooks:
    return pm.hooks() if id is None else [_found(pm, id)]


def _dead(pm: Pointsman, hook: Hook) -> list[Parked]:
    found: list[Parked] = []
    while page := pm.dead(hook.id, after=found[-1].task if found else None):
        found += page
    return found


def _made(did: str, made: Made, config: Config) -> None:
    shown = {} if made.secret is None else {"secret": made.secret}
    _told(f"{did}: hook {made.hook.id} to {made.hook.shown}", _json(made.hook, Backlog()) | shown, config)
    if made.secret is not None and not config.json:
        output.line(f"secret, shown this once: {made.secret}")


def _told(text: str, form: dict[str, object], config: Config) -> None:
    if config.json:
        output.as_json(form)
    else:
        output.line(output.visible(text))


def _json(hook: Hook, backlog: Backlog) -> dict[str, object]:
    return {
        "id": hook.id,
        "kind": hook.kind,
        "to": hook.shown,
        "on": list(hook.topics),
        "machine": hook.machine,
        "link": hook.link,
        "allow_private": hook.private,
        "made_by": hook.made_by,
        "made_at": iso(hook.made_at),
        "disabled_at": None if hook.disabled_at is None else iso(hook.disabled_at),
        "waiting": backlog.waiting,
        "oldest": None if backlog.oldest is None else iso(backlog.oldest),
    }


def _row(hook: Hook, backlog: Backlog) -> tuple[object, ...]:
    since = "" if backlog.oldest is None else views.when(backlog.oldest)
    disabled = "" if hook.disabled_at is None else views.when(hook.disabled_at)
    return (hook.id, hook.kind, hook.shown, ", ".join(hook.topics), hook.machine or "", backlog.waiting, since, disabled)


def _lane_json(lane: Parked) -> dict[str, object]:
    return {
        "hook": lane.hook,
        "task": lane.task,
        "waiting": lane.waiting,
        "tries": lane.tries,
        "parked_at": iso(lane.parked_at),
        "why": lane.error,
    }
