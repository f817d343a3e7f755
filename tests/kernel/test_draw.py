"""The diagram says what the definition says, in one text."""

import re

from pointsman import Tasks
from pointsman.kernel.draw import mermaid
from pointsman.kernel.exported import export, restore


def test_every_move_start_and_end_is_drawn_once() -> None:
    lines = mermaid(Tasks.definition).splitlines()
    assert lines[0] == "stateDiagram-v2"
    moves = [f"{source} --> {target}: {event.name}" for event in Tasks.definition.events for source, target in event.moves]
    ends = ["[*] --> queued", "done --> [*]", "failed --> [*]"]
    refused = ["drafting --> drafting: request_approval, check failed"]
    assert sorted(line.strip() for line in lines[1:]) == sorted(moves + ends + refused)


def test_the_same_definition_is_drawn_the_same() -> None:
    assert mermaid(Tasks.definition) == mermaid(restore(export(Tasks.definition)))


def test_only_plain_names_stand_in_the_diagram() -> None:
    names = re.compile(r"    (\w+|\[\*\]) --> (\w+|\[\*\])(: \w+(, check failed)?)?")
    assert all(names.fullmatch(line) for line in mermaid(Tasks.definition).splitlines()[1:])
