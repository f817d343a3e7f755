"""The feed: every committed entry under one gapless number, itself chained.

Numbers are given after the commit, in batches, so that no decision waits for another. The number is the cursor of
readers, the order of the whole board, and the horizon of every look at the past.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pointsman.kernel.chain import GENESIS, digest
from pointsman.store import history
from pointsman.store.database import Tx
from pointsman.types import Instant

BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Head:
    """The last numbered entry; `seq` 0 when there is none."""

    seq: int = 0
    entry: int = 0
    at: Instant = 0
    hash: str = GENESIS


def head(tx: Tx) -> Head:
    row = tx("feed_head")
    return Head() if row is None else Head(*row)


def waits(tx: Tx) -> bool:
    """Whether committed entries have no number yet."""
    return bool(tx("feed_waits")[0])


def number(tx: Tx) -> int:
    """Number a batch of committed entries; how many. The time of the feed never runs backwards."""
    tx("lock_feed")
    last = head(tx)
    rows = tx("unnumbered", limit=BATCH)
    for entry, task, version, at, entry_hash in rows:
        seq = last.seq + 1
        last = Head(seq, entry, max(last.at, at), chained(last.hash, seq, entry_hash))
        tx("add_feed", seq=seq, task=task, version=version, entry=entry, at=last.at, hash=last.hash)
    return len(rows)


def horizon(tx: Tx) -> tuple[int, Instant]:
    """Number a batch, and tell a time before which nothing more will happen once all are numbered: whoever has read an
    earlier one is waited for."""
    tx("wait_for_writers")
    return number(tx), tx.now


def chained(previous: str, seq: int, entry_hash: str) -> str:
    return digest("feed", [previous, seq, entry_hash])


def at_time(tx: Tx, at: Instant) -> int:
    """The last feed number at or before a time; 0 when there is none."""
    row = tx("feed_at", at=at)
    return 0 if row is None else row[0]


def row(tx: Tx, seq: int) -> Head | None:
    found = tx("feed_row", seq=seq)
    return None if found is None else Head(*found)


def version_at(tx: Tx, task_id: str, seq: int) -> int | None:
    """A task's version as of a feed number; None when it did not exist then."""
    found = tx("version_at", task=task_id, seq=seq)
    return None if found is None else found[0]


def board(tx: Tx, seq: int, after: tuple[Instant, str], limit: int) -> list[tuple[str, Instant, int]]:
    """(task, created_at, version) of the tasks that existed as of a feed number."""
    return tx("board_at", seq=seq, after=after[0], after_id=after[1], limit=limit)


def faults(tx: Tx, page: int) -> Iterator[str]:
    """What is wrong with the chain, of which only the first fault is told, since all that follows hangs on it; and
    entries that were slipped in behind it. All of it on one snapshot."""
    last = Head()
    while rows := tx("feed_rows", after=last.seq, limit=page):
        for seq, task, version, entry, at, hash_, *numbered in rows:
            if seq != last.seq + 1:
                yield f"feed number {last.seq + 1} is missing"
                return
            if [task, version] != numbered[:2] or at != max(last.at, numbered[2]) or chained(last.hash, seq, numbered[3]) != hash_:
                yield f"feed number {seq} was altered, or the entry it numbers"
                return
            last = Head(seq, entry, at, hash_)
    for after, upto in history.windows(tx):
        for (key,) in tx("unnumbered_behind", entry=last.entry, after=after, upto=upto):
            yield f"an entry stands behind the feed without a number (key {key})"
