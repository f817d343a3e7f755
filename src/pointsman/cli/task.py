"""`pointsman task …`: create work, take it, propose events, read it and its history."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Literal

import typer

from pointsman.app import opened
from pointsman.cli import options, output, views
from pointsman.cli.arguments import arguments
from pointsman.config import Config, settings
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.views import task_json
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.task import Task

_PAGE = 1_000

app = typer.Typer(help="Create tasks, claim them, propose events, read tasks and their history.", rich_markup_mode=None)

State = Annotated[list[str] | None, options.flag("--state", metavar="STATE", help="Only tasks in this state; repeatable.")]
Owner = Annotated[str | None, options.flag("--owner", metavar="NAME", help="Only tasks that NAME owns.")]
Open = Annotated[bool, typer.Option("--open", help="Only tasks that are not in a final state.")]
Order = Annotated[
    Literal["created_at", "updated_at", "priority"], typer.Option("--order", metavar="BY", help="created_at, updated_at or priority.")
]
Version = Annotated[int | None, options.flag("--version", metavar="N", help="The task as it was at this version.")]
Priority = Annotated[int, typer.Option("--priority", metavar="N", help="Higher goes first.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be decided; change nothing and run no check.")]
ClaimId = Annotated[str | None, options.argument(metavar="ID", help="The task to take. Default: the next that waits.")]
HistoryId = Annotated[str | None, options.argument(metavar="ID", help="Default: the whole board, its last 100 entries.")]
EventName = Annotated[str, options.argument(metavar="EVENT", help="The event to ask for, such as start_draft.")]


@app.command("create")
def create(
    arg: options.Args = None,
    machine: options.Machine = None,
    priority: Priority = 0,
    name: options.As = None,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Put a task in the queue.

    pointsman task create --arg title="Release notes" --arg brief="What changed since 2.0"
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        machine = _machine(pm, machine)
        fields = arguments(arg, pm.machines.get(machine))
        by = config.name or Principal(ANONYMOUS, kind="person", auth="open")
        task = pm.create(machine, fields, by=by, priority=priority, idempotency_key=idempotency_key)
        _answer(pm, config, "created", task)


@app.command("claim")
def claim(
    id: ClaimId = None,
    name: options.As = None,
    machine: options.Machine = None,
    expect_version: options.ExpectVersion = None,
    idempotency_key: options.IdempotencyKey = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Take a task: the next that waits, or the one named. Only one claimer gets it.

    The answer holds the epoch: name it with --epoch in what you propose as the owner.
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    by = _name(config)
    with opened(config) as pm:
        machine = pm.get(id).machine if id else _machine(pm, machine)
        task = pm.claim(machine, by=by, id=id, expect_version=expect_version, idempotency_key=idempotency_key)
        if task is None:
            raise Refused(Refusal("nothing_to_claim", f"no task of {machine} waits"))
        _answer(pm, config, "claimed", task)


@app.command("propose")
def propose(
    id: options.TaskId,
    event: EventName,
    arg: options.Args = None,
    name: options.As = None,
    epoch: options.Epoch = None,
    expect_version: options.ExpectVersion = None,
    digest: options.Digest = None,
    idempotency_key: options.IdempotencyKey = None,
    dry_run: DryRun = False,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Ask for an event on a task; the machine decides.

    `pointsman task show ID` lists the events that are open and who may ask for them. An owner names the --epoch its
    claim answered; who approves or rejects names the --digest of the content that was shown.

    pointsman task propose ID request_approval --as worker-1 --epoch 1 --arg draft=@notes.md
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    by = _name(config)
    with opened(config) as pm:
        args = arguments(arg, pm.machines.get(pm.get(id).machine)) if arg else {}
        task = pm.propose(
            id,
            event,
            args,
            by=by,
            epoch=epoch,
            expect_version=expect_version,
            digest=digest,
            idempotency_key=idempotency_key,
            dry_run=dry_run,
        )
        _answer(pm, config, f"dry run, nothing changed: {event} would be accepted" if dry_run else f"{event} accepted", task)


@app.command("list")
def list_(
    open: Open = False,
    state: State = None,
    owner: Owner = None,
    machine: options.OfMachine = None,
    order: Order = "created_at",
    limit: options.Limit = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """List tasks, oldest first."""
    config = settings(db=db, work=work, json=json)
    with opened(config) as pm:
        wanted = partial(pm.list, machine=machine, state=state or None, owner=owner, open=open, order=order)
        tasks = list(pages(wanted, limit))
        if config.json:
            output.as_json({"tasks": [task_json(task) for task in tasks]})
        else:
            views.board(tasks)


@app.command("show", short_help="Show a task in full, and what can happen next.")
def show(
    id: options.TaskId,
    version: Version = None,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Show a task: its fields and evidence, the digest to name in a decision, what can happen next and who can ask for it."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config) as pm:
        task = pm.get(id, version=version, by=config.name)
        definition = pm.machines.get(task.machine)
        if config.json:
            output.as_json(task_json(task))
        else:
            views.task(task, definition, asked_by=config.name)


@app.command("history", short_help="Show who did what and when.")
def history(
    id: HistoryId = None,
    limit: options.Limit = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Show who did what and when: one task oldest first, or without ID the whole board, newest first."""
    config = settings(db=db, work=work, json=json)
    with opened(config) as pm:
        entries = pm.history(id, n=limit)
    if config.json:
        output.as_json({"entries": [entry.as_json() for entry in entries]})
    else:
        views.history(entries, whole_board=id is None)


def pages(wanted: Callable[..., list[Task]], limit: int | None) -> Iterator[Task]:
    """Every task of a list, asked for page by page."""
    last, left = None, limit
    while page := wanted(after=last, limit=_PAGE if left is None else min(left, _PAGE)):
        yield from page
        last, left = page[-1], None if left is None else left - len(page)
        if left == 0:
            return


def _name(config: Config) -> str:
    if config.name is None:
        raise invalid(("--as", 'say who acts: --as NAME, POINTSMAN_AS, or as = "NAME" in pointsman.toml'))
    return config.name


def _machine(pm: Pointsman, named: str | None) -> str:
    if named is None and len(pm.machines) != 1:
        raise invalid(("--machine", f"several machines are served; name one of {', '.join(sorted(pm.machines))}"))
    return named or next(iter(pm.machines))


def _answer(pm: Pointsman, config: Config, did: str, task: Task) -> None:
    if config.json:
        output.as_json(task_json(task))
    else:
        output.line(f"{did}: {views.summary(task)}")
