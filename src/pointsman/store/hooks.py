"""The hooks table. A hook is kept when it was removed, without its secrets and the path of its URL, and by then says who removed
it. All of it is covered by the row's own hash."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pointsman.kernel.chain import canonical, digest, parse
from pointsman.kernel.hook import Hook, Secret
from pointsman.store.database import Tx
from pointsman.store.holds import lock as wait_for_deciders
from pointsman.types import Instant

_MEMBERS = (
    "id",
    "kind",
    "url",
    "topics",
    "machine",
    "link",
    "private",
    "secrets",
    "made_by",
    "made_at",
    "disabled_at",
    "removed_by",
    "removed_at",
)
_MOVING = ("url", "secrets", "disabled_at", "removed_by", "removed_at")


@dataclass(frozen=True, slots=True)
class Kept:
    """One row, with its hash."""

    hook: Hook
    hash: str
    row: tuple[Any, ...]

    @property
    def sound(self) -> bool:
        return self.hash == _hash(self.row)


def lock(tx: Tx) -> None:
    """From the commit on, every change is told to a hook that was added, and none to one that was removed."""
    wait_for_deciders(tx)


def add(tx: Tx, hook: Hook) -> None:
    row = _row(hook)
    tx("add_hook", **row, hash=_hash(row.values()))


def find(tx: Tx, hook_id: str) -> Kept | None:
    """Locked."""
    row = tx("find_hook", id=hook_id)
    return None if row is None else _read(row)


def in_use(tx: Tx) -> list[Hook]:
    """The hooks that nobody removed, oldest first."""
    return [_read(row).hook for row in tx("hooks_in_use")]


def change(tx: Tx, kept: Kept, hook: Hook) -> None:
    """What moves of a hook, while the rest is what was read."""
    row = _row(hook)
    tx("change_hook", id=hook.id, expected=kept.hash, hash=_hash(row.values()), **{name: row[name] for name in _MOVING})


def remove(tx: Tx, kept: Kept, by: str, at: Instant) -> Hook:
    """What still waits for it goes with it."""
    removed = replace(kept.hook, url=kept.hook.shown, removed_by=by, removed_at=at, secrets=())
    change(tx, kept, removed)
    tx("drop_messages_of_hook", hook=removed.id)
    tx("drop_message_lanes_of_hook", hook=removed.id)
    return removed


def after(tx: Tx, last: str, limit: int) -> list[Kept]:
    return [_read(row) for row in tx("hooks_after", after=last, limit=limit)]


def _row(hook: Hook) -> dict[str, Any]:
    values: dict[str, Any] = {name: getattr(hook, name) for name in _MEMBERS}
    secrets = [[secret.text, secret.until] for secret in hook.secrets]
    return values | {"topics": canonical(sorted(hook.topics)), "private": int(hook.private), "secrets": canonical(secrets)}


def _hash(values: Iterable[Any]) -> str:
    """Of the row's members in their order."""
    return digest("hook", list(values))


def _read(row: Any) -> Kept:
    *values, hash_ = row
    members: dict[str, Any] = dict(zip(_MEMBERS, values, strict=True))
    secrets = tuple(Secret(text, until) for text, until in parse(members["secrets"]))
    members |= {"topics": tuple(parse(members["topics"])), "private": bool(members["private"]), "secrets": secrets}
    return Kept(Hook(**members), hash_, tuple(values))
