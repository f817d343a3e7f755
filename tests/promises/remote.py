"""A remote that does what it is asked to, in a process of its own with a durable book of its own, which is the judge of what was done.

It knows no tasks and no Pointsman. Whoever asks it to `act` is served as often as it asks, unless it says `once`: then what it
did under an operation's id it does not do again, and answers what it answered. `find` tells whether it did something under an id.

    with running(folder) as remote:
        remote.act("op-1", {"amount": 12}, once=True)    # → its receipt, a number
        remote.find("op-1")                              # → that receipt, or None
        book(folder)                                     # → [{"id": "op-1", "request": {"amount": 12}, "receipt": 1}]
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any

BOOK = "book.jsonl"
PATIENCE_S = 20


@dataclass(frozen=True, slots=True)
class Remote:
    """Where it listens. A call has a connection of its own, and raises OSError when it is not answered."""

    port: int

    def act(self, id: str, request: Any, *, once: bool = False, late_s: float = 0.0, sent: Callable[[], None] = lambda: None) -> int:
        """Do something; its receipt. `late_s` is how long it is on its way, `sent` is called when it has left and nothing has come back."""
        return self._ask({"do": "act", "id": id, "request": request, "once": once, "late_s": late_s}, sent)

    def find(self, id: str) -> int | None:
        """The receipt of what was done first under an id."""
        return self._ask({"do": "find", "id": id})

    def _ask(self, question: dict[str, Any], sent: Callable[[], None] = lambda: None) -> Any:
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_S) as line:
            line.sendall(json.dumps(question).encode() + b"\n")
            sent()
            with line.makefile() as answers:
                answer = answers.readline()
        if not answer:
            raise ConnectionError("the remote hung up")
        return json.loads(answer)


def book(folder: Path) -> list[dict[str, Any]]:
    """What was done, in order."""
    return [json.loads(line) for line in (folder / BOOK).read_text().splitlines()]


def times(folder: Path) -> Counter[str]:
    """How often something was done under each id."""
    return Counter(line["id"] for line in book(folder))


@contextmanager
def running(folder: Path) -> Iterator[Remote]:
    """A remote that keeps its book in a folder."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen([sys.executable, __file__, str(folder)], stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        yield Remote(int(process.stdout.readline()))
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


class _Book:
    """What was done is on disk before it is told."""

    def __init__(self, folder: Path):
        self._file = os.open(folder / BOOK, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._lock = threading.Lock()
        self._first: dict[str, int] = {}
        self._count = 0

    def act(self, id: str, request: Any, *, once: bool) -> int:
        with self._lock:
            if once and id in self._first:
                return self._first[id]
            self._count += 1
            os.write(self._file, (json.dumps({"id": id, "request": request, "receipt": self._count}) + "\n").encode())
            os.fsync(self._file)
            self._first.setdefault(id, self._count)
            return self._count

    def find(self, id: str) -> int | None:
        with self._lock:
            return self._first.get(id)


def _serve(folder: Path) -> None:
    kept = _Book(folder)

    class Desk(StreamRequestHandler):
        def handle(self) -> None:
            asked = json.loads(self.rfile.readline())
            if asked["do"] == "find":
                answer = kept.find(asked["id"])
            else:
                threading.Event().wait(asked["late_s"])
                answer = kept.act(asked["id"], asked["request"], once=asked["once"])
            self.wfile.write(json.dumps(answer).encode() + b"\n")

    class Server(ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Whoever asked is dead."""

    with Server(("127.0.0.1", 0), Desk) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
