"""The entries table, append-only and chained per task, and its payloads, which stand apart so that they can go."""

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from pointsman.kernel.chain import Link, canonical, link_hash, parse, payload_digest
from pointsman.store.database import Row, Tx

LINK = tuple(item.name for item in fields(Link))
_columns = attrgetter(*LINK)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry as stored: its key (the order of commit), its covered columns, its hash, and its payload if it is kept."""

    key: int
    link: Link
    hash: str
    nonce: str | None
    body: str | None

    @property
    def payload(self) -> dict[str, Any] | None:
        return None if self.body is None else parse(self.body)


def recorded(row: Row) -> Recorded:
    key, *covered, hash_, nonce, body = row
    return Recorded(key, Link(*covered), hash_, nonce, body)


def append(tx: Tx, task_key: int, link: Link, hash_: str, nonce: str, body: str) -> None:
    """Write one entry and its payload. A second entry for the same version breaks the table's key."""
    covered = dict(zip(LINK, _columns(link), strict=True))
    covered["task"] = task_key
    key = tx("add_entry", **covered, hash=hash_)[0]
    tx("add_payload", entry=key, nonce=nonce, body=body)


def of_task(tx: Tx, task_id: str, upto: int = 2**63 - 1) -> list[Recorded]:
    return [recorded(row) for row in tx("entries_of", task=task_id, upto=upto)]


def latest(tx: Tx, task_id: str | None, limit: int) -> list[Recorded]:
    """Newest first, of one task or of the whole board."""
    rows = tx("latest_entries", limit=limit) if task_id is None else tx("latest_entries_of", task=task_id, limit=limit)
    return [recorded(row) for row in rows]


def broken(entry: Recorded, previous: str, version: int) -> str | None:
    """What is wrong with an entry that should be number `version` and follow the hash `previous`; None when sound."""
    if entry.link.version != version:
        return f"expected version {version}, found {entry.link.version}: an entry is missing, added or out of place"
    if entry.link.previous != previous:
        return "it does not follow the entry before it"
    if entry.nonce is None or entry.body is None:
        return "its payload is gone"
    if payload_digest(entry.nonce, entry.body) != entry.link.payload_digest:
        return "its payload was altered"
    if canonical(parse(entry.body)) != entry.body:
        return "its payload is not canonical"
    return None if link_hash(entry.link) == entry.hash else "a covered column was altered"
