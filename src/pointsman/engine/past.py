"""The past: any task at any version, feed number or time, the whole board as it was, and the difference of two versions.

Every look goes over feed numbers: a time is first turned into the last number at or before it. What is committed is
numbered before it is read, so the board as of a past moment never changes. A task is folded from the nearest snapshot,
so the cost does not grow with its history.
"""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from pointsman.engine.registry import Registry
from pointsman.engine.steps import Read, Steps, Write
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.chain import same
from pointsman.kernel.task import Task, apply
from pointsman.store import feed, history, snapshots, tasks
from pointsman.store.database import Tx
from pointsman.store.history import Recorded
from pointsman.store.lists import Position
from pointsman.types import Instant, Json, instant

LONG_TEXT = 200
LOOKED_BACK = 1_000
BOARD_PAGE = 200


def numbered() -> Steps[None]:
    """Number what is committed; a reader who comes later sees no more than this."""
    if (yield Read(feed.waits)):
        while (yield Write(feed.number)) == feed.BATCH:
            pass


def moment(at: str | Instant) -> Steps[int]:
    """The feed number that `at` means: "#N", RFC 3339 text, or µs. A past moment always means the same one."""
    if isinstance(at, str) and at.startswith("#"):
        yield from numbered()
        return _feed_number((yield Read(feed.head)).seq, at[1:])
    try:
        time = instant(at) if isinstance(at, str) else at
    except (ValueError, OverflowError):
        raise invalid(("at", "a time such as 2026-01-31T12:00:00Z, or a feed number such as #57")) from None
    if time > (yield from _horizon()):
        raise invalid(("at", "must not lie in the future"))
    return (yield Read(lambda tx: feed.at_time(tx, time)))


def _horizon() -> Steps[Instant]:
    """A time before which nothing more will happen, with everything before it numbered."""
    while True:
        count, now = yield Write(feed.horizon)
        if count < feed.BATCH:
            return now


def _feed_number(last: int, digits: str) -> int:
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18 or int(digits) > last:
        raise invalid(("at", f"a feed number from #0 to #{last}"))
    return int(digits)


def at_version(tx: Tx, task_id: str, version: int) -> tuple[Recorded, Task]:
    """A task as it was at a version, with the entry that made it so. Folds at most `snapshots.EVERY` entries. Of a task whose
    payloads were pruned only the last version is left, which is the live row."""
    near = snapshots.before(tx, task_id, version)
    start, kept = near if near is not None else (0, None)
    task = None if kept is None else apply(None, task_id, start, kept["at"], kept["changes"])
    entries = history.of_task(tx, task_id, start - 1 if start == version else start, version)
    if not entries or entries[-1].link.version != version:
        raise Refused(Refusal("unknown_task", "no task has this id and this version", task=task_id))
    if entries[-1].body is None:
        return entries[-1], _left(tx, task_id, version)
    for entry in entries:
        task = task if entry.link.version <= start else step(task, entry)
    assert task is not None, "a first entry makes a task"
    return entries[-1], task


def _left(tx: Tx, task_id: str, version: int) -> Task:
    found = tasks.find(tx, task_id)
    if found is None or found.task.version != version:
        raise _gone(task_id)
    return found.task.but(lease=None)


def _gone(task_id: str) -> Refused:
    return Refused(Refusal("pruned", "this version's payload was pruned; the task's history still names who did what", task=task_id))


def step(task: Task | None, recorded: Recorded) -> Task:
    """Fold one entry into the task before it."""
    payload = recorded.payload
    if payload is None:
        raise _gone(recorded.link.task)
    return apply(task, recorded.link.task, recorded.link.version, recorded.link.at, payload["changes"])


def task_at(tx: Tx, task_id: str, seq: int) -> Task:
    """A task as of a feed number."""
    version = feed.version_at(tx, task_id, seq)
    if version is None:
        raise Refused(Refusal("unknown_task", "no task had this id then", task=task_id))
    return at_version(tx, task_id, version)[1]


def board(tx: Tx, seq: int, start: Position) -> Iterator[Task]:
    """Every task as of a feed number that follows `start` in order of creation."""
    while rows := feed.board(tx, seq, start, BOARD_PAGE):
        for task_id, created_at, version in rows:
            yield at_version(tx, task_id, version)[1]
            start = (created_at, task_id)
        if len(rows) < BOARD_PAGE:
            return


def what_changed(registry: Registry, refusal: Refusal, tx: Tx) -> list[dict[str, Json]]:
    """For a refusal of stale content: the content fields that differ from what was shown. Looks back over at most
    `LOOKED_BACK` entries; empty when none of them had that digest."""
    found = None if refusal.task is None else tasks.find(tx, refusal.task)
    if found is None:
        return []
    task = found.task
    moves = (entry for entry in history.latest_of_task(tx, task.id, LOOKED_BACK) if _digest(entry) == refusal.extra["shown"])
    shown = next(moves, None)
    if shown is None:
        return []
    before = at_version(tx, task.id, shown.link.version)[1]
    content = registry.definition(tx, task.machine, task.machine_version).content
    moved = [name for name in content if not same(before.fields[name], task.fields[name])]
    return [{"field": name, "shown_at_version": before.version} for name in moved]


def _digest(entry: Recorded) -> str | None:
    """The content digest that an entry brought, if it changed content."""
    return (entry.payload or {}).get("changes", {}).get("digest")


def difference(one: Task, other: Task) -> dict[str, Json]:
    """What moved between two versions of a task; a long text as a unified diff."""
    names = [name for name in other.fields if name not in one.fields or not same(one.fields[name], other.fields[name])]
    return {
        "from": one.version,
        "to": other.version,
        "state": {"from": one.state, "to": other.state},
        "fields": {name: _field_difference(name, one.fields, other.fields) for name in names},
    }


def _field_difference(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Json]:
    before, after = one.get(name), other[name]
    moved: dict[str, Json] = {"from": before, "to": after}
    if all(isinstance(value, str | None) for value in (before, after)) and max(len(before or ""), len(after or "")) > LONG_TEXT:
        lines = (before or "").splitlines(), (after or "").splitlines()
        moved["text"] = "\n".join(unified_diff(*lines, "before", "after", lineterm=""))
    return moved
