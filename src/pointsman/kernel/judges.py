"""Judges: a JSON Schema compiled into a function that appends to a list what is wrong with a value.

Types are strict: true is not 1, "5" is not 5, 1.0 is not a whole number; a whole number is a number. No message repeats
the value.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from pointsman.kernel.definition import Schema
from pointsman.kernel.ingest import Faults, member
from pointsman.types import task_id

Judge: TypeAlias = Callable[[Any, str, Faults], None]
"""Appends to the list what is wrong with the value at the path."""

_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def compiled(schema: Schema) -> Judge:
    return _Compiler(schema.get("$defs", {})).judge(schema)


class _Compiler:
    """Turns one schema and its `$defs` into judges. A `$ref` is looked up when it is met: models may recur."""

    def __init__(self, defs: Mapping[str, Schema]):
        self.defs = defs
        self.known: dict[str, Judge] = {}

    def judge(self, schema: Schema) -> Judge:
        if "$ref" in schema:
            return self.reference(schema["$ref"])
        if "enum" in schema or "const" in schema:
            return _one_of(_options(schema), self.noun(schema))
        if "anyOf" in schema or "oneOf" in schema:
            return self.union(schema)
        match schema.get("type"):
            case None:
                return _anything
            case "string":
                return _string(schema)
            case "integer" | "number":
                return _number(schema, self.noun(schema))
            case "array":
                return self.array(schema)
            case "object":
                return self.object(schema)
            case kind:
                return _plain(bool if kind == "boolean" else type(None), self.noun(schema))

    def reference(self, ref: str) -> Judge:
        name = ref.removeprefix("#/$defs/")

        def judge(value: Any, path: str, out: Faults) -> None:
            if name not in self.known:
                self.known[name] = self.judge(self.defs[name])
            self.known[name](value, path, out)

        return judge

    def union(self, schema: Schema) -> Judge:
        """The first alternative that fits. If none does but one alone has the value's JSON type, its faults are told."""
        options: list[Schema] = schema.get("anyOf") or schema["oneOf"]
        judges = [(self.judge(option), self.types(option)) for option in options]
        noun = self.noun(schema)

        def judge(value: Any, path: str, out: Faults) -> None:
            near: list[Faults] = []
            for alternative, types in judges:
                found: Faults = []
                alternative(value, path, found)
                if not found:
                    return
                near += [found] if type(value) in types else []
            out.extend(near[0] if len(near) == 1 else [(path, f"must be {noun}")])

        return judge

    def array(self, schema: Schema) -> Judge:
        first = [self.judge(item) for item in schema.get("prefixItems", ())]
        rest = self.judge(schema["items"]) if isinstance(schema.get("items"), Mapping) else _anything
        shortest, longest = schema.get("minItems", 0), schema.get("maxItems", math.inf)

        def judge(value: Any, path: str, out: Faults) -> None:
            if not _is(value, list):
                return out.append((path, "must be a list"))
            _count(len(value), shortest, longest, "items", path, out)
            if schema.get("uniqueItems") and _repeats(value):
                out.append((path, "must not hold the same item twice"))
            for index, item in enumerate(value):
                (first[index] if index < len(first) else rest)(item, f"{path}[{index}]", out)
            return None

        return judge

    def object(self, schema: Schema) -> Judge:
        properties = {name: self.judge(part) for name, part in schema.get("properties", {}).items()}
        others: Schema | bool = schema.get("additionalProperties", True)
        other = (_anything if others else _unknown) if isinstance(others, bool) else self.judge(others)
        fewest, most = schema.get("minProperties", 0), schema.get("maxProperties", math.inf)

        def judge(value: Any, path: str, out: Faults) -> None:
            if not _is(value, dict):
                return out.append((path, "must be an object"))
            _count(len(value), fewest, most, "members", path, out)
            out += [(member(path, name), "is required") for name in schema.get("required", ()) if name not in value]
            for name, item in value.items():
                properties.get(name, other)(item, member(path, name), out)
            return None

        return judge

    def noun(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self.noun(self.defs[schema["$ref"].removeprefix("#/$defs/")])
        if "enum" in schema or "const" in schema:
            return "one of " + ", ".join(json.dumps(option) for option in _options(schema))
        if "anyOf" in schema or "oneOf" in schema:
            return " or ".join(dict.fromkeys(self.noun(option) for option in schema.get("anyOf") or schema["oneOf"]))
        return _NOUNS.get(schema.get("type", ""), "JSON")

    def types(self, schema: Schema) -> tuple[type, ...]:
        """The Python types that JSON values of this schema have."""
        if "$ref" in schema:
            return self.types(self.defs[schema["$ref"].removeprefix("#/$defs/")])
        return _TYPES.get(schema.get("type", ""), ())


_NOUNS = {
    "null": "null",
    "boolean": "true or false",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "an object",
}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


def _is(value: Any, kind: type) -> bool:
    """Exactly this type: in Python True is an int."""
    return type(value) is kind


def _anything(value: Any, path: str, out: Faults) -> None:
    pass


def _unknown(value: Any, path: str, out: Faults) -> None:
    out.append((path, "is not a known member"))


def _plain(kind: type, noun: str) -> Judge:
    def judge(value: Any, path: str, out: Faults) -> None:
        if not _is(value, kind):
            out.append((path, f"must be {noun}"))

    return judge


def _options(schema: Schema) -> list[Any]:
    return schema["enum"] if "enum" in schema else [schema["const"]]


def _one_of(options: list[Any], noun: str) -> Judge:
    def judge(value: Any, path: str, out: Faults) -> None:
        if not any(type(value) is type(option) and value == option for option in options):
            out.append((path, f"must be {noun}"))

    return judge


def _string(schema: Schema) -> Judge:
    shortest, longest = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
    told = "must not be blank" if schema.get("pattern") == r"\S" else f"must match {schema.get('pattern')}"
    format_fault = FORMATS.get(schema.get("format", ""))

    def judge(value: Any, path: str, out: Faults) -> None:
        if type(value) is not str:
            return out.append((path, "must be text"))
        _count(len(value), shortest, longest, "characters", path, out)
        if pattern and not pattern.search(value):
            out.append((path, told))
        if format_fault and (message := format_fault(value)):
            out.append((path, message))
        return None

    return judge


def _number(schema: Schema, noun: str) -> Judge:
    types = _TYPES[schema["type"]]
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    step = schema.get("multipleOf")

    def judge(value: Any, path: str, out: Faults) -> None:
        if type(value) not in types or not math.isfinite(value):
            return out.append((path, f"must be {noun}"))
        if value < least:
            out.append((path, f"must be at least {least}"))
        if value > most:
            out.append((path, f"must be at most {most}"))
        if above is not None and value <= above:
            out.append((path, f"must be more than {above}"))
        if below is not None and value >= below:
            out.append((path, f"must be less than {below}"))
        if step is not None and Decimal(repr(value)) % Decimal(repr(step)):
            out.append((path, f"must be a multiple of {step}"))
        return None

    return judge


def _count(n: int, least: float, most: float, of: str, path: str, out: Faults) -> None:
    if n < least:
        out.append((path, f"must have at least {least} {of}"))
    if n > most:
        out.append((path, f"must have at most {most} {of}"))


def _repeats(items: list[Any]) -> bool:
    return any((type(item), item) == (type(other), other) for index, item in enumerate(items) for other in items[:index])


def _moment(text: str) -> str | None:
    """RFC 3339 with an offset, and an instant that UTC can tell."""
    try:
        return None if _MOMENT.fullmatch(text) and datetime.fromisoformat(text).astimezone(UTC) else _NO_MOMENT
    except (ValueError, OverflowError):
        return _NO_MOMENT


_NO_MOMENT = "must be a time with its offset, as in 2026-01-31T12:00:00Z"


def _day(text: str) -> str | None:
    try:
        return None if _DAY.fullmatch(text) and date.fromisoformat(text) else "must be a day, as in 2026-01-31"
    except ValueError:
        return "must be a day, as in 2026-01-31"


def _uuid(text: str) -> str | None:
    try:
        return None if task_id(text) else "must be a UUID"
    except ValueError:
        return "must be a UUID of the form 01234567-89ab-7def-8123-456789abcdef"


FORMATS: Mapping[str, Callable[[str], str | None]] = {"date-time": _moment, "date": _day, "uuid": _uuid}
