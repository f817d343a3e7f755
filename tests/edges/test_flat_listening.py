"""Where a server listens: loopback only, on a free port, under a name that its clients can use."""

import socket

import pytest

from pointsman import Refused
from pointsman.http.serve import bind


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.3"])
def test_port_0_is_a_free_one(host: str) -> None:
    with bind(host, 0) as first, bind(host, 0) as second:
        assert first.getsockname()[1] != second.getsockname()[1] != 0
        socket.create_connection(first.getsockname(), timeout=5).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com", "", "127.0.0.1.example.com"])
def test_other_hosts_are_refused_with_what_to_do(host: str) -> None:
    with pytest.raises(Refused, match="pointsman key create") as refused:
        bind(host, 0)
    assert refused.value.code == "invalid"


@pytest.mark.parametrize("port", [-1, 65_536, 70_000, 10**20])
def test_a_port_that_is_none(port: int) -> None:
    with pytest.raises(Refused, match="from 0 to 65535"):
        bind("127.0.0.1", port)


def test_a_port_that_is_taken() -> None:
    with bind("127.0.0.1", 0) as listener, pytest.raises(OSError, match="cannot be listened on"):
        bind("127.0.0.1", listener.getsockname()[1])
