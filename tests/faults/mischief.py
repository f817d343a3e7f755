"""What is done to a fleet while it works, in an order that a seed gives.

Each deed is followed by the next when the fleet has got on, not when time has passed. All that stands still goes on again
with the block, whatever happened.
"""

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from random import Random

import apsw
import psycopg

from databases import KILL, VARIABLE, PostgresServer
from faults.fleet import PATIENCE_S, Fleet, Member
from pointsman import Task

CUT = f"{KILL} AND application_name = 'pointsman-wake-ups'"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pointsman%'"
ROWS = "SELECT id FROM pointsman.tasks WHERE final = 0 ORDER BY id LIMIT 20 OFFSET %s FOR UPDATE SKIP LOCKED"
STILL_S = 1.0
"""How long somebody may stand still whom all others may have to wait for."""
REPLACED_S = 15.0
"""How long it may take until somebody has a frozen owner's task."""


class Mischief:
    """`done` counts the deeds, by name."""

    def __init__(self, fleet: Fleet, chosen: Random, postgres: PostgresServer | None):
        self.fleet, self.chosen, self.postgres = fleet, chosen, postgres
        self.done = Counter[str]()

    def deeds(self) -> list[Callable[[], None]]:
        """Each kind once, in an order of its own."""
        found = [
            self.kill_a_server,
            self.kill_a_worker,
            self.freeze_an_owner,
            self.freeze_a_caller,
            self.freeze_a_server,
            self.lock_and_roll_back,
        ]
        if self.postgres is not None:
            found.append(self.cut_listeners)
            if VARIABLE not in os.environ:  # the server is ours
                found.append(self.pause_a_session)
        self.chosen.shuffle(found)
        return found

    def round(self, busy: Callable[[], bool]) -> None:
        """One deed of each kind, as long as there is work."""
        for deed in self.deeds():
            if not busy():
                return
            deed()
            self.get_on(self.chosen.randint(5, 25), busy)

    def get_on(self, lines: int, busy: Callable[[], bool] = lambda: True, limit_s: float | None = None) -> None:
        """Until somebody was told so much more."""
        enough = self.fleet.lines() + lines
        limits = {} if limit_s is None else {"limit_s": limit_s}
        came = self.fleet.until(lambda: self.fleet.lines() >= enough or not busy(), **limits)
        assert came or limit_s is not None, "the fleet stands still"

    # ── deeds ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def kill_a_server(self) -> None:
        self._kill(self.chosen.choice(self.fleet.servers))

    def kill_a_worker(self) -> None:
        self._kill(self.chosen.choice(self.fleet.workers))

    def _kill(self, member: Member) -> None:
        if member.alive:
            member.send(signal.SIGKILL)
            assert member.process is not None
            member.process.wait()
            self.done["kill"] += 1

    def freeze_an_owner(self) -> None:
        """Of any kind, past its lease, until somebody else has its task or the task is over."""
        self._freeze([member for member in self.fleet.workers if not member.name.startswith("runner")])

    def freeze_a_caller(self) -> None:
        """Once it was replaced and goes on, it sends what it was about to send."""
        self._freeze([member for member in self.fleet.workers if member.name.startswith("caller")])

    def _freeze(self, members: list[Member]) -> None:
        for _ in range(20):
            self.get_on(1, limit_s=STILL_S)
            holding = {task.owner: task for task in self.fleet.pm.list(machine="jobs", state="doing", limit=1000) if _is_held(task)}
            found = [member for member in members if member.name in holding and _itself(member, holding[member.name])]
            if found and self._frozen(member := self.chosen.choice(found), holding[member.name]):
                return

    def _frozen(self, member: Member, task: Task) -> bool:
        """Whether somebody else came to have the task of one who stood still; a caller's next word about it is refused."""
        member.freeze()
        try:
            replaced = self._replaced(member, task)
        finally:
            member.thaw()
        if replaced and member.name.startswith("caller"):
            assert self.fleet.until(lambda: self._refused(member, task)), f"{member.name} says no more of {task.id}"
            self.done["late calls refused"] += 1
        self.done["freeze an owner"] += replaced
        return replaced

    def _replaced(self, member: Member, task: Task) -> bool:
        """Not when its owner had let go of it before it stood still."""
        if not _same_hold(self.fleet.pm.get(task.id), task):
            return False
        self.fleet.until(lambda: not _same_hold(self.fleet.pm.get(task.id), task), REPLACED_S)
        return self.fleet.pm.get(task.id).epoch > task.epoch

    def _refused(self, member: Member, task: Task) -> bool:
        """Whatever the word for it: the task may be over by then."""
        said = {"what": "no", "task": task.id, "epoch": task.epoch, "by": member.name}
        return any(said.items() <= line.items() for line in self.fleet.told())

    def freeze_a_server(self) -> None:
        """It may be writing: then on one file nobody else can."""
        server = self.chosen.choice(self.fleet.servers)
        if server.alive:
            server.freeze()
            try:
                self.get_on(5, limit_s=STILL_S)
            finally:
                server.thaw()
            self.done["freeze a server"] += 1

    def cut_listeners(self) -> None:
        assert self.postgres is not None
        self.done["cut"] += len(self.postgres.execute(CUT, self.fleet.url))

    def pause_a_session(self) -> None:
        """A process of the database's own server stands still, with all that it holds."""
        assert self.postgres is not None
        pids = [pid for (pid,) in self.postgres.execute(SESSIONS, self.fleet.url)]
        if not pids:
            return
        pid = self.chosen.choice(sorted(pids))
        with standing_still(pid):
            self.get_on(5, limit_s=STILL_S)
        self.done["pause"] += 1

    def lock_and_roll_back(self) -> None:
        with locking(self.fleet.url, self.chosen.randrange(20)):
            self.get_on(5, limit_s=STILL_S)
        self.done["lock"] += 1


def _is_held(task: Task) -> bool:
    """By somebody who will say something of it."""
    return task.held and task.fields["kind"] != "poison"


def _itself(member: Member, task: Task) -> bool:
    """Not a process of its name that died: a caller knows nothing of what that one held."""
    caller = member.name.startswith("caller")
    return member.alive and member.process is not None and (not caller or task.session == f"{member.name}-{member.process.pid}")


def _same_hold(now: Task, task: Task) -> bool:
    return (now.epoch, now.owner, now.state) == (task.epoch, task.owner, "doing") and now.joining is None


@contextmanager
def standing_still(pid: int) -> Iterator[None]:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def locking(url: str, start: int = 0) -> Iterator[None]:
    """Rows that somebody locks and lets go again unchanged; of a file all of it."""
    if url.startswith("sqlite"):
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as file:
            file.set_busy_timeout(20_000)
            file.execute("BEGIN IMMEDIATE")
            try:
                yield
            finally:
                file.execute("ROLLBACK")
        return
    with psycopg.connect(url) as session:
        session.execute(ROWS, (start,))
        try:
            yield
        finally:
            session.rollback()


class Locker:
    """Somebody who locks and rolls back again and again, until the end of the block."""

    def __init__(self, url: str):
        self._url, self.times = url, 0
        self._begun, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Locker":
        self._thread.start()
        assert self._begun.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            with locking(self._url, self.times % 20):
                self.times += 1
                self._begun.set()


def seed() -> int:
    """Of a run that is to be repeated, else a new one."""
    return int(os.environ.get("FLEET_SEED") or Random().randrange(10**6))
