"""The JSON form of a definition: stored, hashed and shown; and a definition that lives only in the database, read back from it."""

from collections.abc import Mapping
from typing import Any

from pointsman.kernel.definition import (
    MAX_CHILDREN,
    MAX_DEPTH,
    Check,
    Computed,
    Definition,
    Effect,
    Event,
    Field,
    Function,
    Judge,
    Limit,
    Proof,
    Retry,
    Schedule,
    Setting,
    State,
)
from pointsman.kernel.rules import Rule, from_json
from pointsman.types import Json


def export(definition: Definition) -> dict[str, Json]:
    """The JSON form: stored, hashed and shown. Lines are left out, so moving code does not change the digest."""
    form: dict[str, Json] = {
        "name": definition.name,
        "version": definition.version,
        "doc": definition.doc,
        "fields": [_plain(item) for item in definition.fields],
        "states": [_plain(item) for item in definition.states],
        "events": [_exported(item, "limits", "tells") for item in definition.events],
        "checks": [_exported(item, "judge") for item in definition.checks],
        "computed": [_plain(item) for item in definition.computed],
        "proves": [_plain(item) for item in definition.proves],
    }
    return form | {name: _plain(getattr(definition, name)) for name in _LATER if getattr(definition, name) != _LATER[name]}


_LATER: Mapping[str, Any] = {"retry": Retry(), "max_children": MAX_CHILDREN, "max_depth": MAX_DEPTH, "schedules": (), "effects": ()}
"""Members that stand in the form only when they say something: other forms, and their digests, are what they were before."""


def restore(form: Mapping[str, Any]) -> Definition:
    """The inverse of `export`, for versions that live only in the database."""
    return Definition(
        name=form["name"],
        version=form["version"],
        doc=form["doc"],
        fields=tuple(Field(**item) for item in form["fields"]),
        states=tuple(State(**item) for item in form["states"]),
        events=tuple(_event(item) for item in form["events"]),
        checks=tuple(_check(item) for item in form["checks"]),
        computed=tuple(_computed(item) for item in form["computed"]),
        proves=tuple(Proof(**item) for item in form["proves"]),
        retry=Retry(**form.get("retry", {})),
        max_children=form.get("max_children", MAX_CHILDREN),
        max_depth=form.get("max_depth", MAX_DEPTH),
        schedules=tuple(Schedule(**item) for item in form.get("schedules", ())),
        effects=tuple(_effect(item) for item in form.get("effects", ())),
    )


def _plain(item: Any) -> Any:
    if isinstance(item, Rule):
        return item.as_json()
    if isinstance(item, tuple | list):
        return [_plain(part) for part in item]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(item, "__dataclass_fields__"):
        return {name: _plain(getattr(item, name)) for name in item.__dataclass_fields__ if name != "line"}
    return item


def _exported(item: Check | Event, *later: str) -> dict[str, Json]:
    """A member that came later stands in the form only where it says something: other forms, and their digests, are what
    they were before it."""
    return {name: value for name, value in _plain(item).items() if name not in later or value}


def _event(item: Mapping[str, Any]) -> Event:
    return Event(
        name=item["name"],
        moves=tuple((source, target) for source, target in item["moves"]),
        by=from_json(item["by"]),
        sets=tuple(Setting(**setting) for setting in item["sets"]),
        requires=tuple(item["requires"]),
        otherwise=item["otherwise"],
        acquires=item["acquires"],
        when=tuple(Function(**guard) for guard in item["when"]),
        tool=item["tool"],
        limits=tuple(Limit(**limit) for limit in item.get("limits", ())),
        tells=item.get("tells"),
    )


def _check(item: Mapping[str, Any]) -> Check:
    reads = tuple((name, bool(nullable)) for name, nullable in item["reads"])
    judge = _judge(item["judge"]) if "judge" in item else None
    members: dict[str, Any] = {**item, "function": Function(**item["function"]), "reads": reads, "judge": judge}
    return Check(**members)


def _judge(item: Mapping[str, Any]) -> Judge:
    members: dict[str, Any] = {**item, "price": item["price"] and tuple(item["price"])}
    return Judge(**members)


def _effect(item: Mapping[str, Any]) -> Effect:
    members: dict[str, Any] = {**item, "during": tuple(item["during"]), "request": tuple(item["request"])}
    return Effect(**members)


def _computed(item: Mapping[str, Any]) -> Computed:
    members: dict[str, Any] = {**item, "function": Function(**item["function"]), "reads": tuple(item["reads"])}
    return Computed(**members)
