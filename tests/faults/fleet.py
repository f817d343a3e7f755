"""A fleet: two servers, workers, runners and callers, each a real process, on one database, and what is done to them.

Whoever dies is started again, until the fleet is told to rest. Every process is ended with the block, whatever happened.
"""

import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptance.cli import COMMAND, environment
from faults import fleet_work
from faults.fleet_work import Jobs
from pointsman import Pointsman

PATIENCE_S = 90
"""For what must come, on a machine that may be slow; nothing is asserted about how long anything takes."""

HERE = Path(__file__).parent
CALLER = str(HERE / "fleet_caller.py")


@dataclass
class Member:
    """One process of the fleet, and the ones that take its place."""

    name: str
    command: list[str]
    process: "subprocess.Popen[bytes] | None" = None
    deaths: list[int] = field(default_factory=list)
    frozen: bool = False

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def send(self, number: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(number)

    def freeze(self) -> None:
        self.send(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self.send(signal.SIGCONT)
        self.frozen = False


class Fleet:
    def __init__(self, folder: Path, url: str, *, workers: int, runners: int, callers: int):
        self.folder, self.url = folder, url
        self.told_file = folder / "told"
        self.told_file.touch()
        self.pm = Pointsman(url, [Jobs])
        self.resting = False
        ports = [_free_port() for _ in range(2)]
        work, at = str(Path(fleet_work.__file__)), [f"127.0.0.1:{port}" for port in ports]
        self.servers = [
            Member(f"server-{number}", [*COMMAND, "serve", work, "--db", url, "--port", str(port), "--json"])
            for number, port in enumerate(ports)
        ]
        command = [sys.executable, CALLER]
        self.workers = [
            *(Member(name, [*COMMAND, "worker", work, "--db", url, "--as", name]) for name in _names("worker", workers)),
            *(
                Member(name, [*COMMAND, "run", "--loop", "--work", work, "--db", url, "--as", name, "--", *command, name, *at, "--given"])
                for name in _names("runner", runners)
            ),
            *(Member(name, [*command, name, *at]) for name in _names("caller", callers)),
        ]

    @property
    def members(self) -> list[Member]:
        return [*self.servers, *self.workers]

    def start(self, member: Member) -> None:
        with self._log(member).open("ab") as log:
            member.process = subprocess.Popen(
                member.command,
                cwd=self.folder,
                env=environment({"FLEET_TOLD": str(self.told_file)}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def tend(self) -> None:
        """Start again whoever has died, and note what it died of."""
        for member in self.members:
            if not member.alive:
                if member.process is not None:
                    member.deaths.append(member.process.returncode)
                self.start(member)

    def said(self, member: Member) -> str:
        """All that a member and its predecessors printed."""
        log = self._log(member)
        return log.read_text(errors="replace") if log.exists() else ""

    def _log(self, member: Member) -> Path:
        return self.folder / f"{member.name}.log"

    def told(self) -> list[dict[str, Any]]:
        """What was acknowledged, refused and answered with nothing, as those who heard it told."""
        lines = self.told_file.read_text().split("\n")
        return [json.loads(line) for line in lines if line.endswith("}")]

    def lines(self) -> int:
        return self.told_file.read_bytes().count(b"\n")

    def until(self, holds: Callable[[], Any], limit_s: float = PATIENCE_S) -> bool:
        """Keep the fleet going until something holds; whether it did, before the time was over."""
        end = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > end:
                return False
            if not self.resting:
                self.tend()
            threading.Event().wait(0.02)
        return True

    def ready(self) -> None:
        """Everybody is started, and both servers listen."""
        self.tend()
        assert self.until(lambda: all(_listens(server) for server in self.servers)), [self.said(server) for server in self.servers]

    def rest(self) -> list[int]:
        """Tell everybody to stop; how they ended."""
        self.resting = True
        for member in self.members:
            member.thaw()
        for group in (self.workers, self.servers):  # whoever works needs an answer
            for member in group:
                if member.alive:
                    member.send(signal.SIGTERM)
            assert self.until(lambda group=group: not any(member.alive for member in group)), [
                (member.name, self.said(member)[-2000:]) for member in group if member.alive
            ]
        return [member.process.returncode for member in self.members if member.process is not None]

    def end(self) -> None:
        for member in self.members:
            if member.process is not None:
                with suppress(ProcessLookupError):
                    member.thaw()
                    member.process.kill()
                member.process.wait()


def _names(kind: str, count: int) -> Iterator[str]:
    return (f"{kind}-{number}" for number in range(count))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def _listens(server: Member) -> bool:
    port = int(server.command[server.command.index("--port") + 1])
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def fleet(folder: Path, url: str, *, workers: int, runners: int, callers: int) -> Iterator[Fleet]:
    made = Fleet(folder, url, workers=workers, runners=runners, callers=callers)
    try:
        yield made
    finally:
        made.end()
        made.pm.close()


# ── the work that there is ───────────────────────────────────────────────────────────────────────────────────────────


def load(pm: Pointsman, rounds: int) -> None:
    """So many times: work of every kind, and tasks that wait for it."""
    numbers = itertools.count()

    def one(kind: str, **terms: Any) -> dict[str, Any]:
        number = next(numbers)
        return {"fields": {"kind": kind, "shelf": f"shelf-{number % 6}"}, "tags": ["red"] if number % 3 == 0 else None, **terms}

    for _ in range(rounds):
        after = [{"task": "#first"}, {"task": "#falls", "on_failure": "continue"}]
        items = [
            *(one("plain") for _ in range(6)),
            one("plain", ref="first"),
            one("falls", ref="falls"),
            one("plain", ref="second", blocked_by=after),
            one("plain", blocked_by=[{"task": "#falls", "on_failure": "cancel"}]),
            one("plain", blocked_by=[{"task": "#second"}]),
            one("flaky"),
            one("timed"),
            one("wide", needs=["http"]),
        ]
        pm.create_batch(items, by="ann", machine="jobs")


def poison(pm: Pointsman) -> str:
    """A job that goes ahead of all others and kills whoever works on it."""
    return pm.create("jobs", {"kind": "poison", "shelf": "poison"}, by="ann", priority=100).id
