"""One server process for all tests that mind only their own tasks; `fresh` is a process and an empty board of one's own.
Either is there on one store and then on the other."""

from collections.abc import Iterator

import pytest

import databases
from acceptance.flat import Client
from acceptance.process import Served, running
from databases import STORES


@pytest.fixture(scope="session", params=STORES)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with running(databases.empty(request.param, tmp_path_factory.mktemp("shared"), request)) as process:
        yield process


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as speaking:
        yield speaking


@pytest.fixture
def fresh_served(url: str) -> Iterator[Served]:
    with running(url) as process:
        yield process


@pytest.fixture
def fresh(fresh_served: Served) -> Iterator[Client]:
    with Client(fresh_served.url) as speaking:
        yield speaking
