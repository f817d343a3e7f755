"""P3: an owner whom somebody has replaced writes nothing, whatever verb it calls and through whatever door.

A real `pointsman run` is frozen past its lease, replaced, and goes on. Then every verb that takes an owner's epoch is
called with the old one: by Python, `/v1`, the command line and MCP, as each of them lists its verbs, so that one that
comes later and is not called here makes a test fail.
"""

import asyncio
import inspect
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
import typer

from acceptance.board import BEGUN, UNTIL_GO, Board, board, ended, gone
from acceptance.process import Served, start, stop
from acceptance.spoken import over_http
from acceptance.v1 import Speaker
from pointsman import Pointsman, Refused, Task
from pointsman.cli.root import app
from pointsman.engine.steps import Bound
from pointsman.http.v1.table import OPERATIONS
from pointsman.kernel.operation import OUTCOMES
from pointsman.store.columns import COLUMNS

ME = "worker-a"
EVENTS = ("step", "submit", "finish")
Rows = dict[str, list[tuple[Any, ...]]]


@dataclass
class Replaced:
    """A task that `worker-a` held under an older epoch, and every row as its new owner's claim left it."""

    jobs: Board
    old: Task
    operation: str
    rows: Rows

    def changed_nothing(self) -> None:
        assert rows(self.jobs.url) == self.rows
        assert self.jobs.pm.verify().ok


