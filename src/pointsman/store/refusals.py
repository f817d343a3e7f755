"""The refusal log: the last refusals, for operators. Volatile, bounded, written outside any decision."""

from dataclasses import dataclass

from pointsman.errors import Refusal
from pointsman.store.database import Tx
from pointsman.types import Instant

KEPT = 10_000
TRIM_EVERY = 20


@dataclass(frozen=True, slots=True)
class Logged:
    at: Instant
    task: str | None
    event: str
    by: str
    door: str
    code: str
    detail: str


def log(tx: Tx, refusal: Refusal, event: str, by: str, door: str) -> None:
    values = {"task": refusal.task, "event": event, "by": by, "door": door, "code": refusal.code, "detail": refusal.detail}
    key = tx("add_refusal", at=tx.now, **values)[0]
    if key % TRIM_EVERY == 0:
        tx("trim_refusals", upto=key - KEPT)


def latest(tx: Tx, limit: int) -> list[Logged]:
    return [Logged(*row) for row in tx("latest_refusals", limit=limit)]
