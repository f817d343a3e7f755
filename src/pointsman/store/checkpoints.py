"""The checkpoints table: an owner's own word on how far it is, the last one of each task.

It is no entry and moves no version. Its number rises by one, and its row's own hash vouches for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pointsman.errors import StoreError
from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.operation import Planned
from pointsman.store.binding import MOVED
from pointsman.store.database import Row, Tx
from pointsman.types import Instant, Json


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`version` and `epoch` are the task's when it was written, `plan` what is to be done after it."""

    number: int
    version: int
    epoch: int
    at: Instant
    by: str
    data: Json
    plan: tuple[Planned, ...] = ()
    progress: Json = None


def _written(checkpoint: Checkpoint) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(checkpoint, name) for name in checkpoint.__slots__}
    values["plan"] = [[item.name, item.kind] for item in checkpoint.plan]
    return {**values, **{name: canonical(values[name]) for name in ("data", "plan", "progress")}}


def _hash(task: str | None, row: Sequence[Any]) -> str:
    """Of the columns in their order, JSON as the text that is stored."""
    return digest("checkpoint", [task, *row])


def _read(row: Row) -> Checkpoint:
    number, version, epoch, at, by, data, plan, progress = row
    return Checkpoint(number, version, epoch, at, by, parse(data), tuple(Planned(*item) for item in parse(plan)), parse(progress))


def find(tx: Tx, task_key: int) -> Checkpoint | None:
    row = tx("find_checkpoint", task=task_key)
    return None if row is None else _read(row[:-1])


def put(tx: Tx, task_key: int, task: str, checkpoint: Checkpoint) -> None:
    """Write the one after the last. The task is locked, so nobody else has written one since."""
    values = _written(checkpoint)
    if tx("put_checkpoint", task=task_key, **values, hash=_hash(task, [*values.values()])) is None:
        raise StoreError("store_busy", MOVED)


def altered(tx: Tx, after: int, limit: int) -> Sequence[tuple[int, str | None, bool]]:
    """(key of the task, its id where there is one, whether its checkpoint was altered) of a page of them."""
    rows = tx("checkpoints_after", after=after, limit=limit)
    return [(key, task, hash_ != _hash(task, row)) for key, task, *row, hash_ in rows]
