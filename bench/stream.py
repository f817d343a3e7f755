"""How long after its commit an entry reaches a reader of the feed."""

import json
import statistics
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from bench import raw, servers
from bench.load import FIELDS
from bench.raw import Wire, post
from bench.table import Effort, Line


def figures(folder: Path, effort: Effort) -> list[Line]:
    port = servers.free_port()
    with servers.running(servers.pointsman(folder / f"stream-{uuid.uuid4()}.db", port), port):
        delays = sorted(_delays(port, effort.looks))
    middle, last = 1000 * statistics.median(delays), 1000 * delays[int(0.99 * len(delays))]
    return [Line("feed, from the answer of a call to its event", f"p50 {middle:.0f} ms, p99 {last:.0f} ms")]


def _delays(port: int, count: int) -> Iterator[float]:
    wire = Wire(port)
    try:
        wire.socket.sendall(raw.get("/v1/feed"))
        for _ in range(count):
            status, body = raw.ask(port, post("/enqueue", FIELDS))
            answered = time.perf_counter()
            assert status == 200, body
            _until(wire, json.loads(body)["id"].encode())
            yield time.perf_counter() - answered
    finally:
        wire.socket.close()


def _until(wire: Wire, wanted: bytes) -> None:
    """Read the stream until it has said `wanted`."""
    said = b""
    while wanted not in said:
        chunk = wire.socket.recv(65536)
        if not chunk:
            raise ConnectionError("the feed ended")
        said += chunk
