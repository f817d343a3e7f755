"""A caller of `/v1` with nothing but sockets, which works on the jobs of a fleet until it is told to stop.

    python fleet_caller.py NAME SERVER...            claims and works, one job after the other
    python fleet_caller.py NAME SERVER... --given    works on the job of `pointsman run`, which is in the environment

An answer that does not come, or that says that nothing was done or that nobody knows, is asked for again at the next
server under the same key. What was answered is told as in `fleet_work`, and besides:

    {"what": "nothing", "before", "after", "at", "tags", "capabilities"}   no job for a claim, with the feed's heads around it
    {"what": "no", "task", "epoch", "event", "code"}                       a refusal
"""

import http.client
import itertools
import json
import os
import signal
import sys
import threading
import time
from typing import Any, NamedTuple

PACE_S, PATIENCE_S, TRIES = 0.05, 5, 2_000
WAY = {"plain": ("step", "finish"), "timed": ("rest",), "flaky": ("finish",), "falls": ("give_up",)}
ASKED = ((None, 0), (["red"], 0), (None, 1))
"""With which tags, and for how many seconds a claim waits."""
CAPABILITIES = ["http"]
CHILDREN = 2

PARENT = os.getppid()

stopped = threading.Event()


def told(**line: Any) -> None:
    file = os.open(os.environ["FLEET_TOLD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, (json.dumps(line) + "\n").encode())
    os.close(file)


class Answer(NamedTuple):
    status: int
    body: Any


class Speaking:
    """One caller, under one session; `key` is new for each thing that is asked for, and the same whoever is asked."""

    def __init__(self, name: str, servers: list[str]):
        self.name, self.session = name, f"{name}-{os.getpid()}"
        self._servers = itertools.cycle(servers)
        self._numbers = itertools.count()
        self._connection: http.client.HTTPConnection | None = None

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        key = f"{self.session}-{time.time_ns()}-{next(self._numbers)}"
        for _ in range(TRIES):
            try:
                answer = self._asked(method, path, body, key)
            except (OSError, http.client.HTTPException):
                if os.getppid() != PARENT:
                    sys.exit("nobody answers, and whoever started this is gone")
                self._turn_away()
                continue
            if answer.status not in (429, 503):
                return answer
            self._turn_away()
        raise TimeoutError(f"{method} {path} was never answered")

    def _asked(self, method: str, path: str, body: Any, key: str) -> Answer:
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", int(next(self._servers).rpartition(":")[2]), timeout=PATIENCE_S)
        headers = {"Content-Type": "application/json", "Pointsman-As": self.name, "Pointsman-Session": self.session}
        if method != "GET":
            headers["Idempotency-Key"] = key
        self._connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self._connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()))

    def _turn_away(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        threading.Event().wait(PACE_S)

    def head(self) -> int:
        """The feed's last number, once all that is committed has one."""
        return self.ask("GET", "/v1/tasks?limit=1").body["as_of"]


class Caller:
    def __init__(self, speaking: Speaking):
        self.speaking = speaking
        self.waiting: list[tuple[str, int]] = []

    def work(self) -> None:
        for tags, wait_s in itertools.cycle(ASKED):
            if stopped.is_set():
                return
            self._look_after_parents()
            if (task := self.claimed(tags, wait_s)) is not None:
                self.act(task)
            else:
                threading.Event().wait(PACE_S)

    def claimed(self, tags: list[str] | None, wait_s: int) -> Any:
        before, at = self.speaking.head(), time.time_ns() // 1000
        body = {"machine": "jobs", "capabilities": CAPABILITIES, "tags": tags, "wait_s": wait_s}
        answer = self.speaking.ask("POST", "/v1/claims", body)
        assert answer.status == 200, answer
        if not answer.body["tasks"]:
            told(what="nothing", before=before, after=self.speaking.head(), at=at, tags=tags or [], capabilities=CAPABILITIES)
            return None
        (task,) = answer.body["tasks"]
        self._done(task, "take")
        return task

    def act(self, task: Any) -> None:
        kind = task["fields"]["kind"]
        if kind == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "flaky" and task["attempts"]["error"] == 0:
            self._release(task)
        elif kind == "wide":
            self._divide(task)
        else:
            self._lead(task, WAY[kind])

    def _lead(self, task: Any, events: tuple[str, ...]) -> None:
        for event in events:
            if not self.move(task["id"], task["epoch"], event):
                return

    def move(self, id: str, epoch: int, event: str) -> bool:
        threading.Event().wait(PACE_S)
        answer = self.speaking.ask("POST", f"/v1/tasks/{id}/events/{event}", {"epoch": epoch})
        return self._heard(answer, id, epoch, event)

    def _release(self, task: Any) -> None:
        body = {"epoch": task["epoch"], "error": True, "reason": "as told"}
        answer = self.speaking.ask("DELETE", f"/v1/tasks/{task['id']}/lease", body)
        self._heard(answer, task["id"], task["epoch"], "release")

    def _divide(self, task: Any) -> None:
        """Children, and then other work until they are over; whoever takes the parent over finds them."""
        found = self.speaking.ask("GET", f"/v1/tasks/{task['id']}").body
        if "children" in found:
            self.move(task["id"], task["epoch"], "finish")
            return
        children = [{"machine": "jobs", "fields": {"kind": "plain", "shelf": f"child-{number}"}} for number in range(CHILDREN)]
        body = {"tasks": children, "parent": task["id"], "epoch": task["epoch"], "join": "all"}
        answer = self.speaking.ask("POST", "/v1/tasks/batch", body)
        if answer.status == 201:
            self.waiting.append((task["id"], task["epoch"]))
        else:
            self._refused(answer, task["id"], task["epoch"], "create")

    def _look_after_parents(self) -> None:
        for id, epoch in list(self.waiting):
            task = self.speaking.ask("GET", f"/v1/tasks/{id}").body
            if task["epoch"] != epoch or task["state"] != "doing" or task["lease"] is not None:
                self.waiting.remove((id, epoch))
                self.move(id, epoch, "finish")

    def _heard(self, answer: Answer, id: str, epoch: int, event: str) -> bool:
        if answer.status == 200:
            self._done(answer.body, event)
        else:
            self._refused(answer, id, epoch, event)
        return answer.status == 200

    def _done(self, task: Any, event: str) -> None:
        told(what="done", task=task["id"], version=task["version"], epoch=task["epoch"], event=event, by=self.speaking.name)

    def _refused(self, answer: Answer, id: str, epoch: int, event: str) -> None:
        assert 400 <= answer.status < 500, answer
        told(what="no", task=id, epoch=epoch, event=event, code=answer.body["code"], by=self.speaking.name)


def given(caller: Caller) -> None:
    """The job that `pointsman run` claimed. A poisoned one kills the runner too."""
    with open(os.environ["POINTSMAN_TASK"], encoding="utf-8") as file:
        task = json.load(file)
    caller.speaking.session = os.environ["POINTSMAN_SESSION"]
    told(what="done", task=task["id"], version=task["version"], epoch=task["epoch"], event="take", by=caller.speaking.name)
    if task["fields"]["kind"] == "poison":
        os.kill(os.getppid(), signal.SIGKILL)
    caller.act(task)


def main(name: str, *servers: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    caller = Caller(Speaking(name, [server for server in servers if server != "--given"]))
    if "--given" in servers:
        given(caller)
    else:
        caller.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
