"""Whether each member of a definition is of its declared kind: the first question, since the others rest on it.

An author writes `timeout="5"` or `name=5` and means something; the machine is not to fail inside the library for it.
"""

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any, cast, get_args, get_type_hints

from pointsman.errors import Fault
from pointsman.kernel.definition import Definition

_NAMED: dict[type, str] = {int: "a whole number (a time is made by seconds, minutes or hours)", str: "text", bool: "True or False"}
_NULL = type(None)


def misfits(definition: Definition) -> Iterator[Fault]:
    """Members of the wrong kind, of the definition and of everything in it."""
    return _misfits(definition, str(definition.name), definition.line)


def _misfits(item: Any, place: str, line: int) -> Iterator[Fault]:
    for name, kinds in _simple(cast(type[Any], type(item))):
        value = getattr(item, name)
        if type(value) not in kinds:
            says = " or ".join(_NAMED[kind] for kind in kinds if kind is not _NULL)
            yield Fault("bad_kind", f"`{name}` must be {says}, and not {type(value).__name__}", place, line)
    for part in _parts(item):
        named = hasattr(part, "name") and hasattr(part, "line")
        yield from _misfits(part, str(part.name) if named else place, part.line if named else line)


@cache
def _simple(kind: type[Any]) -> list[tuple[str, tuple[type, ...]]]:
    """The members that are plain values, each with the types it may have. In Python True is an int; here it is not."""
    hints = get_type_hints(kind)
    wanted = ((item.name, get_args(hints[item.name]) or (hints[item.name],)) for item in fields(kind))
    return [(name, kinds) for name, kinds in wanted if set(kinds) <= {*_NAMED, _NULL}]


def _parts(item: Any) -> Iterator[Any]:
    """What a definition, or a part of it, is made of."""
    for member in fields(item):
        value = getattr(item, member.name)
        for part in cast(tuple[Any, ...], value if isinstance(value, tuple) else (value,)):
            if hasattr(part, "__dataclass_fields__") and part.__class__.__module__ == Definition.__module__:
                yield part
