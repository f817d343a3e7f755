"""`--arg name=value`: text for a field that can hold text, JSON for any other, `@file` for what a file holds.

What does not parse as JSON is passed on as text, so that the engine, not the command line, says what is wrong with it.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.definition import Definition, Schema
from pointsman.kernel.ingest import TOTAL_BYTES, parse
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


def _beginning(path: Path) -> bytes:
    """As much as may be, and a byte more; a device or a pipe need not end."""
    with path.open("rb") as file:
        return file.read(TOTAL_BYTES + 1)


def _whole(name: str, read: bytes) -> str:
    if len(read) > TOTAL_BYTES:
        raise Refused(Refusal("too_large", f"--arg {name}: more than {TOTAL_BYTES} bytes"))
    return read.decode()


def value(text: str, schema: Schema) -> Json:
    """Text as it stands where text is possible; else the JSON it spells."""
    if holds_text(schema, schema):
        return text
    try:
        return parse(text.encode())
    except (Refused, UnicodeEncodeError):
        return text


def holds_text(schema: Schema, root: Schema) -> bool:
    """Whether some text fits: a string, a choice that has text in it, or a reference to either."""
    if schema.get("type") == "string" or any(isinstance(item, str) for item in schema.get("enum", ())):
        return True
    choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if "$ref" in schema:
        choices.append(root["$defs"][schema["$ref"].rpartition("/")[2]])
    return any(holds_text(choice, root) for choice in choices)


def _read(name: str, text: str) -> str:
    if text.startswith("@@"):
        return text[1:]
    if not text.startswith("@"):
        return text
    try:
        return _whole(name, sys.stdin.buffer.read(TOTAL_BYTES + 1) if text == "@-" else _beginning(Path(text[1:])))
    except UnicodeDecodeError as exc:
        raise invalid((f"--arg {name}", f"{text[1:]} is not UTF-8 text")) from exc
    except OSError as exc:
        raise invalid((f"--arg {name}", f"cannot read {text[1:]}: {exc.strerror}")) from exc
