"""Idempotency records: which step answered a principal's key.

The row is inserted in the step's own transaction. Two transactions with one key cannot both commit, so whether an
unknown COMMIT happened is settled by running the unit again: it finds the row, or it inserts it.
"""

from dataclasses import dataclass

from pointsman.store.database import Tx
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Request:
    """An idempotency key with the digest of the request it stands for."""

    principal: str
    key: str
    digest: str


@dataclass(frozen=True, slots=True)
class Answered:
    digest: str
    task: str
    version: int


def find(tx: Tx, request: Request) -> Answered | None:
    """What was answered under a key; whoever asks under it at the same moment is waited for."""
    tx("take_key", principal=request.principal, key=request.key)
    row = tx("find_request", principal=request.principal, key=request.key)
    return None if row is None else Answered(*row)


def keep(tx: Tx, request: Request, task_id: str, version: int, at: Instant) -> None:
    tx("add_request", principal=request.principal, key=request.key, digest=request.digest, task=task_id, version=version, at=at)
