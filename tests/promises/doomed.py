"""Workers that kill themselves at the points that their tasks name, each death noted before it.

A task's field `fatal` lists the points, with commas, one for each worker that has the task, in order; `send.after@2` is the second
time that a worker passes that point.
"""

import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from acceptance.cli import environment
from pointsman import Machine, Pointsman, Work, Worker
from promises.remote import Remote

HERE = Path(os.environ.get("DOOM_FOLDER", "."))
"""Where deaths are noted, one file each: the task, which death of its own, the point."""


class Doom:
    """The probe of a worker: where the task in hand kills it next. `HERE` says whether it was there."""

    def __init__(self) -> None:
        self.task = ""
        self.points: tuple[str, ...] = ()
        self.passed = Counter[str]()

    def of(self, work: Work) -> None:
        self.task, self.points = work.task.id, fatal(work.task.fields["fatal"])[len(deaths(HERE, work.task.id)) :]
        self.passed.clear()

    def __call__(self, point: str) -> None:
        self.passed[point] += 1
        now = {f"{point}@{self.passed[point]}"} | ({point} if self.passed[point] == 1 else set())
        if self.points and self.points[0] in now:
            number = len(deaths(HERE, self.task))
            file = os.open(HERE / f"{self.task} {number} {self.points[0]}", os.O_CREAT | os.O_EXCL)
            os.fsync(file)
            os.kill(os.getpid(), signal.SIGKILL)


def fatal(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def name(point: str) -> str:
    """A point without how often it was passed."""
    return re.sub(r"@\d+$", "", point)


def deaths(folder: Path, task: str) -> list[str]:
    """The points at which workers on a task died, in order."""
    named = sorted((path.name.split(" ")[1:] for path in folder.glob(f"{task} *")), key=lambda parts: int(parts[0]))
    return [point for _, point in named]


def remote() -> Remote:
    """The one that a worker of a fleet does its effects at."""
    return Remote(int(os.environ["DOOM_PORT"]))


@contextmanager
def fleet(module: str, url: str, folder: Path, at: Remote) -> Iterator[None]:
    """A fleet of one for the work of a module that calls `serve` when it is run."""
    env = environment({"DOOM_PORT": str(at.port), "DOOM_FOLDER": str(folder)})
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    (folder / "enough").unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, "-m", module, url], env=env)
    try:
        yield
        (folder / "enough").touch()
        assert process.wait(30) == 0
    finally:
        (folder / "enough").touch()
        process.wait(30)


def serve(url: str, machines: Sequence[type[Machine]], worker: Worker) -> None:
    """Fork a worker, and another one whenever that was killed, until the file `enough` is there."""
    while True:
        child = os.fork()
        if child == 0:
            _work(url, machines, worker)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
            sys.exit(os.waitstatus_to_exitcode(status))


def _work(url: str, machines: Sequence[type[Machine]], worker: Worker) -> None:
    with Pointsman(url, machines, duties=True) as pm:
        worker.bind(pm)
        worker.start("fleet")
        while not (HERE / "enough").exists():
            threading.Event().wait(0.05)
        worker.stop()
