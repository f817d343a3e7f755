"""JSON Schemas drawn from a definition: what a creator gives, what an event takes, and what the fields of a task hold."""

from collections.abc import Iterable
from typing import Any

from pointsman.kernel.definition import Definition, Event, Schema
from pointsman.types import Json

DEFS = "#/$defs/"


def creation(definition: Definition) -> dict[str, Json]:
    """The fields that make a task: those that no event sets."""
    given = [item for item in definition.fields if item.name not in definition.settable]
    return form(((item.name, item.schema) for item in given), (item.name for item in given if item.required))


def arguments(definition: Definition, event: Event) -> dict[str, Json]:
    """What an event takes. Null stands for an optional argument that is absent, and for no other."""
    schemas = {item.field: definition.field[item.field].schema for item in event.sets}
    taken = ((item.field, (_without_null if item.required else _or_null)(schemas[item.field])) for item in event.sets)
    return form(taken, (item.field for item in event.sets if item.required))


def fields(definition: Definition) -> dict[str, Json]:
    """All fields of a task, computed ones too. One that no creator gives is null until an event sets it."""
    stored = ((item.name, _or_null(item.schema) if item.name in definition.settable else item.schema) for item in definition.fields)
    computed = ((item.name, item.schema) for item in definition.computed)
    return form((*stored, *computed), (item.name for item in (*definition.fields, *definition.computed)))


def form(properties: Iterable[tuple[str, Schema]], required: Iterable[str]) -> dict[str, Json]:
    """A closed object. The `$defs` of each property move to the root, under a name that holds the property's."""
    own: dict[str, Json] = {}
    defs: dict[str, Json] = {}
    for name, schema in properties:
        defs |= {f"{name}.{part}": renamed(inner, name) for part, inner in schema.get("$defs", {}).items()}
        own[name] = renamed({word: value for word, value in schema.items() if word != "$defs"}, name)
    whole: dict[str, Json] = {"type": "object", "properties": own, "required": list(required), "additionalProperties": False}
    if defs:
        whole["$defs"] = defs
    return whole


def renamed(schema: Any, name: str) -> Any:
    """A schema whose references name the moved `$defs`."""
    if isinstance(schema, list):
        return [renamed(item, name) for item in schema]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(schema, dict):
        return schema
    return {
        word: f"{DEFS}{name}.{value.removeprefix(DEFS)}" if word == "$ref" and isinstance(value, str) else renamed(value, name)
        for word, value in schema.items()  # pyright: ignore[reportUnknownVariableType]
    }


_NULL = {"type": "null"}


def _or_null(schema: Schema) -> Schema:
    if _NULL in schema.get("anyOf", ()):
        return schema
    outside = {word: schema[word] for word in ("$defs", "default", "description") if word in schema}
    inside = {word: value for word, value in schema.items() if word not in outside}
    return {**outside, "anyOf": [*inside["anyOf"], _NULL] if set(inside) == {"anyOf"} else [inside, _NULL]}


def _without_null(schema: Schema) -> Schema:
    if _NULL not in schema.get("anyOf", ()):
        return schema
    options = [option for option in schema["anyOf"] if option != _NULL]
    rest = {word: value for word, value in schema.items() if word not in ("anyOf", "default")}
    return {**rest, **options[0]} if len(options) == 1 else {**rest, "anyOf": options}
