"""Warnings: a machine that can be served, but in which work may come to wait for nobody, or rest on an opinion alone."""

from collections.abc import Iterator
from typing import NamedTuple

from pointsman.errors import Fault
from pointsman.kernel.definition import Definition, Event, State
from pointsman.kernel.flow import Step, first, lapses_to, reachable, satisfiable, search, steps
from pointsman.kernel.rules import Principal, admits


def cautions(definition: Definition) -> Iterator[Fault]:
    for state in definition.states:
        if not state.final:
            yield from _lost_owner(definition, state)
            yield from _absent_reviewer(definition, state)
            yield from _idle_deadline(state)
    yield from _opinion_alone(definition)


def _warn(state: State, code: str, message: str) -> Fault:
    return Fault(code, message, state.name, state.line, warning=True)


def _exits(definition: Definition, name: str) -> list[Event]:
    return [event for event in definition.events if event.target(name) not in (None, name)]


def _lost_owner(definition: Definition, state: State) -> Iterator[Fault]:
    """An owner who never comes back must not keep the task for ever."""
    if (state.name, True) not in reachable(definition):
        return
    exits = _exits(definition, state.name)
    if state.lease is None and exits and not any(satisfiable(event.by, held=False) for event in exits):
        yield _warn(state, "lost_owner", "only its owner moves a task on from here, and without a lease nobody else can take it over")
    target = lapses_to(definition, state.name)
    if target and not any(event.acquires and event.target(target) for event in definition.events):
        yield _warn(state, "lost_owner", f"a lapsed task goes to {target}, and no event acquires it there")


def _absent_reviewer(definition: Definition, state: State) -> Iterator[Fault]:
    deciding = [event.name for event in _exits(definition, state.name) if event.decides]
    if deciding and state.deadline is None:
        yield _warn(state, "absent_reviewer", f"a task waits here for {' or '.join(deciding)} without a deadline")


def _idle_deadline(state: State) -> Iterator[Fault]:
    if state.deadline and not state.on_deadline:
        yield _warn(state, "idle_deadline", 'its deadline is only noted: on_deadline may be "remind", "escalate" or an event')


class _Way(NamedTuple):
    state: str
    opinion: bool
    gate: bool


def _opinion_alone(definition: Definition) -> Iterator[Fault]:
    """A path to a successful end on which an opinion was asked, and neither another check nor a decision."""
    start = first(definition)
    if start is None:
        return
    moves = tuple(steps(definition))

    def onward(way: _Way) -> Iterator[tuple[str, _Way]]:
        return ((step.name, _pass(definition, step, way)) for step in moves if step.source == way.state)

    ends = {way.state for way in search(_Way(start, False, False), onward) if way.opinion and not way.gate}
    for state in definition.states:
        if state.final and state.outcome is None and state.name in ends:
            yield _warn(state, "opinion_alone", "a task can come here with an opinion as its only gate")


def _pass(definition: Definition, step: Step, way: _Way) -> _Way:
    if step.event is None:
        return _Way(step.target, way.opinion, way.gate)
    checks = [definition.check[name] for name in step.event.requires if name in definition.check]
    opinion = way.opinion or any(check.opinion for check in checks)
    gate = way.gate or any(not check.opinion for check in checks) or _needs_somebody(step.event)
    return _Way(step.target, opinion, gate)


def _needs_somebody(event: Event) -> bool:
    """Whether its rule keeps out an owner without any role."""
    return not admits(event.by, Principal("somebody", roles=frozenset()), is_owner=True, is_contributor=True)
