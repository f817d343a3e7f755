"""The closure floor: the least that a durable, decided transition costs in Python on SQLite.

One writer thread groups units under one commit, each in its savepoint. A unit is a Python closure that reads the
task, decides trivially, updates it guarded by state and version, hashes with SHA-256 and inserts a history row.
WAL, `synchronous=FULL`. No keys, evidence, rights or chain over payloads: what an engine adds is the distance to here.
"""

import hashlib
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import apsw

SCHEMA = """
CREATE TABLE task (id TEXT PRIMARY KEY, state TEXT NOT NULL, version INTEGER NOT NULL, updated_at INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE history (seq INTEGER PRIMARY KEY, task TEXT NOT NULL, version INTEGER NOT NULL, event TEXT NOT NULL, at INTEGER NOT NULL,
  hash BLOB NOT NULL);
"""
READ = "SELECT state, version FROM task WHERE id = ?"
ADVANCE = "UPDATE task SET state = ?, version = version + 1, updated_at = ? WHERE id = ? AND state = ? AND version = ? RETURNING version"
RECORD = "INSERT INTO history (task, version, event, at, hash) VALUES (?, ?, ?, ?, ?)"
GROUP = 64

Unit = Callable[[apsw.Cursor], Any]


class Writer:
    """One connection, one thread; a future is answered only after the COMMIT that holds its unit."""

    def __init__(self, path: Path):
        self.connection = apsw.Connection(str(path))
        self.cursor = self.connection.cursor()
        self.cursor.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
        self.cursor.execute(SCHEMA)
        self.waiting: queue.SimpleQueue[tuple[Unit, Future[Any]] | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def run(self, unit: Unit) -> Any:
        answer: Future[Any] = Future()
        self.waiting.put((unit, answer))
        return answer.result()

    def close(self) -> None:
        self.waiting.put(None)
        self.thread.join()
        self.connection.close()

    def _work(self) -> None:
        while (first := self.waiting.get()) is not None:
            batch = [first]
            while len(batch) < GROUP and not self.waiting.empty() and (item := self.waiting.get()) is not None:
                batch.append(item)
            self._commit(batch)

    def _commit(self, batch: list[tuple[Unit, Future[Any]]]) -> None:
        self.cursor.execute("BEGIN IMMEDIATE")
        results = []
        for unit, _ in batch:
            self.cursor.execute("SAVEPOINT unit")
            results.append(unit(self.cursor))
            self.cursor.execute("RELEASE unit")
        self.cursor.execute("COMMIT")
        for (_, answer), result in zip(batch, results, strict=True):
            answer.set_result(result)


def advance(task: str, cursor: Any) -> int:
    """Read, decide, guarded update, hash, history."""
    state, version = cursor.execute(READ, (task,)).fetchall()[0]
    target = "drafting" if state in ("claimed", "drafting") else state
    now = time.time_ns() // 1000
    moved = cursor.execute(ADVANCE, (target, now, task, state, version)).fetchall()
    digest = hashlib.sha256(f"{task}|{version + 1}|{now}|start_draft|{state}|{target}".encode()).digest()
    cursor.execute(RECORD, (task, moved[0][0], "start_draft", now, digest))
    return moved[0][0]


def floor(folder: Path, threads: int, seconds: float) -> float:
    """Transitions per second with `threads` callers, each on its own task."""
    writer = Writer(folder / f"closure-{uuid.uuid4()}.db")
    tasks = [str(uuid.uuid4()) for _ in range(threads)]
    rows = [(task, "claimed", 1, 0) for task in tasks]
    writer.run(lambda cursor: cursor.executemany("INSERT INTO task VALUES (?, ?, ?, ?)", rows).fetchall())
    try:
        return rate([lambda task=task: writer.run(lambda cursor: advance(task, cursor)) for task in tasks], seconds)
    finally:
        writer.close()


def rate(calls: Sequence[Callable[[], object]], seconds: float) -> float:
    """Calls per second when each of `calls` is repeated on a thread of its own."""
    counts = [0] * len(calls)
    gate = threading.Barrier(len(calls) + 1)
    end = threading.Event()

    def repeat(index: int, call: Callable[[], object]) -> None:
        gate.wait()
        while not end.is_set():
            call()
            counts[index] += 1

    threads = [threading.Thread(target=repeat, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    gate.wait()
    began = time.perf_counter()
    end.wait(seconds)
    end.set()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)
