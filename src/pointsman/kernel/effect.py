"""Declared effects: the request that is built of a task's fields, and what an event lets happen, for whoever decides on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pointsman.kernel.definition import Definition, Effect, Event, Kind
from pointsman.kernel.task import Task
from pointsman.types import Json


def built(effect: Effect, task: Task) -> dict[str, Json]:
    """The request of a declared effect: exactly these fields of the task."""
    return {name: task.fields[name] for name in effect.request}


@dataclass(frozen=True, slots=True)
class Allowed:
    """What an event lets a task's owner do to the outside; with no event it may be done now. `given` are the fields of the request
    that whoever proposes the event gives with it, so that nobody knows them yet."""

    event: str | None
    effect: str
    kind: Kind
    request: Mapping[str, Json]
    given: tuple[str, ...]
    undoable: bool

    def as_json(self) -> dict[str, Json]:
        plain = {name: getattr(self, name) for name in ("event", "effect", "kind", "undoable")}
        return {**plain, "request": dict(self.request), "given": list(self.given)}


def allowed(definition: Definition, task: Task) -> Iterator[Allowed]:
    """What may be done now, then what each event that leaves this state lets happen that may not be done now."""
    yield from (_allowed(None, effect, task) for effect in definition.effects if task.state in effect.during)
    for event in definition.events:
        target = event.target(task.state)
        new = (effect for effect in definition.effects if target in effect.during and task.state not in effect.during)
        yield from (_allowed(event, effect, task) for effect in new)


def _allowed(event: Event | None, effect: Effect, task: Task) -> Allowed:
    sets = set[str]() if event is None else {setting.field for setting in event.sets}
    known = {name: value for name, value in built(effect, task).items() if name not in sets}
    given = tuple(name for name in effect.request if name in sets)
    return Allowed(None if event is None else event.name, effect.name, effect.kind, known, given, effect.undo is not None)
