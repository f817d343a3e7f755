"""The tasks table: the current row of each task, which folding its history must give back."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.errors import StoreError
from pointsman.kernel.chain import canonical, parse
from pointsman.kernel.task import TOLD, Attempts, Lease, Task, parsed, plain
from pointsman.store.binding import MOVED
from pointsman.store.database import Row, Tx
from pointsman.store.lanes import Lane
from pointsman.types import EARLIEST, Instant, minutes

PRIORITY_STEP = minutes(1)
"""One step of priority is worth this much waiting, so a higher one goes ahead and nothing starves."""

WOKEN = 500
"""How many tasks one unit puts among those that can be claimed."""

JSON_COLUMNS = ("fields", "evidence", "contributors", "decisions", "tags", "needs", "blocked_by", "attempts", "parked", "joining", "begun")
COLUMNS = (
    "key",
    *("id", "machine", "machine_version", "state", "version", "revision", "digest", "fields", "owner", "owner_root", "session"),
    *("epoch", "priority", "evidence", "contributors", "decisions", "created_by", "created_at", "updated_at"),
    "head",
    "lease_until",
    *("since", "deadline", "run_at", "tags", "needs", "dedupe_key", "parent", "blocked_by", "attempts", "parked", "joining", "begun"),
    "blockers",
)
_KEPT = [name for name in COLUMNS if name not in ("key", "head", "lease_until", "blockers", *JSON_COLUMNS)]


@dataclass(frozen=True, slots=True)
class Stored:
    """A task with its row key, the hash of its last entry, its JSON columns as they stand, and how many tasks it still
    waits for."""

    key: int
    task: Task
    head: str
    texts: Mapping[str, str | None]
    blockers: int


def stored(row: Row, now: Instant) -> Stored:
    """A row as read at a time: whether a lease is live is computed here, and nowhere stored."""
    members = dict(zip(COLUMNS, row, strict=False))
    key, head, until, blockers = (members.pop(name) for name in ("key", "head", "lease_until", "blockers"))
    texts = {name: members[name] for name in JSON_COLUMNS}
    for name, text in texts.items():
        members[name] = _USUAL[name] if text in _USUAL_TEXTS else parsed(name, parse(text))
    members |= {**TOLD, "lease": None if until is None else Lease(until, until > now)}
    return Stored(key, Task.of(members), head, texts, blockers)


def _text(value: Any) -> str | None:
    return None if value is None else canonical(plain(value))


_USUAL: Mapping[str, Any] = {
    **dict.fromkeys(("contributors", "decisions", "tags", "needs", "blocked_by", "begun"), ()),
    "fields": {},
    "evidence": {},
    "attempts": Attempts(),
    "parked": None,
    "joining": None,
}
_USUAL_TEXTS = frozenset(_text(value) for value in _USUAL.values())


def place(task: Task) -> Instant:
    """The stored rank of a task in its queue, lower first: when it may run, less a step per priority."""
    return (task.created_at if task.run_at is None else task.run_at) - task.priority * PRIORITY_STEP


def readiness(task: Task, *, final: bool, blockers: int) -> tuple[int, Instant | None]:
    """Whether the task can be claimed as it stands, and when time alone will make it so. When that time has come, `wake`
    puts it among those that can be claimed."""
    if final or task.parked is not None or task.joining is not None or blockers:
        return 0, None
    if task.owner is not None:
        return 0, None if task.lease is None else task.lease.expires_at
    return (1, None) if task.run_at is None or task.run_at <= task.updated_at else (0, task.run_at)


def columns(task: Task, *, final: bool, head: str, before: Stored | None = None, blockers: int = 0) -> dict[str, Any]:
    """A task as the parameters of its row. What a step left alone keeps the text it had, and it waits for as many others."""
    members, blockers = task.__dict__, blockers if before is None else before.blockers
    values = {name: members[name] for name in _KEPT}
    values |= {name: _text_of(name, task, before) for name in JSON_COLUMNS}
    until = None if task.lease is None else task.lease.expires_at
    ready, wake_at = readiness(task, final=final, blockers=blockers)
    values |= {"final": int(final), "place": place(task), "head": head, "lease_until": until}
    return values | {"ready": ready, "wake_at": wake_at}


def _text_of(name: str, task: Task, before: Stored | None) -> str | None:
    value = task.__dict__[name]
    return before.texts[name] if before is not None and value is before.task.__dict__[name] else _text(value)


def find(tx: Tx, task_id: str) -> Stored | None:
    row = tx("find_task", id=task_id)
    return None if row is None else stored(row, tx.now)


def find_all(tx: Tx, task_ids: Collection[str]) -> dict[str, Stored]:
    """Those of these tasks that exist, by id, all locked."""
    return {row[1]: stored(row, tx.now) for row in tx("find_tasks", ids=canonical(sorted(task_ids)))}


def wake_ahead(tx: Tx, machine: str) -> None:
    """`can_wake` is asked next."""
    tx.ahead("next_wake", machine=machine)


def can_wake(tx: Tx, machine: str) -> bool:
    """Whether `wake` has work."""
    now, found = tx.now, tx("next_wake", machine=machine)
    return found is not None and found[0] <= now


def wake(tx: Tx, machine: str, *, waiting: bool = False) -> int:
    """Put tasks that time alone has made claimable (a lease ran out, or the time to run has come) among those that can be
    claimed; how many. The flag is a hint: whoever decides on a task judges its lease anew."""
    statement = "wake_at_last" if waiting else "wake"
    return len(tx(statement, machine=machine, now=tx.now, limit=WOKEN))


def next_in_lane(tx: Tx, lane: Lane, start: tuple[Instant, int], limit: int, *, waiting: bool) -> list[Stored]:
    """The first tasks of a lane from a place and key on, locked. Rows that others hold are passed over, or waited for."""
    where = {"machine": lane.machine, "machine_version": lane.machine_version, "state": lane.state, "lane": lane.key}
    statement = "next_in_lane_at_last" if waiting else "next_in_lane"
    rows = tx(statement, **where, place=start[0], from_key=start[1], limit=limit)
    return [stored(row, tx.now) for row in rows]


@dataclass(frozen=True, slots=True)
class Due:
    """A task whose deadline has passed, as it was looked at."""

    deadline: Instant
    key: int
    id: str
    machine: str
    machine_version: int
    state: str
    updated_at: Instant
    tags: tuple[str, ...]
    parked: str | None


def due(tx: Tx, after: Due | None, limit: int) -> list[Due]:
    """A page of the tasks whose deadline has passed, the longest due first."""
    last = (EARLIEST, 0) if after is None else (after.deadline, after.key)
    rows = tx("tasks_due", now=tx.now, after=last[0], after_key=last[1], limit=limit)
    return [
        Due(at, key, id, machine, version, state, updated_at, parsed("tags", parse(tags)), parked)
        for at, key, id, machine, version, state, updated_at, tags, parked in rows
    ]


@dataclass(frozen=True, slots=True)
class Untouched:
    """A task that has not moved for a while, as far as holds look at it."""

    machine: str
    machine_version: int
    tags: tuple[str, ...]
    updated_at: Instant
    owner: str | None


def untouched(tx: Tx, state: str, since: Instant, limit: int) -> list[Untouched]:
    """Tasks of a state that have not moved since a time and may be acquired as they are, now or later; the longest untouched first."""
    rows = tx("tasks_untouched", state=state, since=since, limit=limit)
    return [Untouched(machine, version, parsed("tags", parse(tags)), *rest) for machine, version, tags, *rest in rows]


def renew(tx: Tx, task: Stored, until: Instant) -> bool:
    """Move the end of a lease, while the task still is in the epoch that was read; no entry."""
    return tx("renew_lease", key=task.key, epoch=task.task.epoch, lease_until=until) is not None


def prolong(tx: Tx, task_id: str, until: Instant) -> None:
    """Keep a lease from running out before a time, whoever holds it."""
    tx("prolong_lease", id=task_id, lease_until=until)


def unblock(tx: Tx, task: Stored, *, final: bool) -> bool:
    """A task waits for one other less, while it still is what was read; no entry."""
    left = task.blockers - 1
    ready, wake_at = readiness(task.task, final=final, blockers=left)
    found = tx("unblock_task", key=task.key, version=task.task.version, expected=task.blockers, blockers=left, ready=ready, wake_at=wake_at)
    return found is not None


_FIXED = ("id", "machine", "machine_version", "priority", "created_by", "created_at", "tags", "needs", "dedupe_key", "parent", "blocked_by")


@dataclass(frozen=True, slots=True)
class Moved:
    """A step as the tasks table keeps it: the row it moves, or None where it makes one, which waits for `blockers` others;
    and the hash of its entry."""

    before: Stored | None
    after: Task
    final: bool
    head: str
    blockers: int = 0


def put(tx: Tx, moved: Moved, lane: int | None) -> int:
    """Write a step's row; its key. One that is not what was read any more is the end of the unit. A lane of None stays."""
    before = moved.before
    if before is None:
        return tx("add_task", **_added(moved, lane))[0]
    if lane is None and all(before.task.__dict__[name] is moved.after.__dict__[name] for name in _LEFT):
        tx("stay_task", **_stayed(moved, before))
    else:
        tx("advance_task", **_advanced(moved, before, lane))
    return before.key


