"""What a task waits for, computed for whoever reads it: nothing here is stored, and no rule asks it.

final, parked, or held under a live lease → it waits for nothing that is told here
dependency  other tasks are to be done first
children  it waits for its parts
time      it may not be claimed before its time to run
owner     somebody is to take it, or whoever has it is to go on
decision  somebody is to say yes or no, or to ask for another event
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pointsman.kernel.definition import Definition, Event
from pointsman.kernel.flow import satisfiable
from pointsman.kernel.graph import Upstream, waits
from pointsman.kernel.rules import says
from pointsman.kernel.task import Cause, Task, Waiting
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class _Open:
    """The events that lead on: those that acquire, and those that somebody can ask for who does not own the task."""

    acquiring: list[Event]
    others: list[Event]


def waiting(definition: Definition, task: Task, now: Instant, upstreams: Sequence[Upstream] = ()) -> Waiting | None:
    """`who` is the rule of those who can bring the task on, in words, or the tasks that can; `satisfiable` is false when
    nobody can. `upstreams` are those that are not settled."""
    state = definition.state[task.state]
    if state.final or task.parked is not None or (task.lease is not None and task.lease.live):
        return None
    if found := waits(task, upstreams):
        return Waiting(found.kind, ", ".join(found.who) or None, found.since, task.deadline, found.satisfiable)
    there = _open(definition, task)
    if task.run_at is not None and now < task.run_at and there.acquiring:
        return _told(task, "time", None, satisfiable=True)
    if there.acquiring and (task.owner is None or task.lapsed):
        return _told(task, "owner", _words(there.acquiring), satisfiable=True)
    if there.others:
        return _told(task, "decision", _words(there.others), satisfiable=True)
    due = task.deadline is not None and state.on_deadline in definition.event
    return _told(task, "owner", task.owner, satisfiable=due or task.owner is not None)


def _open(definition: Definition, task: Task) -> _Open:
    """A lapsed task is taken where it lapses to, which its owner's return would not need."""
    onward = [event for event in definition.events if event.target(task.state) not in (None, task.state) or event.acquires]
    there = [event for event in onward if event.target(task.state) is not None]
    acquiring = [event for event in onward if event.acquires and (task.lapsed or event in there)]
    others = [event for event in there if not event.acquires and satisfiable(event.by, held=False)]
    return _Open(acquiring, [event for event in others if event.decides] or others)


def _words(events: Iterable[Event]) -> str:
    return " or ".join(dict.fromkeys(says(event.by) for event in events))


def _told(task: Task, cause: Cause, who: str | None, *, satisfiable: bool) -> Waiting:
    return Waiting(cause, who, task.since, task.deadline, satisfiable)
