"""`pointsman worker` in real processes: the handlers of a work file, called with tasks."""

import fcntl
import json
import os
import re
import select
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.board import LONGER_S, PATIENCE_S, Board, board, ended, gone, until


@pytest.fixture
def jobs(url: str, tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path, url) as made:
        yield made


def ready(process: "subprocess.Popen[str]") -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_it_works_on_several_tasks_and_ends_when_told(jobs: Board) -> None:
    ids = [jobs.create() for _ in range(4)]
    process = jobs.start("worker", "work.py", "--concurrency", "2", "--json")
    told = ready(process)
    assert (told["as"], told["on"]) == ("worker-a", [{"machine": "jobs", "state": None}])
    until("two are in work", lambda: sum(jobs.file(f"begun-{id}").exists() for id in ids) == 2)
    jobs.file("go").touch()
    for id in ids:
        assert jobs.pm.wait(id, states=["done"]).state == "done"
    process.send_signal(signal.SIGTERM)
    status, out, err = ended(process)
    assert (status, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    told = {line["task"]: (line["machine"], line["end"], line["state"], line["reason"]) for line in lines}
    assert told == dict.fromkeys(ids, ("jobs", "done", "done", None))


def test_a_handler_that_raises_costs_an_attempt_and_not_the_worker(jobs: Board) -> None:
    jobs.file("go").touch()
    jobs.file("fail").touch()
    one = jobs.create()
    process = jobs.start("worker", "work.py")
    until("it failed", lambda: jobs.counted(one) == (0, 1, 0))
    assert jobs.pm.history(one)[-1].reason == "the handler raised ValueError: as told"
    jobs.file("fail").unlink()
    two = jobs.create()
    assert jobs.pm.wait(two, states=["done"]).state == "done"
    process.send_signal(signal.SIGINT)
    status, out, err = ended(process)
    assert status == 0
    assert "ValueError: as told" in err
    told = out.splitlines()[1:]
    assert told[0] == f"{one} failed, it is doing: the handler raised ValueError: as told"
    assert set(told[1:]) - {f"{one} done, it is done"} == {f"{two} done, it is done"}  # the first may have had its next attempt


def test_on_a_terminal_it_shows_what_is_in_work(jobs: Board) -> None:
    id = jobs.create()
    screen, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    process = jobs.start("worker", "work.py", stdout=terminal)
    os.close(terminal)
    shown = Screen(screen)
    shown.until(r"task +state +age +lease left +last step")
    shown.until(rf"{id} +doing +0:0[1-9] +0:0[12]")
    jobs.file("go").touch()
    shown.until(rf"{id} done, it is done")
    process.send_signal(signal.SIGTERM)
    shown.until_closed()
    assert process.wait(PATIENCE_S) == 0


class Screen:
    """What a terminal was told, without its control sequences."""

    def __init__(self, end: int):
        self._end, self._text = end, ""

    def until(self, pattern: str) -> None:
        while not re.search(pattern, self._text):
            assert self._read(), self._text

    def until_closed(self) -> None:
        while self._read():
            continue
        os.close(self._end)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._end], [], [], PATIENCE_S)
        assert ready, self._text
        try:
            data = os.read(self._end, 65_536)
        except OSError:  # how Linux says that nobody has the other end open any more
            return False
        self._text += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", data.decode(errors="replace"))
        return bool(data)


def test_it_drains_and_gives_back_what_is_not_done_in_time(jobs: Board) -> None:
    ids = [jobs.create() for _ in range(2)]
    process = jobs.start("worker", "work.py", "--concurrency", "2", "--grace", "6")
    for id in ids:
        jobs.said(f"begun-{id}")
    process.send_signal(signal.SIGTERM)
    threading.Event().wait(LONGER_S)
    assert [jobs.pm.get(id).held for id in ids] == [True, True], "kept while it drains, longer than a lease"
    jobs.file(f"go-{ids[0]}").touch()
    assert ended(process)[0] == 0
    assert [(jobs.pm.get(id).state, jobs.counted(id)) for id in ids] == [("done", (0, 0, 0)), ("todo", (0, 0, 1))]


def test_one_that_is_killed_loses_its_task_after_the_lease_and_another_takes_it(jobs: Board) -> None:
    id = jobs.create()
    dies = jobs.start("worker", "work.py")
    jobs.said(f"begun-{id}")
    dies.kill()
    dies.wait()
    jobs.file("go").touch()
    lives = jobs.start("worker", "work.py", "--as", "worker-b")
    assert jobs.pm.wait(id, states=["done"]).owner == "worker-b"
    kinds = [(entry.kind, entry.by) for entry in jobs.pm.history(id)][1:]
    assert kinds == [("acquire", "worker-a"), ("lapse", "pointsman"), ("acquire", "worker-b"), ("event", "worker-b")]
    lives.send_signal(signal.SIGTERM)
    assert ended(lives)[0] == 0


def test_one_that_was_frozen_past_its_lease_and_replaced_tells_its_handler(jobs: Board) -> None:
    id = jobs.create()
    process = jobs.start("worker", "work.py")
    jobs.said(f"begun-{id}")
    process.send_signal(signal.SIGSTOP)
    taken = jobs.taken_over(id)
    process.send_signal(signal.SIGCONT)
    assert jobs.said(f"lost-{id}") == "lease_lost"
    process.send_signal(signal.SIGTERM)
    status, _, err = ended(process)
    assert (status, f"task {id} is lost" in err, gone(process.pid)) == (0, True, True)
    assert jobs.pm.get(id) == taken


def test_what_is_wrong_with_a_work_file_is_told(jobs: Board) -> None:
    jobs.file("none.py").write_text("from pointsman import Tasks, Worker\nmachines = [Tasks]\nworker = Worker()\n")
    jobs.file("other.py").write_text("from pointsman import Tasks, Worker\nmachines = [Tasks]\nworker = Worker()\nworker.on('x')(print)\n")
    for argv, status, said in (
        (["none.py"], 1, "declares no worker"),
        (["other.py"], 2, "@worker.on('x'): no such machine is served; served: tasks"),
        ([], 2, "name the file"),
        (["work.py", "--concurrency", "0"], 2, "concurrency"),
    ):
        code, _, err = ended(jobs.start("worker", *argv))
        assert (code, said in err, err.count("\n")) == (status, True, 1), err
