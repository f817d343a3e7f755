"""What checks said: one judgement per task, check (with its version, inside the digest) and inputs. Errors are not kept."""

from dataclasses import dataclass

from pointsman.kernel.bound import Judgement
from pointsman.kernel.chain import canonical, digest, parse
from pointsman.store.database import Tx
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Kept:
    task: str
    check: str
    inputs_digest: str
    status: str
    reason: str
    detail: str
    at: Instant
    hash: str

    @property
    def sound(self) -> bool:
        return self.hash == _hash(self)


def _hash(row: Kept) -> str:
    return digest("judgement", [row.task, row.check, row.inputs_digest, row.status, row.reason, row.detail, row.at])


def find(tx: Tx, task: str, check: str, inputs_digest: str) -> Judgement | None:
    row = tx("find_judgement", task=task, check=check, inputs_digest=inputs_digest)
    return None if row is None else Judgement(row[0], row[1], parse(row[2]))


def keep(tx: Tx, task: str, check: str, inputs_digest: str, judgement: Judgement) -> Judgement:
    """Keep the first judgement of these inputs and answer the one that stands."""
    blank = Kept(task, check, inputs_digest, judgement.status, judgement.reason, canonical(judgement.detail), tx.now, "")
    row = {name: getattr(blank, name) for name in blank.__slots__} | {"hash": _hash(blank)}
    if tx("add_judgement", **row) is not None:
        return judgement
    standing = find(tx, task, check, inputs_digest)
    return judgement if standing is None else standing


def after(tx: Tx, last: Kept | None, limit: int) -> list[Kept]:
    start = ("", "", "") if last is None else (last.task, last.check, last.inputs_digest)
    rows = tx("judgements_after", after_task=start[0], after_check=start[1], after_digest=start[2], limit=limit)
    return [Kept(*row) for row in rows]
