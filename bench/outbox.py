"""How long after its commit a message reaches a receiver outside: a webhook on this machine, told by a running server."""

import json
import statistics
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from bench import raw, servers
from bench.flat import DRAFT
from bench.load import FIELDS
from bench.raw import post
from bench.table import Effort, Line
from pointsman import Pointsman

PATIENCE_S = 20


class Receiver:
    """When each task was told of, by the receiver's clock, which is the bench's own."""

    def __init__(self) -> None:
        self.got: SimpleQueue[tuple[str, float]] = SimpleQueue()
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.put((json.loads(body)["data"]["task"], time.perf_counter()))
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """It says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook"
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def figures(folder: Path, effort: Effort) -> list[Line]:
    db, port, receiver = folder / f"outbox-{uuid.uuid4()}.db", servers.free_port(), Receiver()
    with Pointsman(f"sqlite:///{db}") as pm:
        pm.add_hook(receiver.url, "webhook", ["approval_needed"], by="bench", allow_private=True)
    with servers.running(servers.pointsman(db, port), port):
        delays = sorted(_delays(port, receiver, effort.looks))
    receiver.close()
    middle, last = 1000 * statistics.median(delays), 1000 * delays[int(0.99 * len(delays))]
    return [
        Line("messages, from the answer of a call to a webhook's receiver", f"p50 {middle:.1f} ms, p99 {last:.1f} ms", aim="p99 ≤ 100 ms")
    ]


def _delays(port: int, receiver: Receiver, count: int) -> Iterator[float]:
    for _ in range(count):
        task = _asked(port, "/enqueue", FIELDS)["id"]
        mine = {"task_id": task, "agent_id": "bench"}
        for path in ("/claim", "/start-draft"):
            _asked(port, path, mine)
        _asked(port, "/request-approval", mine | {"draft": DRAFT})
        answered = time.perf_counter()
        told, at = receiver.got.get(timeout=PATIENCE_S)
        assert told == task, "one message after the other"
        yield at - answered


def _asked(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    status, answer = raw.ask(port, post(path, body))
    assert status == 200, answer
    return json.loads(answer)
