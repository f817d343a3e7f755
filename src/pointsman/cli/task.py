"""`pointsman task …`: create work, take it, propose events; and, from `looking`, read it and its history."""

from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import holding, looking, options
from pointsman.cli.acting import named, served, told
from pointsman.cli.arguments import arguments
from pointsman.config import settings
from pointsman.errors import Refusal, Refused
from pointsman.kernel.rules import ANONYMOUS, Principal

app = typer.Typer(help="Create tasks, claim them, propose events, read tasks and their history.", rich_markup_mode=None)

Priority = Annotated[int, typer.Option("--priority", metavar="N", help="Higher goes first.")]
Tags = Annotated[list[str] | None, options.flag("--tag", metavar="NAME", help="What the task is called; repeatable.")]
Needs = Annotated[list[str] | None, options.flag("--need", metavar="NAME", help="What a claimer must be able to do; repeatable.")]
RunAt = Annotated[
    str | None, options.flag("--run-at", metavar="TIME", help="Not given to anybody before it, such as 2026-01-31T12:00:00Z.")
]
States = Annotated[
    list[str] | None,
    options.flag("--state", metavar="STATE", help="A task in this state; several: in one of them. Default: one that begins, or lapsed."),
]
WaitSeconds = Annotated[float, options.flag("--wait-s", metavar="S", help="Wait so long for one when none is there.")]
LeaseSeconds = Annotated[
    float | None, options.flag("--lease-s", metavar="S", help="Hold it so long without a call; else the state's time.")
]
DedupeKey = Annotated[
    str | None,
    options.flag(
        "--dedupe-key", metavar="KEY", help="A task that is there under this key is answered, if it was asked for in the same words."
    ),
]
BlockedBy = Annotated[
    list[str] | None,
    options.flag(
        "--blocked-by",
        metavar="ID[:FATE]",
        help="A task to wait for; repeatable. FATE is what its failing means here: block (as if not said), cancel or continue.",
    ),
]
Parent = Annotated[
    str | None, options.flag("--parent", metavar="ID", help="The task that this one is a part of; its owner names the --epoch.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be decided; change nothing and run no check.")]
ClaimId = Annotated[str | None, options.argument(metavar="ID", help="The task to take. Default: the next that waits.")]
Wait = Annotated[
    float | None,
    options.flag("--wait", metavar="S", help="Answer evidence_pending when a check takes longer than S seconds. Default: wait for it."),
]
EventName = Annotated[str, options.argument(metavar="EVENT", help="The event to ask for, such as start_draft.")]


@app.command("create")
def create(
    arg: options.Args = None,
    machine: options.Machine = None,
    priority: Priority = 0,
    tag: Tags = None,
    need: Needs = None,
    run_at: RunAt = None,
    dedupe_key: DedupeKey = None,
    blocked_by: BlockedBy = None,
    parent: Parent = None,
    epoch: options.Epoch = None,
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
        machine = served(pm, machine)
        fields = arguments(arg, pm.machines.get(machine))
        by = config.name or Principal(ANONYMOUS, kind="person", auth="open")
        task = pm.create(
            machine,
            fields,
            by=by,
            priority=priority,
            tags=tag,
            needs=need,
            run_at=run_at,
            dedupe_key=dedupe_key,
            blocked_by=[_dependency(item) for item in blocked_by or ()],
            parent=parent,
            epoch=epoch,
            idempotency_key=idempotency_key,
        )
        told(pm, config, "known" if task.deduped else "created", task)


def _dependency(item: str) -> dict[str, str]:
    """ID or ID:FATE."""
    task, _, fate = item.partition(":")
    return {"task": task, "on_failure": fate or "block"}


@app.command("claim")
def claim(
    id: ClaimId = None,
    name: options.As = None,
    machine: options.Machine = None,
    tag: options.OfTags = None,
    capability: options.Capabilities = None,
    state: States = None,
    wait_s: WaitSeconds = 0,
    lease_s: LeaseSeconds = None,
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
    by = named(config)
    with opened(config) as pm:
        machine = pm.get(id).machine if id else served(pm, machine)
        task = pm.claim(
            machine,
            by=by,
            id=id,
            states=state,
            tags=tag,
            capabilities=capability,
            expect_version=expect_version,
            lease_s=lease_s,
            wait_s=wait_s,
            idempotency_key=idempotency_key,
        )
        if task is None:
            raise Refused(Refusal("nothing_to_claim", f"no task of {machine} waits"))
        told(pm, config, "claimed", task)


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
    wait: Wait = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Ask for an event on a task; the machine decides.

    `pointsman task show ID` lists the events that are open and who may ask for them. An owner names the --epoch its
    claim answered; who approves or rejects names the --digest of the content that was shown. A proposal whose check
    outlives --wait stays, with status 3: a running server finishes it, and `pointsman task wait --proposal` follows it.

    pointsman task propose ID request_approval --as worker-1 --epoch 1 --arg draft=@notes.md
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    by = named(config)
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
            wait_s=wait,
        )
        told(pm, config, f"dry run, nothing changed: {event} would be accepted" if dry_run else f"{event} accepted", task)


app.command("renew", short_help="Hold a task for longer.")(holding.renew)
app.command("release", short_help="Give a task back.")(holding.release)
app.command("cancel", short_help="Take no further step of a task.")(holding.cancel)
app.command("unpark", short_help="Put a parked task back into work.")(holding.unpark)
app.command("list", short_help="List tasks as they are or were.")(looking.list_)
app.command("show", short_help="Show a task in full, and what can happen next.")(looking.show)
app.command("history", short_help="Show who did what and when.")(looking.history)
app.command("resume", short_help="Show how far a task is, to go on with it.")(looking.resume)
app.command("wait", short_help="Wait until a task moves or a proposal is settled.")(looking.wait)
