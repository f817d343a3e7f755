"""One server process for all tests that mind only their own tasks; `fresh` is a process and an empty board of one's own,
on one store and then on the other."""

from collections.abc import Iterator

import pytest

from acceptance.flat import Client
from acceptance.process import Served, running, serving


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("shared")) as process:
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
