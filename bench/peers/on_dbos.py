"""DBOS: workflows of ten steps, and one that hangs in a step and is resumed when the program starts again."""

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dbos import DBOS
from driver import rate, say, start

STEPS = 10


def _opened(url: str) -> None:
    config: Any = {"name": "bench", "system_database_url": url, "log_level": "CRITICAL", "executor_id": "bench", "application_version": "1"}
    DBOS(config=config)


@DBOS.step()
def step() -> int:
    return 1


@DBOS.workflow()
def ten() -> int:
    return sum(step() for _ in range(STEPS))


hangs = True


@DBOS.step()
def stuck() -> None:
    if hangs:
        say(started=True)
        threading.Event().wait()
    say(again=True)


@DBOS.workflow()
def stuck_once() -> None:
    stuck()


def setup(url: str) -> None:
    _opened(url)
    DBOS.launch()
    DBOS.destroy()


def steps(url: str, callers: int, count: int) -> None:
    _opened(url)
    DBOS.launch()
    flows = count // STEPS
    with ThreadPoolExecutor(callers) as pool:
        began = time.perf_counter()
        assert sum(pool.map(lambda _: ten(), range(flows))) == flows * STEPS
        rate(flows * STEPS, began)
    DBOS.destroy()


def steps_on_a_file(_url: str, callers: int, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        steps(f"sqlite:///{folder}/steps.db", callers, count)


def hang(url: str) -> None:
    _opened(url)
    DBOS.launch()
    stuck_once()


def recover(url: str) -> None:
    global hangs
    hangs = False
    _opened(url)
    DBOS.launch()
    threading.Event().wait()


start(setup=setup, steps=steps, steps_on_a_file=steps_on_a_file, hang=hang, recover=recover)
