"""Keep an answer within what a model can read: at most 20 kB of JSON, with a mark where something was cut."""

import json
from collections.abc import Mapping
from typing import Any

LIMIT = 20_000
LADDER = ((8_000, 1_000), (4_000, 400), (2_000, 200), (1_000, 100), (400, 40), (150, 20), (60, 8), (20, 4))
"""(longest text, most members), tried in turn."""

Content = dict[str, Any]


def encode(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def size(content: Mapping[str, Any]) -> int:
    """Bytes of the JSON text."""
    return len(encode(content).encode())


def fit(content: Content) -> Content:
    """The answer whole if it fits, else with its longest texts and lists cut."""
    if size(content) <= LIMIT:
        return content
    return next((less for longest, most in LADDER if size(less := short(content, longest, most)) <= LIMIT), _bare(content))


def short(content: Mapping[str, Any], longest: int, most: int) -> Content:
    """Every text and list cut. `cut` lists the task's fields that were, with where to read on."""
    reads_on = {
        name: {"offset": longest, "characters": len(text)}
        for name, value in content.get("fields", {}).items()
        if len(text := as_text(value)) > longest and (isinstance(value, str) or _cut(value, longest, most) != value)
    }
    less = {name: _cut(value, longest, most) for name, value in content.items() if name not in ("fields", "cut")}
    fields = {name: _cut(value, longest, most, name) for name, value in content.get("fields", {}).items()}
    return {**less, **({"fields": fields} if "fields" in content else {}), **({"cut": reads_on} if reads_on else {})}


def as_text(value: Any) -> str:
    """A field as it is read on: text as it stands, anything else as its JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(value: Any, longest: int, most: int, field: str | None = None) -> Any:
    match value:
        case str() if len(value) > longest:
            more = f"; get_task with field {field} and offset {longest} reads on" if field else ""
            return f"{value[:longest]} …[cut: {longest} of {len(value)} characters{more}]"
        case list():
            return [_cut(item, longest, most) for item in value[:most]]
        case dict():
            return {name: _cut(item, longest, most) for name, item in list(value.items())[:most]}
        case _:
            return value


def _bare(content: Content) -> Content:
    """What is left when even short texts are too many: the plain members."""
    return {name: value for name, value in content.items() if value is None or isinstance(value, bool | int | str)}


def part(text: str, offset: int, around: Content, field: str) -> Content:
    """`around` with as much of the text from `offset` on as fits."""
    length = LIMIT
    while True:
        end = min(offset + length, len(text))
        rest = {"cut": {field: {"offset": end, "characters": len(text)}}} if end < len(text) else {}
        content = {**around, "fields": {field: text[offset:end]}, **rest}
        if size(content) <= LIMIT:
            return content
        length = length * 3 // 4
