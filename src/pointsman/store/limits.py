"""Uses of limits: what accepted events took, as long as it counts."""

from collections.abc import Iterable

from pointsman.kernel.case import Used
from pointsman.kernel.definition import Limit
from pointsman.kernel.limits import Use
from pointsman.store.database import Tx
from pointsman.types import EARLIEST, Duration, Instant, minutes

Kept = tuple[str, int, Use]
"""A use with the task and the version of the entry that made it."""

BATCH = 1_000

LATE: Duration = minutes(1)
"""For how long a use is kept beyond its window: somebody may still be counting by a time that was read before it ended."""


def lock(tx: Tx, name: str, subject: str) -> None:
    """From here to the end of the unit nobody else decides on what is left of a limit for this subject."""
    tx("lock_limit", name=name, subject=subject)


def used(tx: Tx, limit: Limit, subject: str, now: Instant, but: str | None = None) -> Used:
    """What is used of a limit. A task that has a place keeps it when somebody takes it over: its own does not count."""
    since = EARLIEST if limit.per is None else now - limit.per
    row = tx("uses_of_limit", name=limit.name, subject=subject, since=since, but=but if limit.per is None else None)
    return Used(*row)


def add(tx: Tx, task: str, version: int, uses: Iterable[Use]) -> None:
    for use in uses:
        row = {"name": use.name, "subject": use.subject, "amount": use.amount, "at": use.at, "ends": use.ends}
        tx("add_use", task=task, version=version, **row)


def free(tx: Tx, task: str) -> None:
    """A task has its owner no more, and with it no place."""
    tx("free_places", task=task)


def ended(tx: Tx) -> bool:
    """Whether `forget` has work."""
    return bool(tx("some_use_ended", before=tx.now - LATE)[0])


def forget(tx: Tx) -> int:
    """Drop a batch of uses that no window holds any more, nor that of anybody who still decides; how many."""
    return len(tx("uses_ended", before=tx.now - LATE, limit=BATCH))


def after(tx: Tx, last: Kept | None, limit: int) -> list[Kept]:
    task, version, name = ("", 0, "") if last is None else (last[0], last[1], last[2].name)
    rows = tx("uses_after", after_task=task, after_version=version, after_name=name, limit=limit)
    return [(task, version, Use(*use)) for task, version, *use in rows]
