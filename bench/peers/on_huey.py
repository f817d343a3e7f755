"""huey on a SQLite file of its own in a temporary folder, kept for the whole run; it has no use for the server."""

import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

from driver import rate, say, start
from huey import SqliteHuey

hangs = True


def _opened(url: str) -> Any:
    name = sha256(url.encode()).hexdigest()[:16]
    return SqliteHuey("bench", filename=str(Path(tempfile.gettempdir()) / f"pointsman-bench-huey-{name}.db"), fsync=True, results=False)


def setup(url: str) -> None:
    _opened(url).storage.initialize_schema()


def enqueue(url: str, count: int) -> None:
    queue = _opened(url)
    elsewhere = queue.task(name="elsewhere")(lambda: None)
    began = time.perf_counter()
    for _ in range(count):
        elsewhere()
    rate(count, began)
    queue.flush()


def jobs(url: str, batch: int, count: int) -> None:
    """A consumer with as many threads as the batch is large."""
    queue, left, done = _opened(url), [count], threading.Event()

    def noop() -> None:
        left[0] -= 1
        if left[0] == 0:
            done.set()

    task = queue.task(name="noop")(noop)
    for _ in range(count):
        task()
    consumer = queue.create_consumer(workers=batch, worker_type="thread", periodic=False)
    began = time.perf_counter()
    consumer.start()
    done.wait(120)
    rate(count - left[0], began)
    consumer.stop(graceful=True)


def _stuck() -> None:
    if hangs:
        say(started=True)
        threading.Event().wait()
    say(again=True)


def hang(url: str) -> None:
    queue = _opened(url)
    queue.task(name="stuck")(_stuck)()
    queue.create_consumer(workers=1).run()


def recover(url: str) -> None:
    global hangs
    hangs = False
    queue = _opened(url)
    queue.task(name="stuck")(_stuck)
    queue.create_consumer(workers=1).run()


start(setup=setup, enqueue=enqueue, jobs=jobs, hang=hang, recover=recover)
