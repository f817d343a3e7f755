"""Messages: what an accepted step tells the outside. They say that something happened and where to look, and hold none of the
task's own words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pointsman.kernel.chain import canonical, digest
from pointsman.kernel.definition import Definition
from pointsman.kernel.steps import Accept
from pointsman.kernel.task import Task
from pointsman.types import Instant, Json, iso

TOPICS: Mapping[str, str] = {
    "approval_needed": "somebody has to decide on a task",
    "deadline_near": "a deadline has reminded or escalated, or its event was refused",
    "in_doubt": "a task has a new owner, over operations that nobody settled",
    "parked": "a task was taken out of work until an operator unparks it",
    "override": "an override was taken",
    "check_error": "a check ended in an error and said neither yes nor no",
}
EVENT = "event:"
"""A topic may also be `event:NAME`: an event whose author gave it words to tell."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `body` is the JSON text that is sent, the same at every try."""

    id: str
    topic: str
    task: str
    version: int
    body: str
    at: Instant


def told(definition: Definition, before: Task | None, accept: Accept) -> tuple[Message, ...]:
    """What a step tells. Its ids follow from the step, so that the same step never tells under another one."""
    return tuple(_message(definition, accept, topic, members) for topic, members in _topics(definition, before, accept))


def _topics(definition: Definition, before: Task | None, accept: Accept) -> Iterator[tuple[str, dict[str, Json]]]:
    after = accept.after
    if after.state in definition.judged and (before is None or (before.state, before.revision) != (after.state, after.revision)):
        yield "approval_needed", {}
    if accept.kind == "deadline" and accept.from_state == after.state:
        yield "deadline_near", {}
    if accept.kind == "acquire" and after.begun:
        yield "in_doubt", {"operations": [item.id for item in after.begun]}
    if after.parked is not None and (before is None or before.parked is None):
        yield "parked", {}
    if failed := _errors(before, after):
        yield "check_error", {"checks": list(failed)}
    event = definition.event.get(accept.event)
    if event is not None and event.tells is not None and accept.takes:
        yield f"{EVENT}{event.name}", {"words": event.tells}


def _errors(before: Task | None, after: Task) -> list[str]:
    """The checks that ended in an error by this step."""
    if before is not None and before.evidence is after.evidence:
        return []
    failed = {name: found for name, found in after.evidence.items() if found.status == "error"}
    return [name for name, found in failed.items() if before is None or before.evidence.get(name) != found]


def _message(definition: Definition, accept: Accept, topic: str, members: dict[str, Json]) -> Message:
    after = accept.after
    data: dict[str, Json] = {
        "task": after.id,
        "machine": definition.name,
        "version": after.version,
        "event": accept.event,
        "from": accept.from_state,
        "state": after.state,
        "revision": after.revision,
        "digest": after.digest,
        **members,
    }
    return named(topic, after.id, after.version, after.updated_at, data)


def named(topic: str, task: str, version: int, at: Instant, data: dict[str, Json]) -> Message:
    """A message under the id that follows from what it tells of."""
    name = "msg_" + digest("message", [topic, task, version])[-32:]
    body: dict[str, Json] = {"type": f"pointsman.{topic}", "timestamp": iso(at), "data": data}
    return Message(name, topic, task, version, canonical(body), at)
