"""The class syntax: a class body is only authoring, and closes into one frozen `Definition` and its functions.

    class Tasks(Machine, name="tasks"): ...
    Tasks.definition, Tasks.functions["check", "mentions_topic", 1]

Every fault of the class comes at once, each with its line, as a `DefinitionError`.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, ClassVar

from pointsman.errors import DefinitionError
from pointsman.kernel.annotations import NonBlank
from pointsman.kernel.close import Functions, close
from pointsman.kernel.definition import MAX_CHILDREN, MAX_DEPTH, Definition, Retry
from pointsman.kernel.faults import faults
from pointsman.kernel.functions import check, computed, guard, judge
from pointsman.kernel.marks import Always, Effect, Event, Limit, Schedule, State, always, field, note, optional, result
from pointsman.kernel.rules import contributor, owner, person, role
from pointsman.kernel.verdict import Verdict
from pointsman.types import hours, minutes, seconds

__all__ = [
    "Always",
    "Effect",
    "Event",
    "Limit",
    "Machine",
    "NonBlank",
    "Retry",
    "Schedule",
    "State",
    "Verdict",
    "always",
    "check",
    "computed",
    "contributor",
    "field",
    "guard",
    "hours",
    "judge",
    "minutes",
    "note",
    "optional",
    "owner",
    "person",
    "result",
    "role",
    "seconds",
]


class Body(dict[str, Any]):
    """The names of a class body as they are written, with their lines. A plain class body forgets the first of two
    equal names."""

    def __init__(self, line: int):
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.repeated: list[tuple[str, int]] = []
        if sys.version_info < (3, 14):  # later, annotations are read when the class stands, and have the line of the class
            super().__setitem__("__annotations__", _Annotations(self))

    def __setitem__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            self.saw(name, name in self, _line(inspect.currentframe()))
        super().__setitem__(name, value)

    def saw(self, name: str, again: bool, line: int) -> None:
        if again:
            self.repeated.append((name, line))
        self.lines.setdefault(name, line)


class _Annotations(dict[str, Any]):
    def __init__(self, body: Body):
        super().__init__()
        self.body = body

    def __setitem__(self, name: str, value: Any) -> None:
        self.body.saw(name, name in self, _line(inspect.currentframe()))
        super().__setitem__(name, value)


def _line(frame: FrameType | None) -> int:
    """The line that called the function of this frame."""
    return frame.f_back.f_lineno if frame and frame.f_back else 0


class MachineType(type):
    @classmethod
    def __prepare__(cls, class_name: str, bases: tuple[type, ...], /, **keywords: Any) -> Body:
        return Body(_line(inspect.currentframe()))

    def __init__(cls, class_name: str, bases: tuple[type, ...], body: Body, /, **keywords: Any):
        super().__init__(class_name, bases, body)
        if bases:
            cls.definition, cls.functions = _closed(cls, bases, body, keywords["name"])


def _closed(cls: type, bases: tuple[type, ...], body: Body, name: str) -> tuple[Definition, Functions]:
    if bases != (Machine,):
        raise TypeError("a machine derives from Machine alone: give the new version or variant a body of its own")
    definition, functions, found = close(cls, body, body.lines, body.repeated, name, body.line)
    found += [item for item in faults(definition) if not item.warning]
    if found:
        raise DefinitionError(name, sorted(found, key=lambda item: item.line))
    return definition, functions


class Machine(metaclass=MachineType):
    """Base of every machine: `class Tasks(Machine, name="tasks")`. Fields are annotations; states, events, checks and
    computed fields are assigned, and schedules; `version` is the author's number; `proves` lists what must hold on every path;
    `retry` says how often work may fail before a task is parked; `max_children` and `max_depth` how many children a task may
    have, and how many parents one above the other."""

    version: ClassVar[int] = 1
    retry: ClassVar[Retry] = Retry()
    max_children: ClassVar[int] = MAX_CHILDREN
    max_depth: ClassVar[int] = MAX_DEPTH
    proves: ClassVar[tuple[Always, ...]] = ()
    definition: ClassVar[Definition]
    functions: ClassVar[Mapping[tuple[str, str, int], Callable[..., Any]]]

    def __init_subclass__(cls, /, *, name: str) -> None:
        super().__init_subclass__()
