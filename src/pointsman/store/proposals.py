"""Proposals whose checks outlive one transaction: durable before the check begins, one pending per task.

`claimed_until` says until when some process works on it; when it dies, another takes over. All other columns are
covered by the row's own hash.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from pointsman.kernel.chain import canonical, digest, parse
from pointsman.store.database import Tx
from pointsman.store.hints import of_task
from pointsman.types import Duration, Instant, seconds

Status = Literal["pending", "accepted", "refused", "superseded"]
HELD: Duration = seconds(3)
"""How long a process that works on a proposal keeps it without a sign of life."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One row. `asked` and `refusal` are canonical JSON; `version` is the accepted step's."""

    id: str
    task: str
    event: str
    asked: str
    principal: str
    request_key: str
    request_digest: str
    created_at: Instant
    status: Status = "pending"
    version: int | None = None
    refusal: str | None = None
    settled_at: Instant | None = None
    hash: str = ""

    @property
    def call(self) -> dict[str, Any]:
        return parse(self.asked)

    @property
    def refused(self) -> dict[str, Any] | None:
        return None if self.refusal is None else parse(self.refusal)

    @property
    def sealed(self) -> "Kept":
        return replace(self, hash=digest("proposal", [getattr(self, name) for name in self.__slots__ if name != "hash"]))


def _read(row: Any) -> Kept | None:
    return None if row is None else Kept(*row)


def find(tx: Tx, proposal_id: str) -> Kept | None:
    return _read(tx("find_proposal", id=proposal_id))


def requested(tx: Tx, principal: str, key: str) -> Kept | None:
    return _read(tx("requested_proposal", principal=principal, request_key=key))


def pending(tx: Tx, task_id: str) -> Kept | None:
    return _read(tx("pending_of_task", task=task_id))


def add(tx: Tx, proposal: Kept) -> None:
    row = proposal.sealed
    tx("add_proposal", **{name: getattr(row, name) for name in row.__slots__}, claimed_until=tx.now + HELD)


def settle(
    tx: Tx, proposal: Kept, status: Status, at: Instant, *, version: int | None = None, refusal: dict[str, Any] | None = None
) -> Kept | None:
    """Write the outcome; None when it was settled before."""
    text = None if refusal is None else canonical(refusal)
    row = replace(proposal, status=status, version=version, refusal=text, settled_at=at).sealed
    outcome = {"status": row.status, "version": row.version, "refusal": row.refusal, "settled_at": row.settled_at, "hash": row.hash}
    tx.news.add(of_task(row.task))
    return row if tx("settle_proposal", id=row.id, **outcome) is not None else None


def abandoned(tx: Tx, limit: int) -> list[str]:
    """Pending proposals that nobody works on."""
    return [row[0] for row in tx("abandoned_proposals", now=tx.now, limit=limit)]


def is_abandoned(tx: Tx, proposal_id: str) -> bool:
    """Whether this proposal is pending and nobody works on it."""
    return tx("proposal_abandoned", id=proposal_id, now=tx.now) is not None


def take(tx: Tx, proposal_id: str) -> bool:
    """Take over one pending proposal; False when somebody works on it, or it is settled."""
    return tx("take_proposal", id=proposal_id, now=tx.now, claimed_until=tx.now + HELD) is not None


def keep(tx: Tx, proposal_id: str) -> bool:
    """Say that this process still works on it."""
    return tx("keep_proposal", id=proposal_id, claimed_until=tx.now + HELD) is not None


def after(tx: Tx, last: str | None, limit: int) -> list[Kept]:
    return [Kept(*row) for row in tx("proposals_after", after=last, limit=limit)]


def count_pending(tx: Tx) -> int:
    return tx("count_pending")[0]
