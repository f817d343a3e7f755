"""What tests of both stores share: a PostgreSQL server for the whole session, and empty databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import databases
from databases import STORES, PostgresServer


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with databases.running() as server:
        yield server


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, on one store and then on the other."""
    return databases.empty(request.param, tmp_path, request)


@pytest.fixture(scope="module", params=STORES)
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """An empty database for all tests of a module, on one store and then on the other."""
    return databases.empty(request.param, tmp_path_factory.mktemp("shared"), request)