def put_all(tx: Tx, moves: Sequence[tuple[Moved, int | None]]) -> dict[str, int]:
    """The same for the rows of many tasks; their keys by id. All of them are what was read, or nothing of the unit is done."""
    added = [_added(moved, lane) for moved, lane in moves if moved.before is None]
    advanced = [_advanced(moved, moved.before, lane) for moved, lane in moves if moved.before is not None]
    keys = {moved.after.id: moved.before.key for moved, _ in moves if moved.before is not None}
    if added:
        keys |= {task: key for key, task in tx("add_tasks", rows=canonical(added))}
    if advanced and len(tx("advance_tasks", rows=canonical(advanced))) != len(advanced):
        raise StoreError("store_busy", MOVED)
    return keys


def _added(moved: Moved, lane: int | None) -> dict[str, Any]:
    values = columns(moved.after, final=moved.final, head=moved.head, blockers=moved.blockers)
    return {**values, "blockers": moved.blockers, "lane": lane}


def _advanced(moved: Moved, before: Stored, lane: int | None) -> dict[str, Any]:
    values = columns(moved.after, final=moved.final, head=moved.head, before=before)
    for name in _FIXED:
        del values[name]
    return {**values, "key": before.key, "lane": lane, "expected_version": before.task.version, "expected_epoch": before.task.epoch}


_STAYING = ("version", "updated_at", "head", "begun", "lease_until", "ready", "wake_at")
_LEFT = tuple(name for name in (*_KEPT, *JSON_COLUMNS) if name not in _STAYING)
"""What a task keeps by a step that leaves it where it is: all that `stay_task` does not write."""


def _stayed(moved: Moved, before: Stored) -> dict[str, Any]:
    task, begun = moved.after, _text_of("begun", moved.after, before)
    until = None if task.lease is None else task.lease.expires_at
    ready, wake_at = readiness(task, final=moved.final, blockers=before.blockers)
    values = (task.version, task.updated_at, moved.head, begun, until, ready, wake_at)
    named = dict(zip(_STAYING, values, strict=True))
    return {**named, "key": before.key, "expected_version": before.task.version, "expected_epoch": before.task.epoch}
