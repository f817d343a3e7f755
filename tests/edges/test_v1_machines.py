"""The served machines: what is drawn from them, how many tasks they have, and their events in the OpenAPI document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from edges.v1_world import GOOD, Board, board, refused
from pointsman import Event, Machine, State, Tasks, optional
from pointsman.http.v1.describe import EVENTS
from pointsman.kernel import schema
from pointsman.kernel.draw import mermaid
from pointsman.kernel.exported import export


class Address(BaseModel):
    street: str
    number: int | None = None


class Parcels(Machine, name="parcels"):
    sender: Address
    to: Address | None = None
    label: str | None = None
    packed = State(initial=True)
    sent = State(final=True)
    failed = State(final=True, outcome="failed")
    move = Event(packed >> packed, sets=("to", optional("label", "none")))
    send = Event(packed >> sent)
    fail = Event(packed >> failed)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, Tasks, Parcels) as opened:
        yield opened


def test_a_machine_is_told_whole(at: Board) -> None:
    for state in ("queued", "claimed"):
        task = at.create(machine="tasks").json()
        if state == "claimed":
            at.done(task["id"], "claim", "bob")
    told = at.told("/v1/machines/tasks")
    assert set(told) == {"name", "version", "digest", "definition", "schema", "mermaid", "faults", "warnings", "tasks"}
    assert told["definition"] == _plain(export(Tasks.definition))
    assert (told["mermaid"], told["faults"]) == (mermaid(Tasks.definition), [])
    assert told["warnings"] == []
    assert told["tasks"] == {"1": {"queued": 1, "claimed": 1}}
    assert [machine["name"] for machine in at.told("/v1/machines")["machines"]] == ["tasks", "parcels"]
    refused(at.get("/v1/machines/nonsense"), 404, "unknown_machine")


def _plain(form: Any) -> Any:
    if isinstance(form, tuple | list):
        return [_plain(item) for item in form]
    return {name: _plain(value) for name, value in form.items()} if isinstance(form, dict) else form


def test_the_schemas_of_a_machine_say_what_it_takes(at: Board) -> None:
    drawn = at.told("/v1/machines/tasks")["schema"]
    task = at.create(machine="tasks").json()
    assert schema.faults(drawn["fields"], task["fields"], "") == []
    assert schema.faults(drawn["create"], {"title": "t", "brief": "b"}, "") == []
    assert schema.faults(drawn["create"], {"title": " ", "draft": "d"}, "") != []
    request = drawn["events"]["request_approval"]
    assert schema.faults(request, {"draft": GOOD}, "") == []
    for args in ({}, {"draft": None}, {"draft": 5}, {"draft": GOOD, "x": 1}):
        assert schema.faults(request, args, "") != []
    for args in ({}, {"review_note": None}, {"review_note": "n"}):
        assert schema.faults(drawn["events"]["approve"], args, "") == []


def test_a_schema_that_refers_to_another_stands_by_itself(at: Board) -> None:
    drawn = at.told("/v1/machines/parcels")["schema"]["events"]["move"]
    assert schema.faults(drawn, {"to": {"street": "s"}, "label": None}, "") == []
    for args in ({"label": "l"}, {"to": None}, {"to": {}}, {"to": {"street": "s", "number": "5"}}):
        assert schema.faults(drawn, args, "") != []
    assert list(schema.unsupported(drawn)) == []


def test_the_document_shows_every_event_of_every_served_machine(at: Board) -> None:
    document = at.told("/openapi.json")
    events = {event.name for machine in (Tasks, Parcels) for event in machine.definition.events}
    assert {path.rpartition("/")[2] for path in document["paths"] if path.startswith(EVENTS.removesuffix("{event}"))} == events | {
        "{event}"
    }
    args = _body(document, EVENTS.replace("{event}", "request_approval"))["properties"]["args"]
    assert args == {"$ref": "#/components/schemas/tasks.request_approval"}
    shared = _body(document, EVENTS.replace("{event}", "fail"))["properties"]["args"]
    assert shared == {"anyOf": [{"$ref": "#/components/schemas/tasks.fail"}, {"$ref": "#/components/schemas/parcels.fail"}]}
    assert document["components"]["schemas"]["parcels.move"]["properties"]["to"]["$ref"] == "#/components/schemas/parcels.move.to.Address"
    assert _dangling(document, document) == []


def _body(document: Any, path: str) -> Any:
    return document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]


def _dangling(document: Any, part: Any) -> list[str]:
    """References that lead nowhere."""
    if isinstance(part, list):
        return [name for item in part for name in _dangling(document, item)]
    if not isinstance(part, dict):
        return []
    ref = part.get("$ref")
    missing = [ref] if isinstance(ref, str) and ref.removeprefix("#/components/schemas/") not in document["components"]["schemas"] else []
    return missing + [name for value in part.values() for name in _dangling(document, value)]