def rows(url: str) -> Rows:
    """All that is stored, but for the log of refusals, what replaced owners testify, and the mark of time, which goes on."""
    tables = [table for table in COLUMNS if table not in ("refusals", "testimonies", "clock")]
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=ro", uri=True)) as raw:
            return {table: sorted(raw.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in tables}
    with psycopg.connect(url, options="-c search_path=pointsman") as session:
        return {table: sorted(session.execute(f"SELECT * FROM {table}".encode()).fetchall(), key=repr) for table in tables}


@pytest.fixture(scope="module", params=["worker-b", ME], ids=["by another", "by a second session of its name"])
def replaced(request: pytest.FixtureRequest, shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replaced]:
    """The worker froze, its lease ran out, somebody took the task, the worker woke: its command is stopped by now."""
    with board(tmp_path_factory.mktemp("replaced"), shared_url) as jobs:
        id = jobs.create()
        process = jobs.run(f"trap 'exit 0' TERM; {BEGUN}; {UNTIL_GO}")
        command = int(jobs.said("begun"))
        old = jobs.pm.get(id)
        operation = jobs.pm.begin(id, "load", by=ME, epoch=old.epoch, session=old.session, kind="keyed").operation.id
        old = jobs.pm.get(id)
        process.send_signal(signal.SIGSTOP)
        taken = jobs.taken_over(id, request.param)
        jobs.pm.history(id)  # every entry has its number in the feed
        before = rows(shared_url)
        process.send_signal(signal.SIGCONT)
        status, _, told = ended(process)
        assert (status, "lease_lost" in told, gone(command), taken.epoch) == (3, True, True, old.epoch + 1)
        found = Replaced(jobs, old, operation, before)
        found.changed_nothing()
        yield found


def test_over_python(replaced: Replaced) -> None:
    task = replaced.old
    named, below = {"id": task.id}, {"parent": task.id}
    calls: dict[str, list[dict[str, Any]]] = {
        "propose": [{**named, "event": event} for event in EVENTS],
        "renew": [named, {**named, "lease_s": 60}],
        "release": [named, {**named, "reason": "late"}, {**named, "counts": False}, {**named, "error": True}],
        "cancel": [{**named, "reason": "late"}, {**named, "reason": "late", "cascade": True}],
        "create": [{**below, "machine": "jobs", "fields": {}}],
        "begin": [{**named, "name": name, "kind": "keyed"} for name in ("load", "more")],
        "finish": [{"operation": replaced.operation, "status": status} for status in OUTCOMES],
        "remember": [{**named, "name": name, "result": 1} for name in ("load", "more")],
        "checkpoint": [{**named, "data": 1}],
        "create_batch": [{**below, "tasks": [{"machine": "jobs", "fields": {}}], **join} for join in ({}, {"join": "all"})],
    }
    assert calls.keys() == {name for name in dir(Pointsman) if takes_epoch(getattr(replaced.jobs.pm, name, None))}
    for session in (task.session, None):
        for name, arguments in calls.items():
            for given in arguments:
                with pytest.raises(Refused) as refused:
                    getattr(replaced.jobs.pm, name)(by=ME, epoch=task.epoch, session=session, **given)
                assert (refused.value.code, refused.value.recorded) == ("lease_lost", False), name
                assert refused.value.refusal.extra["epoch"] == task.epoch + 1
    replaced.changed_nothing()


def takes_epoch(verb: Any) -> bool:
    return isinstance(verb, Bound) and "epoch" in inspect.signature(verb).parameters


@pytest.fixture(scope="module")
def served(replaced: Replaced) -> Iterator[Served]:
    server = start(replaced.jobs.url, str(replaced.jobs.work))
    yield server
    assert stop(server)[0] == 0


def test_over_http(replaced: Replaced, served: Served) -> None:
    task = replaced.old
    bodies = {
        ("POST", "/v1/tasks/{id}/events/{event}"): {},
        ("POST", "/v1/tasks/{id}/lease"): {"lease_s": 60},
        ("DELETE", "/v1/tasks/{id}/lease"): {"reason": "late"},
        ("POST", "/v1/tasks/{id}/cancel"): {"reason": "late"},
        ("POST", "/v1/tasks/{id}/operations"): {"name": "load", "kind": "keyed"},
        ("POST", "/v1/operations/{id}/outcome"): {"status": "succeeded"},
        ("PUT", "/v1/tasks/{id}/checkpoint"): {"data": 1},
        ("POST", "/v1/tasks"): {"fields": {}, "parent": task.id},
        ("POST", "/v1/tasks/batch"): {"tasks": [{"fields": {}}], "parent": task.id},
    }
    assert bodies.keys() == {(item.method, item.path) for item in OPERATIONS if "epoch" in (item.body or {}).get("properties", {})}
    with Speaker(served.url) as speaker:
        for (method, path), body in bodies.items():
            for event in EVENTS if "{event}" in path else ("",):
                of = replaced.operation if "/operations/" in path else task.id
                place = path.replace("{id}", of).replace("{event}", event)
                for session in ({"Pointsman-Session": task.session}, {}):
                    answer = speaker.ask(method, place, ME, {"epoch": task.epoch, **body}, **session)  # type: ignore[arg-type]
                    assert (answer.status, answer.body["code"], answer.body["recorded"]) == (409, "lease_lost", False), place
    replaced.changed_nothing()


def test_over_the_command_line(replaced: Replaced) -> None:
    task = replaced.old
    calls = {
        "propose": [(task.id, event) for event in EVENTS],
        "renew": [(task.id,), (task.id, "--lease", "60")],
        "release": [(task.id,), (task.id, "--reason", "late"), (task.id, "--deferred"), (task.id, "--error")],
        "cancel": [(task.id, "--reason", "late")],
        "create": [("--parent", task.id, "--machine", "jobs")],
    }
    commands = getattr(typer.main.get_command(app), "commands", {})["task"].commands
    assert calls.keys() == {name for name, item in commands.items() if any("--epoch" in param.opts for param in item.params)}
    started = [
        replaced.jobs.start("task", name, *given, "--epoch", str(task.epoch), "--work", "work.py")
        for name, arguments in calls.items()
        for given in arguments
    ]
    for process in started:
        status, _, err = ended(process)
        assert (status, err.partition(":")[0]) == (3, "lease_lost")
    replaced.changed_nothing()


def test_over_mcp(replaced: Replaced, served: Served) -> None:
    task = replaced.old
    calls = {
        **{event: [{}] for event in EVENTS},
        "propose": [{"event": event} for event in EVENTS],
        "renew_lease": [{}, {"lease_s": 60}],
        "release_task": [{}, {"reason": "late"}],
        "begin_operation": [{"name": name, "kind": "keyed"} for name in ("load", "more")],
        "finish_operation": [{"operation_id": replaced.operation, "status": status} for status in OUTCOMES],
        "checkpoint": [{"data": 1}],
        "create_task": [{"machine": "jobs"}],
    }

    async def ask() -> None:
        async with over_http(served.url, ME) as spoken:
            tools = (await spoken.client.list_tools()).tools
            assert calls.keys() == {tool.name for tool in tools if "epoch" in tool.input_schema["properties"]}
            for tool, arguments in calls.items():
                for given in arguments:
                    for session in ({"session": task.session}, {}):
                        mine = {"parent" if tool == "create_task" else "task_id": task.id, "epoch": task.epoch}
                        no = await spoken.refused(tool, **mine, **session, **given)
                        assert (no["code"], no["recorded"]) == ("lease_lost", False), tool

    asyncio.run(ask())
    replaced.changed_nothing()
