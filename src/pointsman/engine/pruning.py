"""Removing what need not be kept for ever: what may go is written down first, then it goes, a little at a time.

A process that dies in the middle leaves a whole database; the next pruning takes away the rest.
"""

from collections.abc import Callable
from dataclasses import replace

from pointsman.errors import invalid
from pointsman.store import pruning
from pointsman.store.database import Database, Tx
from pointsman.store.pruning import Removed
from pointsman.types import Duration, Instant

Told = Callable[[Removed], None]
"""Is told, after each transaction, what went so far."""

LONGEST: Duration = 100 * 365 * 86_400 * 1_000_000


def prunable(db: Database, older_than: Duration, *, payloads: bool) -> Removed:
    """What `prune` would remove now."""
    _see_that_it_is_an_age(older_than)
    return db.read(lambda tx: pruning.prunable(tx, tx.now - older_than, payloads))


def prune(db: Database, older_than: Duration, *, payloads: bool, told: Told) -> Removed:
    """Remove what is older; what went."""
    _see_that_it_is_an_age(older_than)
    before = db.run(lambda tx: _begun(tx, older_than, payloads))
    removed = Removed(refusals=db.run(lambda tx: pruning.refusals(tx, before)))
    told(removed)
    for table in pruning.TABLES:
        for count in pruning.windows(db, table, before):
            removed = replace(removed, **{table.name: getattr(removed, table.name) + count})
            told(removed)
    return _without_payloads(db, before, removed, told) if payloads else removed


def _begun(tx: Tx, older_than: Duration, payloads: bool) -> Instant:
    before = tx.now - older_than
    pruning.begin(tx, before, payloads)
    return before


def _without_payloads(db: Database, before: Instant, removed: Removed, told: Told) -> Removed:
    for ids in pruning.final_tasks(db, before):
        count = db.run(_dropping(ids))
        removed = replace(removed, tasks=removed.tasks + count)
        told(removed)
    return removed


def _dropping(ids: list[str]) -> Callable[[Tx], int]:
    return lambda tx: pruning.drop(tx, ids)


def _see_that_it_is_an_age(older_than: Duration) -> None:
    if type(older_than) is not int or not 0 <= older_than <= LONGEST:
        raise invalid(("older_than", "an age from 0 to 100 years, in µs"))
