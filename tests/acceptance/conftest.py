"""One server process for all tests that mind only their own tasks; `fresh` is a process and an empty board of one's own."""

from collections.abc import Iterator

import pytest

from acceptance.flat import Client
from acceptance.process import Served, serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("shared")) as process:
        yield process


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as speaking:
        yield speaking


@pytest.fixture
def fresh_served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("fresh")) as process:
        yield process


@pytest.fixture
def fresh(fresh_served: Served) -> Iterator[Client]:
    with Client(fresh_served.url) as speaking:
        yield speaking
