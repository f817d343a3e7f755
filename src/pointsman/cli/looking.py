"""`pointsman task list`, `show`, `history` and `wait`: read tasks as they are, as they were, and as they move."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import typer

from pointsman.app import opened
from pointsman.cli import options, output, paging, views
from pointsman.config import Config, settings
from pointsman.engine.brief import in_words
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.queries import Entry
from pointsman.engine.views import resumed_json, task_json
from pointsman.errors import FAILED, Refusal, Refused, invalid, refusal_from
from pointsman.kernel.task import Task

LAST = 100
PATIENCE_S = 3600.0

State = Annotated[list[str] | None, options.flag("--state", metavar="STATE", help="Only tasks in this state; repeatable.")]
Until = Annotated[list[str] | None, options.flag("--state", metavar="STATE", help="Until it is in this state; repeatable.")]
Owner = Annotated[str | None, options.flag("--owner", metavar="NAME", help="Only tasks that NAME owns.")]
Tag = Annotated[str | None, options.flag("--tag", metavar="NAME", help="Only tasks with this tag.")]
Open = Annotated[bool, typer.Option("--open", help="Only tasks that are not in a final state.")]
Words = Annotated[str | None, options.flag("--q", metavar="WORDS", help="Only tasks with all these words in their text fields.")]
At = Annotated[
    str | None, options.flag("--at", metavar="TIME|#N", help="As of a time such as 2026-01-31T12:00:00Z, or of feed number N (quote it).")
]
Order = Annotated[
    Literal["created_at", "updated_at", "priority"], typer.Option("--order", metavar="BY", help="created_at, updated_at or priority.")
]
Version = Annotated[int | None, options.flag("--version", metavar="N", help="The task as it was at this version.")]
Beyond = Annotated[int | None, options.flag("--version", metavar="N", help="Until it is beyond this version. Default: the one it has.")]
HistoryId = Annotated[str | None, options.argument(metavar="ID", help="Default: the whole board, its last 100 entries.")]
WaitId = Annotated[str | None, options.argument(metavar="ID", help="The task's id.")]
Proposal = Annotated[str | None, options.flag("--proposal", metavar="ID", help="A proposal, by the id that evidence_pending told.")]
Timeout = Annotated[float, typer.Option("--timeout", min=0, metavar="S", help="Seconds to wait at most.")]


def list_(
    open: Open = False,
    state: State = None,
    owner: Owner = None,
    tag: Tag = None,
    q: Words = None,
    at: At = None,
    machine: options.OfMachine = None,
    order: Order = "created_at",
    limit: options.Limit = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """List tasks, oldest first. With --at the board as it was, which never changes any more.

    pointsman task list --open --at '#57'
    """
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        wanted = partial(pm.list, machine=machine, state=state or None, owner=owner, tag=tag, open=open, q=q, order=order, at=at)
        tasks, machines = list(paging.tasks(wanted, limit)), pm.machines
    if config.json:
        output.as_json({"tasks": [task_json(task) for task in tasks]})
    else:
        views.board(tasks, machines)


def show(
    id: options.TaskId,
    version: Version = None,
    at: At = None,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Show a task: its fields and evidence, the digest to name in a decision, what can happen next and who can ask for it.

    With --version or --at as it was then.
    """
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        task = pm.get(id, version=version, at=at, by=config.name)
        definition = pm.machines.get(task.machine)
    if config.json:
        output.as_json(task_json(task))
    else:
        views.task(task, definition, asked_by=config.name, past=version is not None or at is not None)


def history(
    id: HistoryId = None,
    limit: options.Limit = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Show who did what and when: one task oldest first, or without ID the whole board, newest first.

    The first column of the board is the feed number, which `task list --at` and `task show --at` take as '#N'.
    """
    config = settings(db=db, work=work, json=json)
    with opened(config, publish=False) as pm:
        entries = pm.history(id, n=limit) if id else list(paging.entries(_board(pm), LAST if limit is None else limit))
    if config.json:
        output.as_json({"entries": [entry.as_json() for entry in entries]})
    else:
        views.history(entries, whole_board=id is None)


def _board(pm: Pointsman) -> Callable[[int | None, int], list[Entry]]:
    return lambda before, limit: pm.history(n=limit, before=before)


def wait(
    id: WaitId = None,
    version: Beyond = None,
    state: Until = None,
    proposal: Proposal = None,
    timeout: Timeout = PATIENCE_S,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Wait until a task has moved, or with --state until it is there; or until a proposal is settled.

    Prints where the task then stands. Exit status 1 at the timeout. A proposal ends as its proposer would have been
    answered: 0 when it was accepted, 3 when it was refused or is still pending. One whose process died is taken up here.
    """
    config = settings(db=db, work=work, json=json)
    if (id is None) == (proposal is None):
        raise invalid(("ID", "name a task, or a proposal with --proposal"))
    with opened(config, publish=False, duties=proposal is not None) as pm:
        there, task = _moved(pm, id, version, state, timeout) if id else (True, _settled(pm, str(proposal), timeout))
    _waited(config, task, there=there)


def _moved(pm: Pointsman, id: str, version: int | None, states: list[str] | None, timeout: float) -> tuple[bool, Task]:
    """Whether what was waited for came, and the task."""
    before = pm.get(id).version if version is None and not states else version
    task = pm.wait(id, version=before, states=states or None, timeout_s=timeout)
    return (before is not None and task.version > before) or task.state in (states or ()), task


def _settled(pm: Pointsman, id: str, timeout: float) -> Task:
    """The task as an accepted proposal left it; whatever else became of the proposal is Refused."""
    proposed = pm.proposal(id, wait_s=timeout)
    if proposed.version is not None:
        return pm.get(proposed.task, version=proposed.version)
    if proposed.refusal is not None:
        raise Refused(refusal_from(proposed.refusal))
    if proposed.status == "pending":
        detail = "a required check is still running; the proposal goes on, ask for it by its id"
        raise Refused(Refusal("evidence_pending", detail, task=proposed.task, extra={"proposal": id}))
    raise Refused(Refusal("stale_content", "a newer proposal for this task superseded this one", task=proposed.task))


def _waited(config: Config, task: Task, *, there: bool) -> None:
    if config.json:
        output.as_json(task_json(task))
    else:
        output.line(f"{'now' if there else 'still waiting'}: {views.summary(task)}")
    if not there:
        raise typer.Exit(FAILED)


def resume(
    id: options.TaskId,
    name: options.As = None,
    db: options.Db = None,
    work: options.Work = None,
    json: options.Json = None,
) -> None:
    """Show how far a task is: operations that are finished, in doubt and to be done, the last checkpoint, notes and deadlines."""
    config = settings(db=db, work=work, json=json, **{"as": name})
    with opened(config, publish=False) as pm:
        found = pm.resume(id, by=config.name)
    if config.json:
        output.as_json(resumed_json(found))
    else:
        for line in in_words(found).split("\n"):
            output.line(output.visible(line))
