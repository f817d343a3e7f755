"""Requests drawn from /openapi.json, fitting and unfitting: every answer has a status and a shape that it documents."""

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
)

from acceptance.flat import Client
from acceptance.process import Served
from pointsman.http.flat import TASKS

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance, negative_data_rejection]
POSTS = [(post.path, "POST") for post in TASKS.posts]
GETS = [(rows.path, "GET") for rows in TASKS.rows] + [(path, "GET") for path in ("/healthz", "/readyz", "/metrics")]


@pytest.fixture(scope="module")
def documented(served: Served) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


@pytest.mark.parametrize(("path", "method"), POSTS + GETS)
def test_requests_that_fit(documented: schemathesis.BaseSchema, path: str, method: str) -> None:
    drawn(documented[path][method], GenerationMode.POSITIVE)


@pytest.mark.parametrize(("path", "method"), [*POSTS, ("/inbox", "GET")])
def test_requests_that_do_not_fit(documented: schemathesis.BaseSchema, path: str, method: str) -> None:
    drawn(documented[path][method], GenerationMode.NEGATIVE)


def drawn(operation: schemathesis.schemas.APIOperation, mode: GenerationMode) -> None:
    @given(case=operation.as_strategy(mode))
    @settings(max_examples=25, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    def answers(case: schemathesis.Case) -> None:
        case.call_and_validate(checks=CHECKS)

    answers()


def test_every_path_is_documented(documented: schemathesis.BaseSchema, client: Client) -> None:
    told = client.send("GET", "/openapi.json").body["paths"]
    flat = {path: methods for path, methods in told.items() if not path.startswith("/v1/")}
    assert {(path, method.upper()) for path, methods in flat.items() for method in methods} == {*POSTS, *GETS}
