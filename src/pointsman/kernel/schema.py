"""Whether JSON values fit the fields of a machine: the subset of JSON Schema that pydantic writes for common types.

The judges of a definition are compiled once and kept, since every proposal meets them.
"""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import lru_cache
from typing import Any

from pointsman.kernel.definition import Definition, Event, Schema
from pointsman.kernel.ingest import LISTED, Faults, member
from pointsman.kernel.ingest import faults as ingest_faults
from pointsman.kernel.judges import FORMATS, Judge, compiled
from pointsman.types import Fields, Json


def faults(schema: Schema, value: Json, path: str) -> Faults:
    """Every fault of one value, as (path, message)."""
    found: Faults = []
    compiled(schema)(value, path, found)
    return found


# ── proposals and creation ───────────────────────────────────────────────────────────────────────────────────────


def arguments(definition: Definition, event: Event, args: Mapping[Any, Json], path: str = "args") -> tuple[Fields, Faults]:
    """What the event is to set, with defaults in place of optional arguments that are absent or null."""
    if not isinstance(args, dict):
        return {}, [(path, "must be an object")]
    found = ingest_faults(args, path)
    judges = _NO_JUDGES if found else _judges(definition)
    named = {setting.field for setting in event.sets}
    found += [(member(path, name), "is not an argument of this event") for name in args if isinstance(name, str) and name not in named]
    values: Fields = {}
    for setting in event.sets:
        value = args.get(setting.field)
        if value is None and not setting.required:
            values[setting.field] = deepcopy(setting.default)
            continue
        values[setting.field] = value
        place = member(path, setting.field)
        if value is None:
            found.append((place, "must not be null" if setting.field in args else "is required"))
        elif setting.field in judges:
            judges[setting.field](value, place, found)
    return values, found[:LISTED]


def initial_fields(definition: Definition, fields: Mapping[Any, Json], path: str = "fields") -> tuple[Fields, Faults]:
    """The fields of a new task. A creator gives only those that no event sets: else one could pre-write what is
    to be judged."""
    if not isinstance(fields, dict):
        return {}, [(path, "must be an object")]
    found = ingest_faults(fields, path)
    judges = _NO_JUDGES if found else _judges(definition)
    found += [(member(path, name), why) for name in fields if isinstance(name, str) and (why := _not_given(definition, name))]
    values: Fields = {}
    for item in definition.fields:
        place = member(path, item.name)
        if item.name not in fields:
            values[item.name] = deepcopy(item.default)
            if item.required:
                found.append((place, "is required"))
            continue
        values[item.name] = fields[item.name]
        if item.name in judges:
            judges[item.name](fields[item.name], place, found)
    return values, found[:LISTED]


_NO_JUDGES: Mapping[str, Judge] = {}


def _not_given(definition: Definition, name: str) -> str | None:
    if name not in definition.field:
        return "is not a field that can be given"
    return "is set by an event, so it cannot be given at creation" if name in definition.settable else None


@lru_cache(maxsize=256)
def _judges(definition: Definition) -> Mapping[str, Judge]:
    return {item.name: compiled(item.schema) for item in definition.fields}


# ── the subset ───────────────────────────────────────────────────────────────────────────────────────────────────

_SAID = {"title", "description", "default", "examples", "deprecated", "discriminator", "readOnly", "writeOnly", "$defs"}
_KEYWORDS = {
    "null": set[str](),
    "boolean": set[str](),
    "string": {"minLength", "maxLength", "pattern", "format"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "array": {"items", "prefixItems", "minItems", "maxItems", "uniqueItems"},
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
}


def unsupported(schema: Schema) -> Iterator[str]:
    """What in a schema would not be judged. A definition that has any of it is refused."""
    kind = schema.get("type")
    known = _SAID | {"type", "enum", "const", "$ref", "anyOf", "oneOf"} | _KEYWORDS.get(kind or "", set())
    yield from (f"keyword {word!r}" for word in schema if word not in known)
    if kind is not None and kind not in _KEYWORDS:
        yield f"type {kind!r}"
    if schema.get("format") not in (None, *FORMATS):
        yield f"format {schema['format']!r}"
    if "pattern" in schema and not _compiles(schema["pattern"]):
        yield "a pattern that Python's re does not take"
    for part in parts(schema):
        yield from unsupported(part)


def parts(schema: Schema) -> Iterator[Schema]:
    """The schemas inside a schema."""
    for word in ("properties", "$defs"):
        yield from schema.get(word, {}).values()
    for word in ("anyOf", "oneOf", "prefixItems"):
        yield from schema.get(word, ())
    yield from (schema[word] for word in ("items", "additionalProperties") if isinstance(schema.get(word), Mapping))


def _compiles(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True


def admits_null(schema: Schema) -> bool:
    return not faults(schema, None, "")
