"""What `proves` means, and the search that shows it or names a counter-example.

`always(state, event)`: on every path to `state`, `event` comes after the last change of content.

The search runs over (state, somebody owns the task or not, `event` came since content last changed or not). Creation
writes content; so does every step that sets a content field, also one that a failing check sends to `otherwise`; setting
a note or a result does not. An event that itself changes content does not come after that change. Cancelling and lapsing
count as paths. An event gated by nothing but opinions proves nothing: no proof rests on an opinion.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pointsman.errors import Fault
from pointsman.kernel.definition import Definition, Event, Proof
from pointsman.kernel.flow import Step, first, path, search, steps
from pointsman.kernel.rules import Principal, admits


class Place(NamedTuple):
    state: str
    held: bool
    approved: bool


def false_proofs(definition: Definition) -> Iterator[Fault]:
    """A fault for every proof that does not hold. Proofs that name nothing are another fault's business."""
    for proof in definition.proves:
        known = proof.state in definition.state and proof.event in definition.event
        if known and (why := counter(definition, proof)):
            yield Fault("false_proof", f"always({proof.state}, {proof.event}) is false: {why}", "proves", proof.line)


def counter(definition: Definition, proof: Proof) -> str | None:
    """The shortest counter-example in words, or None if the proof holds."""
    if only_opinions(definition, definition.event[proof.event]):
        return f"{proof.event} is gated by an opinion alone, and no proof counts an opinion"
    start = first(definition)
    if start is None:
        return None
    found = search(Place(start, False, False), lambda place: _onward(definition, proof, place))
    end = next((place for place in found if place.state == proof.state and not place.approved), None)
    return None if end is None else "; ".join(_words(path(found, end)))


def only_opinions(definition: Definition, event: Event) -> bool:
    """Whether all that stands before the event is an opinion: its own proposer needs no role and could be its contributor."""
    anybody = Principal("somebody", roles=frozenset())
    open_to_all = admits(event.by, anybody, is_owner=True, is_contributor=True)
    checks = [definition.check[name] for name in event.requires if name in definition.check]
    return open_to_all and bool(checks) and all(check.opinion for check in checks)


def _onward(definition: Definition, proof: Proof, place: Place) -> Iterator[tuple[str, Place]]:
    for step in steps(definition):
        if step.source == place.state and place.held in step.held:
            after = Place(step.target, step.after(place.held), _approved(definition, proof, step, place.approved))
            yield _told(definition, step), after


def _approved(definition: Definition, proof: Proof, step: Step, before: bool) -> bool:
    if any(name in definition.content for name in step.sets):
        return False
    return before or (step.event is not None and step.event.name == proof.event)


def _told(definition: Definition, step: Step) -> str:
    changed = [name for name in step.sets if name in definition.content]
    return step.name + (f" changes {', '.join(changed)}" if changed else "")


def _words(way: list[tuple[str, Place]]) -> Iterator[str]:
    for name, place in way:
        yield f"{name or 'created'} → {place.state}"
