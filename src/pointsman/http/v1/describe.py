"""`/v1` in the OpenAPI document, drawn from the table of operations and from the definitions of the served machines.

Besides the operation that takes any event, each event of a served machine is shown with what it takes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pointsman.errors import CODES
from pointsman.http.body import BODY_LIMIT
from pointsman.http.guard import HEAD_LIMIT
from pointsman.http.problem import MEDIA_TYPE
from pointsman.http.v1.operation import Answer, Operation
from pointsman.http.v1.parameter import Parameter
from pointsman.http.v1.shapes import COMPONENTS, TEXT, closed, ref
from pointsman.kernel import forms
from pointsman.kernel.definition import Definition, Schema
from pointsman.kernel.forms import DEFS

Document = dict[str, Any]

EVENTS = "/v1/tasks/{id}/events/{event}"
EDGE: Mapping[int, str] = {
    400: "Not one clean HTTP request, or not one JSON text",
    403: "From another machine, through a proxy, or from a page of another origin",
    408: "The request did not arrive in time",
    421: "The Host is not a name of this machine",
    422: "Values that do not fit; `failed` lists every fault with its path",
    431: f"The head is over {HEAD_LIMIT} bytes",
    503: "The store failed, or too many are connected; `outcome`: may something be written",
}
_BY_THE_CONNECTION = (400, 408, 431, 503)
_WITH_BODY: Mapping[int, str] = {413: f"The body is over {BODY_LIMIT} bytes", 415: "The body is not plain application/json"}


def paths(operations: Sequence[Operation], machines: Iterable[Definition]) -> Document:
    described: Document = {}
    for operation in operations:
        described.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
        if operation.path == EVENTS:
            described |= {path: {"post": told} for path, told in _events(operation, list(machines))}
    return described


def components(machines: Iterable[Definition]) -> Document:
    """The schemas that paths refer to: the fixed ones, and those of each event's arguments."""
    found: Document = dict(COMPONENTS)
    for definition in machines:
        for event in definition.events:
            found |= _component(_name(definition, event.name), forms.arguments(definition, event))
    return found


def _operation(operation: Operation) -> Document:
    described: Document = {
        "operationId": f"{operation.method.lower()}{operation.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "summary": operation.summary,
        "parameters": [_parameter(item) for item in operation.parameters],
        "responses": responses(operation),
    }
    if operation.body is not None:
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return described


def responses(operation: Operation) -> Document:
    """Every status that the operation can answer."""
    own = {str(status): _answer(answer) for status, answer in operation.answers.items()}
    said: dict[int, list[str]] = {status: [text] for status, text in EDGE.items()}
    for status, text in _WITH_BODY.items() if operation.body is not None else ():
        said[status] = [text]
    for status, code in sorted(_refusals(operation)):
        said.setdefault(status, []).append(f"`{code}`: {CODES[code].meaning}")
    return own | {str(status): _problem(status, texts) for status, texts in sorted(said.items())}


def _refusals(operation: Operation) -> Iterator[tuple[int, str]]:
    for code in operation.codes:
        yield CODES[code].http, code
        if code == "stale_version" and operation.conditional:
            yield 412, code


def _problem(status: int, texts: list[str]) -> Document:
    """What the connection itself refuses says so before a path is known, and in its own media type."""
    content = {MEDIA_TYPE: {"schema": ref("Problem")}}
    if status in _BY_THE_CONNECTION:
        content["application/json"] = {"schema": closed({"detail": TEXT, "outcome": TEXT}, optional=["outcome"])}
    return {"description": "; ".join(texts), "content": content}


def _answer(answer: Answer) -> Document:
    headers = {name: {"description": said, "schema": {"type": "string"}} for name, said in answer.headers.items()}
    content = {} if answer.schema is None else {"content": {answer.media_type: {"schema": answer.schema}}}
    return {"description": answer.said, **({"headers": headers} if headers else {}), **content}


def _parameter(item: Parameter) -> Document:
    many = item.many and item.where == "query"
    schema = {"type": "array", "items": item.schema} if many else item.schema
    return {"name": item.name, "in": item.where, "required": item.required, "description": item.said, "schema": schema}


def _events(operation: Operation, machines: Sequence[Definition]) -> Iterator[tuple[str, Document]]:
    """One path for each event name; of machines that share it, either's arguments."""
    assert operation.body is not None, "events are proposed with a body"
    for name in dict.fromkeys(event.name for definition in machines for event in definition.events):
        owners = [definition for definition in machines if name in definition.event]
        taken = [ref(_name(definition, name)) for definition in owners]
        body = {**operation.body, "properties": {**operation.body["properties"], "args": taken[0] if len(taken) == 1 else {"anyOf": taken}}}
        described = _operation(operation)
        described["operationId"] = f"propose_{name}"
        described["summary"] = f"Propose {name}, an event of " + ", ".join(definition.name for definition in owners)
        described["parameters"] = [item for item in described["parameters"] if item["name"] != "event"]
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
        yield operation.path.replace("{event}", name), described


def _name(definition: Definition, event: str) -> str:
    return f"{definition.name}.{event}"


def _component(name: str, schema: Schema) -> Document:
    """A schema as a component, its `$defs` as components of their own."""
    own = {word: value for word, value in schema.items() if word != "$defs"}
    defs: Mapping[str, Any] = schema.get("$defs", {})
    return {name: _pointed(own, name)} | {f"{name}.{part}": _pointed(inner, name) for part, inner in defs.items()}


def _pointed(schema: Any, name: str) -> Any:
    if isinstance(schema, list):
        return [_pointed(item, name) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        word: f"#/components/schemas/{name}.{value.removeprefix(DEFS)}"
        if word == "$ref" and isinstance(value, str)
        else _pointed(value, name)
        for word, value in schema.items()
    }
