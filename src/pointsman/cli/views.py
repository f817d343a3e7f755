"""Tasks and history as a person reads them."""

from collections.abc import Iterable, Mapping, Sequence

from pointsman.cli import output
from pointsman.engine.queries import Entry
from pointsman.kernel.chain import canonical
from pointsman.kernel.definition import Definition, Event
from pointsman.kernel.effect import Allowed, allowed
from pointsman.kernel.operation import Happened
from pointsman.kernel.rules import says
from pointsman.kernel.task import Task, Waiting
from pointsman.types import Instant, iso

_SHORT = 60


def summary(task: Task) -> str:
    """Where a task stands, in one line."""
    held = f", owner {task.owner}, epoch {task.epoch}" if task.owner else ""
    return output.visible(f"task {task.id} is {task.state}, version {task.version}{held}")


def board(tasks: Sequence[Task], machines: Mapping[str, Definition]) -> None:
    rows = [
        (task.id, task.state, task.owner, task.version, when(task.updated_at), headline(task, machines.get(task.machine))) for task in tasks
    ]
    output.table(("id", "state", "owner", "version", "updated", "about"), rows)


def headline(task: Task, definition: Definition | None) -> str:
    """The first words of a task: its title where it has one, else its first text."""
    texts = [task.fields.get("title"), *(value for _, value in declared(task, definition))]
    text = next((item for item in texts if isinstance(item, str) and item), "")
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"


def declared(task: Task, definition: Definition | None) -> list[tuple[str, object]]:
    """A task's fields in the order of their declaration; those that this process does not know come last."""
    known = [field.name for field in definition.fields if field.name in task.fields] if definition else []
    return [(name, task.fields[name]) for name in [*known, *(name for name in task.fields if name not in known)]]


def task(task: Task, definition: Definition | None, *, asked_by: str | None, past: bool) -> None:
    """A task in full: what it holds, what was found about it, and, of the present, what can happen next."""
    output.pairs(_facts(task))
    output.line()
    output.pairs(declared(task, definition))
    if task.evidence:
        output.line()
        output.table(("check", "status", "reason"), [(name, item.status, item.reason) for name, item in task.evidence.items()], "evidence")
    if definition and not past:
        output.line()
        _next(task, definition, asked_by)
        effects(allowed(definition, task) if definition.version == task.machine_version else ())


def _facts(task: Task) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [
        ("task", task.id),
        ("machine", f"{task.machine}, version {task.machine_version}"),
        ("state", task.state),
        ("version", task.version),
        ("owner", f"{task.owner}, epoch {task.epoch}" if task.owner else "nobody"),
        ("created", f"{when(task.created_at)} by {task.created_by}"),
        ("updated", when(task.updated_at)),
        *_relations(task),
        ("digest", f"{task.digest} (revision {task.revision}; a decision on this content names it with --digest)"),
    ]
    if task.waiting is not None:
        facts.append(("waits for", _awaited(task.waiting)))
    return facts


def _awaited(waiting: Waiting) -> str:
    until = "" if waiting.deadline is None else f", until {when(waiting.deadline)}"
    nobody = "" if waiting.satisfiable else "; nobody can bring it on"
    return f"{waiting.cause}{'' if waiting.who is None else f': {waiting.who}'}, since {when(waiting.since)}{until}{nobody}"


def _relations(task: Task) -> list[tuple[str, object]]:
    """What the task is a part of, what it waits for, and what its parts came to; nothing of what is not there."""
    waits = ", ".join(f"{item.task} (when it fails: {item.on_failure})" for item in task.blocked_by)
    parts = task.children
    counts = "" if parts is None else f"{parts.open} open, {parts.done} done, {parts.failed} failed, {parts.cancelled} cancelled"
    joins = "" if task.joining is None else f"; it waits until {task.joining.rule} of them are done"
    said = [
        ("parked", "" if task.parked is None else f"since {when(task.parked.at)}: {task.parked.reason}"),
        ("parent", task.parent),
        ("made to wait for", waits),
        ("children", f"{counts}{joins}" if counts else ""),
    ]
    return [(name, value) for name, value in said if value]


