"""A client of `/v1` over the wire: plain HTTP/1.1 on one keep-alive connection, and a reader of the feed that can be cut."""

import json
import socket
from collections.abc import Iterator
from typing import Any

from acceptance.flat import BRIEF, GOOD, TITLE, Answer, Client
from acceptance.process import Served

FIELDS = {"title": TITLE, "brief": BRIEF}
PATIENCE_S = 30


class Speaker(Client):
    """`by` is the name in Pointsman-As."""

    def ask(self, method: str, path: str, by: str | None = None, /, body: Any = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()} | ({"Pointsman-As": by} if by else {})
        return self.send(method, path, None if body is None else json.dumps(body).encode(), named)

    def told(self, path: str, by: str | None = None) -> Any:
        """A GET that must succeed."""
        answer = self.ask("GET", path, by)
        assert answer.status == 200, answer
        return answer.body

    def create(self, by: str = "ann", /, **headers: str) -> Answer:
        return self.ask("POST", "/v1/tasks", by, {"fields": FIELDS}, **headers)

    def propose(self, id: str, event: str, by: str | None = None, body: Any = None, /, **headers: str) -> Answer:
        return self.ask("POST", f"/v1/tasks/{id}/events/{event}", by, {} if body is None else body, **headers)

    def move(self, id: str, event: str, by: str, /, **body: Any) -> dict[str, Any]:
        """A proposal that must be accepted."""
        answer = self.propose(id, event, by, body)
        assert answer.status == 200, answer
        return answer.body

    def lead(self, state: str) -> dict[str, Any]:
        """A new task of `bob`, led to a state over `/v1`."""
        task = self.create().body
        for event, by in WAY[: STATES.index(state)]:
            guard = {"digest": task["digest"]} if by == "rita" else {"epoch": task["epoch"]} if event != "claim" else {}
            task = self.move(task["id"], event, by, args={"draft": GOOD} if event == "request_approval" else {}, **guard)
        return task


STATES = ("queued", "claimed", "drafting", "awaiting_approval", "approved", "done")
WAY = (("claim", "bob"), ("start_draft", "bob"), ("request_approval", "bob"), ("approve", "rita"), ("complete", "bob"))


class Feed:
    """One connection to the feed. Only events that came whole count, as for any reader of server-sent events."""

    def __init__(self, served: Served, last: int | None = None):
        self.socket = socket.create_connection(("127.0.0.1", served.port), timeout=PATIENCE_S)
        resuming = f"Last-Event-ID: {last}\r\n" if last is not None else ""
        self.socket.sendall(f"GET /v1/feed HTTP/1.1\r\nHost: 127.0.0.1\r\n{resuming}\r\n".encode())
        self.raw, self.text, self.left = b"", b"", 0
        while b"\r\n\r\n" not in self.raw:
            self._more(65_536)
        head, _, self.raw = self.raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head

    def _more(self, size: int) -> None:
        part = self.socket.recv(size)
        if not part:
            raise EOFError
        self.raw += part

    def _payload(self, size: int) -> bytes:
        """What `size` more bytes of the connection hold besides the marks of its chunks."""
        self._more(size)
        found = b""
        while self.raw:
            if self.left == 0:
                mark, end, rest = self.raw.partition(b"\r\n")
                if not end:
                    break
                self.left, self.raw = int(mark, 16), rest
                if self.left == 0:
                    raise EOFError
            part, self.raw = self.raw[: self.left], self.raw[self.left :]
            if len(part) == self.left and not self.raw.startswith(b"\r\n"):
                self.raw = part + self.raw  # its end has not come
                break
            found, self.left = found + part, self.left - len(part)
            self.raw = self.raw[2:] if self.left == 0 else self.raw
        return found

    def events(self, size: int = 65_536) -> Iterator[tuple[int, dict[str, Any]]]:
        """(number, entry) of every event that is whole after `size` more bytes."""
        self.text += self._payload(size)
        *whole, self.text = self.text.split(b"\n\n")
        for block in whole:
            if not block.startswith(b":"):
                members = dict(line.split(": ", 1) for line in block.decode().split("\n"))
                assert members["event"] == "entry"
                yield int(members["id"]), json.loads(members["data"])

    def __enter__(self) -> "Feed":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
