"""A raw HTTP/1.1 client: keep-alive sockets, one thread, no library. A ready-made client costs more than the server.

A client is a generator: it yields a request's bytes and is sent (status, body) for it.
"""

import json
import selectors
import socket
import time
from collections.abc import Generator, Mapping
from typing import Any

Answer = tuple[int, bytes]
Client = Generator[bytes, Answer, None]


def post(path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> bytes:
    content = json.dumps(body).encode()
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n{more}\r\n"
    return head.encode() + content


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


class Wire:
    """One connection and the bytes that have come so far."""

    def __init__(self, port: int):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def receive(self) -> Answer | None:
        """Read what is there; the answer when it is whole. Only bodies with a Content-Length are understood."""
        chunk = self.socket.recv(65536)
        if not chunk:
            raise ConnectionError("the server closed the connection")
        self.received += chunk
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return None
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) < length:
            return None
        self.received = body[length:]
        return int(head[9:12]), body[:length]


def ask(port: int, request: bytes) -> Answer:
    """One request on a connection of its own."""
    wire = Wire(port)
    try:
        wire.socket.sendall(request)
        while (answer := wire.receive()) is None:
            pass
        return answer
    finally:
        wire.socket.close()


def drive(port: int, clients: list[Client], seconds: float) -> float:
    """Answers per second over all clients, each on its own connection, for about `seconds`."""
    answers = 0
    with selectors.DefaultSelector() as selector:
        for client in clients:
            wire = Wire(port)
            selector.register(wire.socket, selectors.EVENT_READ, (wire, client))
            wire.socket.sendall(next(client))
        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            for key, _ in selector.select(timeout=1):
                wire, client = key.data
                if (answer := wire.receive()) is not None:
                    answers += 1
                    wire.socket.sendall(client.send(answer))
        took = time.perf_counter() - began
        for key in list(selector.get_map().values()):
            key.data[0].socket.close()
    return answers / took
