"""A definition as a Mermaid state diagram, the same text for the same definition."""

from collections.abc import Iterator

from pointsman.kernel.definition import Definition


def mermaid(definition: Definition) -> str:
    """Mermaid `stateDiagram-v2`: solid moves by event, the branch of a failed check marked."""
    return "\n".join(["stateDiagram-v2", *(f"    {line}" for line in _lines(definition))]) + "\n"


def _lines(definition: Definition) -> Iterator[str]:
    yield from (f"[*] --> {state.name}" for state in definition.states if state.initial)
    for event in definition.events:
        for source, target in event.moves:
            yield f"{source} --> {target}: {event.name}"
            if event.otherwise:
                yield f"{source} --> {event.otherwise}: {event.name}, check failed"
    yield from (f"{state.name} --> [*]" for state in definition.states if state.final)