def _next(task: Task, definition: Definition, asked_by: str | None) -> None:
    """Every event that leaves this state, with who may ask for it: what unblocks the task."""
    events = [event for event in definition.events if task.state in event.sources]
    if not events:
        output.line(f"{task.state} is final: nothing more happens to this task.")
        return
    columns = ["event", "to", "who may ask", "needs check"]
    rows = [[event.name, event.target(task.state), who(event), ", ".join(event.requires)] for event in events]
    if asked_by:
        columns.append(f"open to {asked_by}")
        rows = [[*row, "yes" if row[0] in task.allowed else ""] for row in rows]
    output.table(columns, rows, "next")


def effects(found: Iterable[Allowed]) -> None:
    """What may be done to the outside now, and what each event allows, with the fields that will be sent."""
    rows = [(_allows(item), _call(item), "" if item.undoable else "cannot be undone") for item in found]
    if rows:
        output.line()
        output.pairs([(says, f"{call}{f': {undo}' if undo else ''}") for says, call, undo in rows])


def _allows(item: Allowed) -> str:
    return "open to the owner:" if item.event is None else f"{item.event} allows:"


def _call(item: Allowed) -> str:
    sent = [f"{name}={output.visible(canonical(value))}" for name, value in item.request.items()]
    return f"{item.effect}({', '.join([*sent, *(f'{name}=as given' for name in item.given)])})"


def who(event: Event) -> str:
    return "anyone, while nobody owns it" if event.acquires else says(event.by)


def history(entries: Sequence[Entry], *, whole_board: bool, title: str = "") -> None:
    days = {iso(entry.at)[:10] for entry in entries}
    one_day = output.is_terminal() and len(days) == 1  # then the title says the day and the rows have room
    columns, rows = list(_COLUMNS), [[*_row(entry, one_day)] for entry in entries]
    if whole_board:
        columns = ["feed", "task", *columns]
        rows = [[entry.seq, entry.task, *row] for entry, row in zip(entries, rows, strict=True)]
    output.table(columns, rows, ", ".join(part for part in (title, f"{days.pop()} UTC" if one_day else "") if part))


_COLUMNS = ("v", "at", "event", "state", "by", "door", "note")


def _row(entry: Entry, one_day: bool) -> tuple[object, ...]:
    at = iso(entry.at)[11:19] if one_day else when(entry.at)
    return (entry.version, at, entry.event, entry.to_state, entry.by, entry.door, _note(entry))


def _note(entry: Entry) -> str:
    """What an entry carried besides its move: a reason, what failed, the fields it set."""
    judged = entry.changes.get("evidence", {}) if entry.from_state else {}
    failed = [f"{name}: {item['reason']}" for name, item in judged.items() if item["status"] != "pass"]
    fields = [name for name, value in entry.changes.get("fields", {}).items() if value is not None]
    step = entry.changes.get("operation")
    said = "" if step is None else f"{step['name']}: {step['status'].replace('_', ' ')}"
    return "; ".join(part for part in (entry.reason or "", said, *failed, "set " + ", ".join(fields) if fields else "") if part)


def when(at: Instant) -> str:
    """To the second: the exact time is in the JSON."""
    return iso(at)[:19].replace("T", " ") + "Z"


def happened(report: Happened) -> None:
    """What a cancelled task had done already; nothing where it had done nothing."""
    can = {item.id: "can be undone" for item in report.undoable} | {item.id: "cannot be undone" for item in report.not_undoable}
    rows = [(item.name, "happened", can.get(item.id, ""), item.id) for item in report.happened]
    rows += [(item.name, "in doubt", "", item.id) for item in report.in_doubt]
    if rows:
        output.line()
        output.table(("operation", "", "", "id"), rows)
