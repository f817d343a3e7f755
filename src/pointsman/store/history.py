"""The entries table, append-only and chained per task, and its payloads, which stand apart so that they can go."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pointsman.kernel.chain import Link, canonical, link_hash, parse, payload_digest
from pointsman.store.database import Row, Tx
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Recorded:
    """An entry as stored: its key (the order of commit), its covered columns, its hash, and its payload if it is kept."""

    key: int
    link: Link
    hash: str
    nonce: str | None
    body: str | None
    seq: int | None = None
    """Its feed number, once it has one."""

    @property
    def payload(self) -> dict[str, Any] | None:
        return None if self.body is None else parse(self.body)


def recorded(row: Row) -> Recorded:
    key, *covered, hash_, nonce, body, seq = row
    return Recorded(key, Link(*covered), hash_, nonce, body, seq)


class Written(NamedTuple):
    """An entry that is ready to be written, and its payload."""

    link: Link
    hash: str
    nonce: str
    body: str


def append(tx: Tx, task_key: int, entry: Written) -> None:
    """Write one entry and its payload. A second entry for the same version breaks the table's key."""
    tx("add_entry", **_columns(task_key, entry))
    tx("add_payload", task=task_key, version=entry.link.version, nonce=entry.nonce, body=entry.body)


def append_all(tx: Tx, entries: Mapping[int, Written]) -> None:
    """The same for many, by the keys of their tasks."""
    rows = canonical([_columns(task_key, entry) for task_key, entry in entries.items()])
    keys = {task_key: key for key, task_key in tx("add_entries", rows=rows)}
    payloads = [{"entry": keys[task_key], "nonce": entry.nonce, "body": entry.body} for task_key, entry in entries.items()]
    tx("add_payloads", rows=canonical(payloads))


def _columns(task_key: int, entry: Written) -> dict[str, Any]:
    return {**dict(zip(_COVERED, entry.link[1:], strict=True)), "task": task_key, "hash": entry.hash}


_COVERED = Link._fields[1:]
LAST = 2**63 - 1
WINDOW = 10_000


def of_task(tx: Tx, task_id: str, after: int, upto: int = LAST, limit: int = LAST) -> list[Recorded]:
    """A task's entries with versions beyond `after`, up to `upto`, oldest first."""
    return [recorded(row) for row in tx("entries_of", task=task_id, after=after, upto=upto, limit=limit)]


def latest_of_task(tx: Tx, task_id: str, limit: int) -> list[Recorded]:
    """The last entries of a task, newest first."""
    return [recorded(row) for row in tx("latest_entries_of", task=task_id, limit=limit)]


@dataclass(frozen=True, slots=True)
class Audited:
    """Which entries an audit asks for; times are a half-open interval of µs."""

    actor: str | None = None
    event: str | None = None
    start: Instant | None = None
    end: Instant | None = None


def feed_before(tx: Tx, before: int | None, wanted: Audited, limit: int) -> list[Recorded]:
    """Numbered entries of the whole board, newest first."""
    chosen = {name: getattr(wanted, name) for name in wanted.__slots__}
    return [recorded(row) for row in tx("feed_before", before=LAST if before is None else before, **chosen, limit=limit)]


def feed_after(tx: Tx, after: int, limit: int) -> list[Recorded]:
    """Numbered entries of the whole board, in feed order."""
    return [recorded(row) for row in tx("feed_after", after=after, limit=limit)]


def windows(tx: Tx) -> Iterator[tuple[int, int]]:
    """All keys of entries and payloads in windows (beyond, up to), so that no statement looks at more than `WINDOW`."""
    low, high = tx("entry_keys")
    yield from ((after, after + WINDOW) for after in range(low - 1, high, WINDOW))


def broken(entry: Recorded, previous: str, version: int, *, pruned: bool = False) -> str | None:
    """What is wrong with an entry that should be number `version` and follow the hash `previous`; None when sound. The
    payload of a pruned one is gone."""
    if entry.link.version != version:
        return f"expected version {version}, found {entry.link.version}: an entry is missing, added or out of place"
    if entry.link.previous != previous:
        return "it does not follow the entry before it"
    if what := _unpruned(entry) if pruned else _unlike_its_digest(entry):
        return what
    return None if link_hash(entry.link) == entry.hash else "a covered column was altered"


def _unpruned(entry: Recorded) -> str | None:
    return None if entry.body is None else "its payload stands there, though it was pruned"


def _unlike_its_digest(entry: Recorded) -> str | None:
    if entry.nonce is None or entry.body is None:
        return "its payload is gone"
    if payload_digest(entry.nonce, entry.body) != entry.link.payload_digest:
        return "its payload was altered"
    return None if canonical(parse(entry.body)) == entry.body else "its payload is not canonical"
