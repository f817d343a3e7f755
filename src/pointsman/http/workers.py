"""Several server processes that share one listening socket: a parent that starts them, and watches.

The parent opens no database and answers nothing. The first worker starts alone: it makes the tables and publishes the
machines, and a fault of the database or of a work file is told once. When it is ready the others follow; whichever dies is
replaced. A worker knows by a pipe that its parent is gone, and the parent by another that a worker is: the kernel closes both, however
a process ended.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Thread

from pointsman.http.serve import STOP_SECONDS, Ready

STOPPING = (signal.SIGTERM, signal.SIGINT)
PATIENCE_S = STOP_SECONDS + 5.0
STEADY_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""How long the place of a worker that died young stays empty: twice as long each time, up to a limit."""


@dataclass(slots=True)
class Worker:
    """A child, as its parent sees it: it says on `pipe` that it is ready, and its end is the pipe's end."""

    pid: int
    pipe: int
    began: float
    ready: Ready | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """A worker, as it sees itself."""

    pipe: int

    def ready(self, where: Ready) -> None:
        os.write(self.pipe, json.dumps(where).encode())


class Workers:
    """The parent of so many workers. `ready` is told once, when all are; `say` is told of each that is replaced."""

    def __init__(self, count: int, listener: socket.socket, ready: Callable[[Ready], None], say: Callable[[str], None]):
        self._count, self._listener, self._ready, self._say = count, listener, ready, say
        self._workers: dict[int, Worker] = {}
        self._due: list[float] = [0.0]
        self._pause_s = 0.0
        self._told = False
        self._stopping = False
        self.status = 0

    def run(self) -> Seat | None:
        """In each worker its seat, at once. In the parent None, once all have ended; `status` is then the exit status."""
        self._alive, self._life = os.pipe()
        with self._heeding() as ear:
            while not self._stopping:
                if seat := self._begin():
                    return seat
                self._listen(ear, self._next_due())
            self._stop(ear)
        os.close(self._life)
        os.close(self._alive)
        return None

    @contextmanager
    def _heeding(self) -> Generator[socket.socket]:
        """A signal to stop wakes whoever listens at this socket. It ends with the handlers as they were, also in a worker,
        which keeps such signals waiting until then."""
        ear, bell = socket.socketpair()
        bell.setblocking(False)
        before = {number: signal.signal(number, self._heed) for number in STOPPING}
        awake = signal.set_wakeup_fd(bell.fileno(), warn_on_full_buffer=False)
        try:
            yield ear
        finally:
            signal.set_wakeup_fd(awake)
            for number, handler in before.items():
                signal.signal(number, handler)
            ear.close()
            bell.close()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)

    def _heed(self, *_: object) -> None:
        self._stopping = True

    def _begin(self) -> Seat | None:
        """Start the workers that are due."""
        now = time.monotonic()
        for due in [due for due in self._due if due <= now]:
            self._due.remove(due)
            if seat := self._fork():
                return seat
        return None

    def _fork(self) -> Seat | None:
        """A worker's seat in the worker, None in the parent. What is loaded by now is shared, and stays so."""
        gc.collect()
        gc.freeze()
        sys.stdout.flush()
        sys.stderr.flush()
        theirs, ours = os.pipe()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        pid = os.fork()
        if pid == 0:
            for pipe in (theirs, self._life, *self._workers):
                os.close(pipe)
            Thread(target=_end_with, args=(self._alive,), name="pointsman-parent", daemon=True).start()
            return Seat(ours)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        os.close(ours)
        self._workers[theirs] = Worker(pid, theirs, time.monotonic())
        return None

    def _next_due(self) -> float | None:
        return max(0.0, min(self._due) - time.monotonic()) if self._due else None

    def _listen(self, ear: socket.socket, wait_s: float | None) -> None:
        """Until a signal came, a worker said something, or the time is over."""
        heard, _, _ = select.select([ear.fileno(), *self._workers], [], [], wait_s)
        for worker in [self._workers[pipe] for pipe in heard if pipe in self._workers]:
            self._hear(worker)
        if ear.fileno() in heard:
            ear.recv(4096)

    def _hear(self, worker: Worker) -> None:
        if said := os.read(worker.pipe, select.PIPE_BUF):
            self._is_ready(worker, json.loads(said))
        else:
            self._has_ended(worker)

    def _is_ready(self, worker: Worker, where: Ready) -> None:
        worker.ready = where
        if self._told:
            return
        self._due += [0.0] * (self._count - len(self._workers) - len(self._due))
        if not self._due and all(other.ready for other in self._workers.values()):
            self._told = True
            self._ready(Ready(url=where["url"], pid=os.getpid(), db=where["db"]))

    def _has_ended(self, worker: Worker) -> None:
        """Replace it, unless it was to end. Before the server was ever ready its end is the server's."""
        del self._workers[worker.pipe]
        os.close(worker.pipe)
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        if self._stopping:
            self.status = self.status or (0 if status in (0, -signal.SIGTERM) else 1)
        elif not self._told:
            self.status, self._stopping = (status if status > 0 else 1), True
        else:
            self._replace(worker, status)

    def _replace(self, worker: Worker, status: int) -> None:
        now = time.monotonic()
        steady = now - worker.began >= STEADY_S
        self._pause_s = 0.0 if steady else min(max(FIRST_PAUSE_S, 2 * self._pause_s), LONGEST_PAUSE_S)
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        self._say(f"worker {worker.pid} {how}; another one starts" + (f" in {self._pause_s:g} s" if self._pause_s else ""))
        self._due.append(now + self._pause_s)

    def _stop(self, ear: socket.socket) -> None:
        """Pass the signal on; each worker answers what it has begun. One that does not end is ended."""
        self._listener.close()
        self._send(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE_S
        while self._workers:
            left = deadline - time.monotonic()
            if left <= 0:
                self._send(signal.SIGKILL)
            self._listen(ear, max(left, 0.1))

    def _send(self, number: signal.Signals) -> None:
        for worker in self._workers.values():
            with suppress(ProcessLookupError):
                os.kill(worker.pid, number)


def _end_with(parent: int) -> None:
    """Nobody writes into this pipe: it ends with the parent, however that ended, and then so does this worker."""
    os.read(parent, 1)
    os.kill(os.getpid(), signal.SIGTERM)
