"""Who is next in line: the first task that waits and that no hold stops."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pointsman.engine import holding
from pointsman.engine.holding import Holds
from pointsman.engine.registry import Registry
from pointsman.kernel import hold
from pointsman.kernel.definition import Definition
from pointsman.kernel.hold import Aim
from pointsman.kernel.lease import queued
from pointsman.store import holds, tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Queue, Stored, Waiting

Line: TypeAlias = tuple[Queue, int, str]
"""Which queue, of which machine version and state."""
Served: TypeAlias = Mapping[int, Definition]
"""The versions of a machine that can be served here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which task a claim is for: one by id, else the first that waits in these states."""

    machine: str
    task: str | None = None
    states: Sequence[str] | None = None


def first(registry: Registry, tx: Tx, wanted: Wanted) -> tuple[Stored | None, Holds]:
    """The first in line that no hold stops, locked, and the holds as they are."""
    served = {definition.version: definition for definition in registry.servable(tx, wanted.machine)}
    lines = _lines(served.values(), wanted)
    found = tasks.next_in_line(tx, wanted.machine, lines)
    in_use = () if found is None else holds.in_use(tx)
    if found is None or not in_use:
        return found, in_use
    task = found.task
    aim = holding.acquisition(
        served[task.machine_version], task.state, lapsed=task.owner is not None, tags=task.tags, touched=task.updated_at
    )
    admitted, in_use = _admitted(tx, in_use, aim)
    return (found, in_use) if admitted else _beyond(tx, wanted.machine, served, lines, in_use)


def _beyond(tx: Tx, machine: str, served: Served, lines: Sequence[Line], in_use: Holds) -> tuple[Stored | None, Holds]:
    """Past what is held, only looking, to the first that is not. One that somebody is deciding on is waited for when there is
    nothing else: it may be given back."""
    passed = list[tuple[Waiting, Aim]]()
    for waiting in tasks.in_line(tx, machine, lines):
        aim = _aim(served, waiting)
        if hold.stopping(in_use, aim, tx.now):
            continue
        found = tasks.take(tx, waiting)
        if found is None:
            passed.append((waiting, aim))
            continue
        admitted, in_use = _admitted(tx, in_use, aim)
        if admitted:
            return found, in_use
    for waiting, aim in passed:
        found = tasks.take_at_last(tx, waiting)
        admitted, in_use = _admitted(tx, in_use, aim)
        if found is not None and admitted:
            return found, in_use
    return None, in_use


def _admitted(tx: Tx, in_use: Holds, aim: Aim) -> tuple[bool, Holds]:
    """Whether no hold stops it now, and the holds, those that let it go at a rate read under a lock."""
    known = holding.at_pace(tx, in_use, aim, tx.now)
    return hold.stopping(known, aim, tx.now) is None, known


def _aim(served: Served, waiting: Waiting) -> Aim:
    definition = served[waiting.machine_version]
    return holding.acquisition(definition, waiting.state, lapsed=waiting.lapsed, tags=waiting.tags, touched=waiting.updated_at)


def _lines(served: Iterable[Definition], wanted: Wanted) -> list[Line]:
    """In every version: unowned in the initial state, or lapsed on the way back there; or either in the states that were
    asked for."""
    lines = list[Line]()
    for definition in served:
        free, awake = wanted.states or (definition.initial,), wanted.states or {definition.initial: 0, **dict.fromkeys(queued(definition))}
        lines.extend(("claimable", definition.version, state) for state in free)
        lines.extend(("awake", definition.version, state) for state in awake)
    return lines
