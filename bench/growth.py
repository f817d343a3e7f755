"""What must not grow: the past of a task, pages of a board and the next claim, on small and on large ones at once."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench import load
from bench.flat import DRAFT
from bench.load import FIELDS
from bench.python_api import BY, drafting, opened
from bench.table import Effort, Line
from pointsman import Pointsman, Task
from pointsman.store.snapshots import EVERY

PAGE = 50
BOARD = 25
EARLY = 20
QUEUED = 1_000
AWAITING = 20
Call = Callable[[], object]


def figures(folder: Path, effort: Effort) -> list[Line]:
    return [*versions(folder, effort), *boards(folder, effort), *claims(folder, effort)]


def versions(folder: Path, effort: Effort) -> list[Line]:
    """One task with ever more versions."""
    with ExitStack() as stack:
        made = {size: _deep(stack.enter_context(opened(folder)), size) for size in effort.past}
        asked = {
            f"history, the last {PAGE} entries": lambda pm, task, size: pm.history(task.id, PAGE),
            f"history, {PAGE} entries from the middle": lambda pm, task, size: pm.history(task.id, PAGE, after=size // 2),
            "state at a version, farthest from a snapshot": lambda pm, task, size: pm.get(task.id, version=_far(size)),
        }
        return [
            flat(
                f"{name}; {{}} versions", {size: lambda ask=ask, own=own, size=size: ask(*own, size) for size, own in made.items()}, effort
            )
            for name, ask in asked.items()
        ]


def boards(folder: Path, effort: Effort) -> list[Line]:
    """A board with ever more tasks, a few of which await approval."""
    with ExitStack() as stack:
        made = {size: _wide(stack.enter_context(opened(folder)), size) for size in effort.past}
        asked = {
            f"board, first page of {BOARD}": lambda pm, mid, size: pm.list(limit=BOARD),
            f"board, a page of {BOARD} from the middle": lambda pm, mid, size: pm.list(limit=BOARD, after=mid),
            f"board, first page of {BOARD} by priority": lambda pm, mid, size: pm.list(limit=BOARD, open=True, order="priority"),
            f"the {AWAITING} tasks awaiting approval": lambda pm, mid, size: pm.list(state="awaiting_approval", order="updated_at"),
            f"the {AWAITING} open tasks of one owner": lambda pm, mid, size: pm.list(owner=BY, open=True),
            f"board as of feed number {EARLY}": lambda pm, mid, size: pm.list(at=f"#{EARLY}", limit=BOARD),
            f"board as of half its feed, first {BOARD}": lambda pm, mid, size: pm.list(at=f"#{size // 2}", limit=BOARD),
            f"the board's history, the last {PAGE} entries": lambda pm, mid, size: pm.history(n=PAGE),
        }
        return [
            flat(f"{name}; {{}} tasks", {size: lambda ask=ask, own=own, size=size: ask(*own, size) for size, own in made.items()}, effort)
            for name, ask in asked.items()
        ]


def claims(folder: Path, effort: Effort) -> Iterator[Line]:
    """The next task, claimed durably: of ever longer queues, and behind others that this claimer is not to have."""
    with ExitStack() as stack:
        made = {size: _waiting(stack.enter_context(opened(folder)), size) for size in effort.queued}
        yield flat("claim next, durable; {} queued", {size: partial(claim, pm) for size, pm in made.items()}, effort)
    for name, terms in BEHIND.items():
        with ExitStack() as stack:
            made = {size: _behind(stack.enter_context(opened(folder)), size, terms) for size in (0, effort.behind)}
            yield flat(f"claim next, durable; behind {{}} {name}", {size: partial(claim, pm) for size, pm in made.items()}, effort)
    with ExitStack() as stack:
        made = {lanes: _apart(stack.enter_context(opened(folder)), lanes) for lanes in (1, QUEUED)}
        yield flat("claim next, durable; of tasks in {} lanes", {lanes: partial(claim, pm) for lanes, pm in made.items()}, effort)


BEHIND: Mapping[str, Mapping[str, Any]] = {
    "not due yet": {"run_at": "2999-01-01T00:00:00Z", "priority": 1_000},
    "that need what the claimer lacks": {"needs": ["gpu"], "priority": 1_000},
}
"""What stands before the tasks that are to be had."""


def claim(pm: Pointsman) -> None:
    assert pm.claim("tasks", by=BY) is not None, "the queue is long enough"


def flat(name: str, calls: Mapping[int, Call], effort: Effort) -> Line:
    """The median of each size, all sizes in turn so that they meet the same weather, and the last by the first."""
    times: dict[int, list[float]] = {size: [] for size in calls}
    for call in calls.values():
        call()
    for _ in range(effort.looks):
        for size, call in calls.items():
            began = time.perf_counter()
            call()
            times[size].append(time.perf_counter() - began)
    medians = [1000 * statistics.median(taken) for taken in times.values()]
    sizes = " / ".join(f"{size:,}" for size in calls)
    return Line(
        name.format(sizes),
        " / ".join(f"{each:.2f}" for each in medians) + " ms",
        ratio=f"{medians[-1] / medians[0]:.2f}",
        aim="growth ≤ 1.3",
    )


def _deep(pm: Pointsman, size: int) -> tuple[Pointsman, Task]:
    task = drafting(pm)
    load.move(pm, task, size - task.version)
    pm.head()  # numbers what was committed, as a running server does
    return pm, task


def _far(size: int) -> int:
    return (size // 2) // EVERY * EVERY + EVERY - 1


def _wide(pm: Pointsman, size: int) -> tuple[Pointsman, Task]:
    load.queue(pm, size // 2)
    middle = drafting(pm)
    load.queue(pm, size - size // 2 - AWAITING)
    for task in [drafting(pm) for _ in range(AWAITING)]:
        pm.propose(task.id, "request_approval", {"draft": DRAFT}, by=BY, epoch=task.epoch)
    pm.head()
    return pm, middle


def _waiting(pm: Pointsman, size: int) -> Pointsman:
    load.fill(pm, size)
    return pm


def _behind(pm: Pointsman, size: int, terms: Mapping[str, Any]) -> Pointsman:
    load.fill(pm, size, **terms)
    return _waiting(pm, QUEUED)


def _apart(pm: Pointsman, lanes: int) -> Pointsman:
    """A queue of tasks each of which is called one of so many names."""
    pm.create_batch([{"fields": FIELDS, "tags": [f"kind-{number % lanes}"]} for number in range(QUEUED)], by=BY, machine="tasks")
    return pm
