"""How a task can move: the steps of a definition, and breadth-first search over them.

Guards and checks are taken as answering either way, so that what is shown here holds whatever they say. A rule is
possible when some principal satisfies it; one that needs the owner, only while somebody owns the task; and whoever owns
it is a contributor.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import TypeVar

from pointsman.kernel.definition import Definition, Event
from pointsman.kernel.rules import Rule, leaves

N = TypeVar("N")
Found = Mapping[N, tuple[N | None, str]]
"""Every node met, nearest first, with the node it was reached from and by what."""


@dataclass(frozen=True, slots=True)
class Step:
    """One way to move. `held` says whether somebody must, or must not, own the task before; `holds` whether somebody
    owns it after (None: as before). `event` is None where the name is not that of an event taken in full."""

    name: str
    source: str
    target: str
    event: Event | None = None
    sets: tuple[str, ...] = ()
    held: tuple[bool, ...] = (False, True)
    holds: bool | None = None

    def after(self, held: bool) -> bool:
        return held if self.holds is None else self.holds


def steps(definition: Definition) -> Iterator[Step]:
    """Every step between declared states."""
    for event in definition.events:
        yield from (step for step in _event_steps(definition, event) if {step.source, step.target} <= definition.state.keys())
    for state in definition.states:
        target = lapses_to(definition, state.name)
        if target is not None and target in definition.state:
            yield Step("lapse", state.name, target, held=(True,), holds=False)
        if definition.cancels_to and not state.final:
            yield Step("cancel", state.name, definition.cancels_to)


def _event_steps(definition: Definition, event: Event) -> Iterator[Step]:
    sets = tuple(setting.field for setting in event.sets)
    holds = True if event.acquires else None
    possible = tuple(held for held in (False, True) if satisfiable(event.by, held))
    for source, target in event.moves:
        due = source in definition.state and definition.state[source].on_deadline == event.name
        held = (False, True) if due else possible
        yield Step(event.name, source, target, event, sets, held, holds)
        if event.otherwise:
            yield Step(f"{event.name} (refused by its checks)", source, event.otherwise, None, sets, held)


def lapses_to(definition: Definition, name: str) -> str | None:
    """Where a task goes whose owner lost it in this state; None where nobody holds it under a lease."""
    state = definition.state[name]
    if state.lease is None or state.final:
        return None
    if state.on_lapse == "same":
        return name
    return state.on_lapse or first(definition)


def first(definition: Definition) -> str | None:
    return next((state.name for state in definition.states if state.initial), None)


def search(start: N, onward: Callable[[N], Iterable[tuple[str, N]]]) -> Found[N]:
    """Breadth first, so that the way back from each node is a shortest one."""
    found: dict[N, tuple[N | None, str]] = {start: (None, "")}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for name, after in onward(node):
            if after not in found:
                found[after] = (node, name)
                queue.append(after)
    return found


def path(found: Found[N], node: N) -> list[tuple[str, N]]:
    """The way to a node, as (step, node reached), the start first with an empty step."""
    before, name = found[node]
    return [*(path(found, before) if before is not None else []), (name, node)]


@lru_cache(maxsize=64)
def reachable(definition: Definition) -> frozenset[tuple[str, bool]]:
    """Every (state, held or not) that a task can be in."""
    start = first(definition)
    if start is None:
        return frozenset()
    moves = tuple(steps(definition))

    def onward(node: tuple[str, bool]) -> Iterator[tuple[str, tuple[str, bool]]]:
        state, held = node
        return ((step.name, (step.target, step.after(held))) for step in moves if step.source == state and held in step.held)

    return frozenset(search((start, False), onward))


@lru_cache(maxsize=64)
def _undecided(definition: Definition) -> frozenset[str]:
    """The states that a task can come to without anybody's decision."""
    start = first(definition)
    if start is None:
        return frozenset()
    moves = tuple(step for step in steps(definition) if step.event is None or not step.event.decides)
    return frozenset(search(start, lambda state: ((step.name, step.target) for step in moves if step.source == state)))


def decided(definition: Definition, state: str) -> bool:
    """Whether every way to a state leads past a decision."""
    return state not in _undecided(definition)


def satisfiable(rule: Rule, held: bool) -> bool:
    """Whether some principal satisfies the rule while the task is owned, or not."""
    asked = list(dict.fromkeys(leaf for leaf in leaves(rule) if leaf.op != "anyone"))
    for answers in product((True, False), repeat=len(asked)):
        truth = dict(zip(asked, answers, strict=True))
        if _consistent(truth, held) and _holds(rule, truth):
            return True
    return False


def _consistent(truth: Mapping[Rule, bool], held: bool) -> bool:
    is_owner = truth.get(Rule("owner"), False)
    return not is_owner or (held and truth.get(Rule("contributor"), True))


def _holds(rule: Rule, truth: Mapping[Rule, bool]) -> bool:
    match rule.op:
        case "and":
            return all(_holds(arg, truth) for arg in rule.args)
        case "or":
            return any(_holds(arg, truth) for arg in rule.args)
        case "not":
            return not _holds(rule.args[0], truth)
        case _:
            return truth.get(rule, True)
