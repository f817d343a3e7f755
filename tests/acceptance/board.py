"""A board with a lease of two seconds, and the real commands that work on it."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from acceptance.cli import COMMAND, environment
from pointsman import Pointsman, Task
from pointsman.app import machines

PATIENCE_S = 30
LONGER_S = 3.5
"""Than the lease."""
WORK = """
import os
import pathlib
import threading

from pointsman import Event, Machine, Outcome, State, Work, Worker, note, optional, owner, role, seconds


class Jobs(Machine, name="jobs"):
    remark: str | None = note()
    todo = State(initial=True)
    doing = State(lease=seconds(2))
    in_review = State()
    done = State(final=True)
    dropped = State(final=True, outcome="failed")
    take = Event(todo >> doing, acquires=True)
    step = Event(doing >> doing, by=owner, sets=optional("remark", None))
    submit = Event(doing >> in_review, by=owner)
    finish = Event(doing >> done, by=owner)
    drop = Event((todo | doing | in_review) >> dropped, by=role("operator"))


worker = Worker()
here = pathlib.Path(__file__).parent


@worker.on("jobs")
def handle(work: Work) -> Outcome | None:
    (here / f"begun-{work.task.id}").write_text(str(os.getpid()))
    while not ((here / "go").exists() or (here / f"go-{work.task.id}").exists()):
        if work.lost is not None:
            (here / f"lost-{work.task.id}").write_text(work.lost.code)
            return None
        threading.Event().wait(0.02)
    if (here / "fail").exists():
        raise ValueError("as told")
    return work.propose("finish")
"""
PROPOSE = '"$PYTHON" -m pointsman task propose $POINTSMAN_TASK_ID'
FINISH = f"{PROPOSE} finish --epoch $POINTSMAN_EPOCH"
UNTIL_GO = 'while [ ! -e "$HERE/go" ]; do sleep 0.02; done'
BEGUN = 'echo $$ >"$HERE/begun.new"; mv "$HERE/begun.new" "$HERE/begun"'
"""Parts of a command's script: finish the task, wait for a file, say that it runs and under which number."""


def until(what: str, holds: Callable[[], Any], patience_s: float = PATIENCE_S) -> Any:
    end = time.monotonic() + patience_s
    while not (found := holds()):
        assert time.monotonic() < end, f"never: {what}"
        threading.Event().wait(0.02)
    return found


class Board:
    """The machine's database, as this process sees it, and a folder that commands know as HERE."""

    def __init__(self, folder: Path, url: str, work: str = WORK):
        self.folder, self.url = folder, url
        self.work = folder / "work.py"
        self.work.write_text(work)
        self.pm = Pointsman(url, machines(self.work))
        self.started: list[subprocess.Popen[str]] = []

    def create(self) -> str:
        return self.pm.create("jobs", {}, by="ann").id

    def start(self, *argv: str, stdout: int = subprocess.PIPE, env: Mapping[str, str] = MappingProxyType({})) -> "subprocess.Popen[str]":
        """A command on this board, under the name `worker-a`."""
        given = environment(
            {"PYTHON": sys.executable, "HERE": str(self.folder), "POINTSMAN_DB": self.url, "POINTSMAN_AS": "worker-a", **env}
        )
        process = subprocess.Popen(
            [*COMMAND, *argv], cwd=self.folder, env=given, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True
        )
        self.started.append(process)
        return process

    def run(self, script: str, *options: str) -> "subprocess.Popen[str]":
        """`pointsman run` of a shell script."""
        return self.start("run", "--work", "work.py", *options, "--", "sh", "-c", script)

    def file(self, name: str) -> Path:
        return self.folder / name

    def said(self, name: str) -> str:
        """What a command wrote into a file, once it has: a file is there before anything is in it."""
        file = self.file(name)
        return until(name, lambda: file.exists() and file.read_text().strip())

    def taken_over(self, id: str, by: str = "worker-b") -> Task:
        """The task in other hands, as soon as its lease has run out."""

        def lapsed() -> bool:
            task = self.pm.get(id)
            return task.lapsed or task.owner is None

        until("the lease ran out", lapsed)
        task = self.pm.claim("jobs", by=by, id=id, lease_s=600)
        assert task is not None
        return task

    def counted(self, id: str) -> tuple[int, int, int]:
        attempts = self.pm.get(id).attempts
        return attempts.lost, attempts.error, attempts.deferred


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has reaped yet counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@contextmanager
def board(folder: Path, url: str, work: str = WORK) -> Iterator[Board]:
    """Whatever was started is ended with the block, and the record is whole."""
    made = Board(folder, url, work)
    try:
        yield made
        assert made.pm.verify().ok
    finally:
        made.file("go").touch()
        for process in made.started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        made.pm.close()
