"""What somebody needs to go on with a task, in short words: for an agent's context, or a terminal."""

from collections.abc import Iterator

from pointsman.engine.operations import Resumed
from pointsman.kernel.chain import canonical
from pointsman.kernel.operation import Operation, Standing
from pointsman.types import Json, iso

LONGEST = 400
"""So much of a value is shown; all of it is in the JSON."""

_NEXT = {
    "repeatable": "begin it again and do it again",
    "keyed": "begin it again and do it again under its id",
    "lookup": "look first whether the remote has it",
    "ask": "a person with role operator says what happened",
}


def in_words(found: Resumed) -> str:
    """One fact a line."""
    return "\n".join(_lines(found))


def _lines(found: Resumed) -> Iterator[str]:
    task = found.task
    yield f"task {task.id} is {task.state}, version {task.version}, epoch {task.epoch}"
    if task.allowed:
        yield f"open to you: {', '.join(task.allowed)}"
    for item in found.finished:
        yield f"{item.status}: {item.name} (operation {item.id}){_value(item.result)}"
    for item, standing in found.in_doubt:
        yield f"{_doubt(item, standing)}{_value(item.request)}"
    for item in found.pending:
        yield f"to be done: {item.name}{'' if item.kind is None else f', {item.kind}'} ({item.why.replace('_', ' ')})"
    if (last := found.checkpoint) is not None:
        yield f"checkpoint {last.number} of {iso(last.at)}, epoch {last.epoch}{_value(last.data)}"
    for name, note in found.notes.items():
        if note is not None:
            yield f"note {name}{_value(note)}"
    for name, at in found.deadlines.items():
        yield f"until {iso(at)}: {name}"


def _doubt(item: Operation, standing: Standing) -> str:
    said = "under way, by this epoch" if standing == "started" else f"in doubt, {item.kind}: {_NEXT[item.kind]}"
    settles = f", believed not to have arrived from {iso(item.settles_at)} on" if item.kind == "lookup" else ""
    return f"{said}: {item.name} (operation {item.id}, attempt {item.attempt}{settles})"


def _value(value: Json) -> str:
    if value is None:
        return ""
    text = canonical(value)
    return f": {text if len(text) <= LONGEST else f'{text[:LONGEST]}… ({len(text)} characters)'}"
