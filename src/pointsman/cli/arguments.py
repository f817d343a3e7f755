"""`--arg name=value`: text for a field that can hold text, JSON for any other, `@file` for what a file holds.

What does not parse as JSON is passed on as text, so that the engine, not the command line, says what is wrong with it.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pointsman.errors import invalid
from pointsman.kernel.definition import Definition, Schema
from pointsman.types import Fields, Json


def arguments(given: Sequence[str] | None, definition: Definition | None) -> Fields:
    """Every `name=value`, read by the type that the machine's field of that name has."""
    values: Fields = {}
    for item in given or ():
        name, equals, text = item.partition("=")
        if not equals or not name:
            raise invalid(("--arg", "write it as name=value"))
        if name in values:
            raise invalid((f"--arg {name}", "given twice"))
        field = definition.field.get(name) if definition else None
        values[name] = value(_read(name, text), field.schema if field else {})
    return values


def value(text: str, schema: Schema) -> Json:
    """Text as it stands where text is possible; else the JSON it spells, with unique keys and finite numbers."""
    if holds_text(schema):
        return text
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return text


def holds_text(schema: Schema) -> bool:
    kinds = schema.get("type")
    if kinds == "string" or (isinstance(kinds, list) and "string" in kinds):
        return True
    return any(holds_text(choice) for word in ("anyOf", "oneOf") for choice in schema.get(word, ()))


def _read(name: str, text: str) -> str:
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text
    try:
        return sys.stdin.read() if text == "@-" else Path(text[1:]).read_bytes().decode()
    except UnicodeDecodeError as exc:
        raise invalid((f"--arg {name}", f"{text[1:]} is not UTF-8 text")) from exc
    except OSError as exc:
        raise invalid((f"--arg {name}", f"cannot read {text[1:]}: {exc.strerror}")) from exc


def _no_constant(_: str) -> Json:
    raise ValueError("JSON numbers are finite")


def _unique(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    if len(values := dict(pairs)) < len(pairs):
        raise ValueError("JSON keys are unique")
    return values
