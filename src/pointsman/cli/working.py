"""What `pointsman worker` shows: on a terminal a table of what is in work, drawn anew every second; elsewhere a line for each task
that was in work, with `--json` an object."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any

from pointsman.cli import output
from pointsman.worker.outcomes import Cancel, Defer, Done, End, Fail, Lost, Waits
from pointsman.worker.worker import Ended, InHand

REDRAWN_S = 1.0
COLUMNS = ("task", "state", "age", "lease left", "last step")
NAMES = {Done: "done", Fail: "failed", Defer: "put off", Cancel: "cancelled", Waits: "waits for a person", Lost: "lost"}

Told = SimpleQueue[int]


def watch(told: Told, in_hand: Callable[[], Sequence[InHand]], *, json: bool) -> None:
    """Until something is told: a signal, by its number."""
    if json or not output.is_terminal():
        told.get()
        return
    with _drawing() as draw:
        while _silent(told):
            draw(in_hand())


def ended(ended: Ended, *, json: bool) -> None:
    """How one task ended. On a terminal it is told beside the table."""
    if json:
        output.as_json(_as_json(ended), indent=None)
    else:
        reason = _reason(ended.end)
        output.line(output.visible(f"{ended.task.id} {_name(ended.end)}, it is {ended.task.state}" + (f": {reason}" if reason else "")))
    sys.stdout.flush()


def row(item: InHand) -> tuple[str, ...]:
    """What is shown of a task in work; a lease that is over has nothing left."""
    left = "" if item.left_s is None else _span(max(0.0, item.left_s))
    return tuple(output.visible(cell) for cell in (item.task.id, item.task.state, _span(item.age_s), left, item.last))


def _silent(told: Told) -> bool:
    try:
        told.get(timeout=REDRAWN_S)
    except Empty:
        return True
    return False


@contextmanager
def _drawing() -> Iterator[Callable[[Sequence[InHand]], None]]:
    from rich.live import Live

    with Live(_table(()), auto_refresh=False) as live:
        yield lambda items: live.update(_table(items), refresh=True)


def _table(items: Sequence[InHand]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, no_wrap=column == "task", justify="right" if column in ("age", "lease left") else "left")
    for item in items:
        table.add_row(*(Text(cell) for cell in row(item)))
    return table


def _span(span_s: float) -> str:
    minutes, rest = divmod(round(span_s), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _name(end: End) -> str:
    return "returned" if end is None else NAMES[type(end)]


def _reason(end: End) -> str | None:
    return None if end is None or isinstance(end, Done) else end.reason


def _as_json(ended: Ended) -> dict[str, Any]:
    task = ended.task
    known = {"task": task.id, "machine": task.machine, "state": task.state, "version": task.version, "epoch": task.epoch}
    return {**known, "end": _name(ended.end).replace(" ", "_"), "reason": _reason(ended.end)}
