"""Figures of the Python API on SQLite: transitions beside the closure floor, and what one transition is made of."""

import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bench import closure
from bench.table import Effort, Line, beside
from pointsman import Pointsman, Task

BY = "bench"


def figures(folder: Path, effort: Effort) -> list[Line]:
    return [*(transitions(folder, callers, effort) for callers in (1, 8, 32)), statements(folder), *hot(folder, 10 * effort.looks)]


def transitions(folder: Path, callers: int, effort: Effort) -> Line:
    return beside(
        f"Python API, transitions, {callers} caller{'s' if callers > 1 else ''}",
        lambda: closure.floor(folder, callers, effort.seconds),
        lambda: proposals(folder, callers, effort.seconds),
        effort,
        "≥ 0.5, aim 0.8",
    )


def proposals(folder: Path, callers: int, seconds: float) -> float:
    """`start_draft` again and again (drafting to drafting is a move), each caller on its own task."""
    with opened(folder) as pm:
        return closure.rate([again(pm, drafting(pm)) for _ in range(callers)], seconds)


@contextmanager
def opened(folder: Path, **options: Any) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{folder}/bench-{uuid.uuid4()}.db", **options) as pm:
        yield pm


def drafting(pm: Pointsman) -> Task:
    task = pm.create("tasks", {"title": "Release notes", "brief": "Say what changed in version two"}, by=BY)
    claimed = pm.claim("tasks", by=BY, id=task.id)
    assert claimed is not None
    return pm.propose(task.id, "start_draft", by=BY, epoch=claimed.epoch)


def again(pm: Pointsman, task: Task) -> Callable[[], Task]:
    return lambda: pm.propose(task.id, "start_draft", by=BY, epoch=task.epoch)


def statements(folder: Path) -> Line:
    """How many named statements one transition runs, counted by the store's probe."""
    names: list[str] = []
    with opened(folder, probe=names.append) as pm:
        repeat = again(pm, drafting(pm))
        repeat()
        names.clear()
        repeat()
    ran = Counter(name.removeprefix("before:") for name in names if name.startswith("before:"))
    listed = ", ".join(name if count == 1 else f"{name} x{count}" for name, count in ran.items())
    return Line("named statements per transition", str(ran.total()), listed)


def hot(folder: Path, calls: int) -> list[Line]:
    """The six functions with the most time of their own, over all threads, as shares of all time spent working. The first
    is as a rule the COMMIT, which is the disk."""
    with profiled() as own, opened(folder) as pm:
        repeat = again(pm, drafting(pm))
        own.clear()
        for _ in range(calls):
            repeat()
    total = sum(own.values())
    return [Line(f"hot function {rank}", f"{100 * spent / total:.0f} %", name) for rank, (name, spent) in enumerate(own.most_common(6), 1)]


@contextmanager
def profiled() -> Iterator[Counter[str]]:
    """Own time by function, in this thread and in those started inside. Time spent waiting for a lock is left out."""
    own: Counter[str] = Counter()
    stacks: dict[int, list[tuple[str, int]]] = {}

    def watch(frame: FrameType, event: str, arg: Any) -> None:
        now = time.perf_counter_ns()
        stack = stacks.setdefault(threading.get_ident(), [])
        if stack:
            name, since = stack[-1]
            if not name.startswith("waiting"):
                own[name] += now - since
        if event in ("call", "c_call"):
            stack.append((_name(frame, event, arg), 0))
        elif stack:
            stack.pop()
        if stack:
            stack[-1] = (stack[-1][0], time.perf_counter_ns())

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield own
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # pyright: ignore[reportArgumentType]


def _name(frame: FrameType, event: str, arg: Any) -> str:
    """A function by module and name; one written in C also by who called it, which tells a COMMIT from a SELECT."""
    code = frame.f_code
    written = f"{frame.f_globals.get('__name__', '')}.{getattr(code, 'co_qualname', code.co_name)}"
    if event != "c_call":
        return written
    name = getattr(arg, "__qualname__", repr(arg))
    owner = type(getattr(arg, "__self__", None)).__name__
    waits = owner in ("lock", "RLock", "SimpleQueue") and name.split(".")[-1] in ("acquire", "get", "__enter__")
    return f"waiting in {name}" if waits else f"{name}, called by {written}"
