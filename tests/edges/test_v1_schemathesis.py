"""Requests drawn from the OpenAPI document of `/v1`, fitting and unfitting: every answer has a status, a media type and a
shape that it documents, and none is our own fault."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from edges.v1_world import board
from pointsman import Tasks
from pointsman.http.v1.describe import EVENTS
from pointsman.http.v1.table import OPERATIONS

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance, unsupported_method]
TABLE = [(operation.method, operation.path) for operation in OPERATIONS if operation.path != "/v1/feed"]
OWN = [("POST", EVENTS.replace("{event}", event)) for event in Tasks.definition.event]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[schemathesis.BaseSchema, list[dict[str, Any]]]]:
    """The document, and tasks in every state for requests to meet."""
    with board(tmp_path_factory.mktemp("schemathesis")) as at:
        tasks = [at.bring(state) for state in ("queued", "claimed", "drafting", "awaiting_approval", "approved", "done")]
        yield schemathesis.openapi.from_asgi("/openapi.json", from_this_machine(at.api)), tasks


def from_this_machine(api: Any) -> Any:
    """The application, called as by a program beside it: the test client names neither host nor address as one would."""

    async def called(scope: Any, receive: Any, send: Any) -> None:
        headers = [(name, value) for name, value in scope.get("headers", ()) if name != b"host"]
        await api({**scope, "client": ("127.0.0.1", 1), "headers": [(b"host", b"127.0.0.1"), *headers]}, receive, send)

    return called


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["fitting", "unfitting"])
@pytest.mark.parametrize(("method", "path"), TABLE + OWN)
def test_every_answer_is_documented(known: Any, method: str, path: str, mode: GenerationMode) -> None:
    schema, tasks = known
    checks = CHECKS if mode == GenerationMode.POSITIVE else [*CHECKS, negative_data_rejection]
    place = iter(range(10_000))

    @given(case=schema[path][method].as_strategy(mode))
    @settings(max_examples=12, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def answers(case: schemathesis.Case) -> None:
        n = next(place)
        if mode == GenerationMode.POSITIVE and "/tasks/{id}" in path and n % 2:
            case.path_parameters["id"] = tasks[n % len(tasks)]["id"]
        if isinstance(case.body, dict) and type(case.body.get("wait_s")) in (int, float) and 0 <= case.body["wait_s"] <= 25:
            case.body["wait_s"] = 0  # a claim is not to wait here
        case.call_and_validate(checks=checks)

    answers()
