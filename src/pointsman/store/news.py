"""What is told to those who wait: the topics of what a unit of work changed, or of what another process committed."""

from pointsman.kernel.task import Task
from pointsman.store.database import Row, Topic, Tx
from pointsman.store.hints import FEED, OUTBOX, of_queue, of_task

MOST = 1_000
"""More entries than these are not read one by one: then everybody is told."""


def note(tx: Tx, task: Task, *, final: bool) -> None:
    """A task moved. One that nobody owns now, or that has come to its end, may leave something to be taken."""
    tx.news.update(_topics(task.id, task.machine, opens=final or task.owner is None))


def since(tx: Tx, last: int | None) -> tuple[int, set[Topic] | None]:
    """The key of the last entry, and the topics of the entries beyond `last`; None for all topics."""
    rows: list[Row] = [] if last is None else tx("changes_after", after=last, limit=MOST)
    if last is None or len(rows) == MOST:
        return tx("last_entry")[0], None
    told = {topic for _, task, machine, opens in rows for topic in _topics(task, machine, opens=bool(opens))}
    told.update([OUTBOX] if rows else [])  # an entry does not say whether it tells the outside anything
    return (rows[-1][0] if rows else last), told


def _topics(task: str, machine: str, *, opens: bool) -> tuple[Topic, ...]:
    return (FEED, of_task(task), of_queue(machine)) if opens else (FEED, of_task(task))
