"""The whole record as data that needs no Pointsman to read: one JSON object a line.

Every line has one member that says what it is: `export` (first: the format and the feed's head at that moment),
`machine` (each published version), `entry` (in feed order, with every covered column and its payload) and `end` (last:
how many of each, so that a cut file is noticed). The hashes can be recomputed from what stands there.
"""

from collections.abc import Iterator

from pointsman.kernel.chain import parse
from pointsman.store import feed, history, machines
from pointsman.store.database import Database
from pointsman.store.history import Recorded
from pointsman.store.machines import Published
from pointsman.types import Json

FORMAT = 1
PAGE = 500
Line = dict[str, dict[str, Json]]


def lines(db: Database) -> Iterator[Line]:
    """Everything up to the feed's head as of now. Pages are read one by one, beside live work."""
    head, published = db.read(lambda tx: (feed.head(tx), machines.every(tx)))
    yield {"export": {"format": FORMAT, "seq": head.seq, "hash": head.hash}}
    yield from ({"machine": _machine(row)} for row in published)
    after = 0
    while after < head.seq:
        page = db.read(lambda tx, after=after: history.feed_after(tx, after, min(PAGE, head.seq - after)))
        yield from ({"entry": _entry(recorded)} for recorded in page)
        after += len(page)
    yield {"end": {"machines": len(published), "entries": head.seq}}


def _machine(row: Published) -> dict[str, Json]:
    plain = ("name", "version", "digest", "published_at", "hash")
    return {**{name: getattr(row, name) for name in plain}, "form": parse(row.form), "functions": parse(row.functions)}


def _entry(recorded: Recorded) -> dict[str, Json]:
    """A pruned payload is null, and its nonce too; the entry stays whole."""
    covered: dict[str, Json] = recorded.link._asdict()
    return {"seq": recorded.seq, **covered, "hash": recorded.hash, "nonce": recorded.nonce, "payload": recorded.payload}
