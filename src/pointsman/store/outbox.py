"""Messages and their lanes. A message is written in the transaction of its change, for each hook that listens, and stands until it
was delivered. A lane is all that waits for one hook about one task: its messages go out one after the other.

Who works on a lane has claimed it, for a time and under a number: a process that dies leaves it to whoever comes after that
time, and one that was replaced meanwhile changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pointsman.kernel.chain import canonical, digest
from pointsman.kernel.message import Message
from pointsman.store.database import Row, Tx
from pointsman.store.hints import OUTBOX
from pointsman.types import Duration, Instant


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane that its holder has claimed."""

    hook: str
    task: str
    claim: int
    tries: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message as it stands in its lane."""

    key: int
    message: Message
    hash: str

    @property
    def sound(self) -> bool:
        return self.hash == _hash(self.message)


@dataclass(frozen=True, slots=True)
class Parked:
    """A lane whose first message could not be delivered: how often it was tried, why it was not taken, and how many wait."""

    hook: str
    task: str
    tries: int
    parked_at: Instant
    error: str
    waiting: int


def _hash(message: Message) -> str:
    return digest("outbox", [message.id, message.topic, message.task, message.version, message.body, message.at])


def write(tx: Tx, machine: str, messages: Sequence[Message]) -> None:
    """For every hook that listens. Nothing is read: where none does, this costs no journey."""
    now = tx.now
    for message in messages:
        listens = {"machine": machine, "quoted": canonical(message.topic)}
        tx("open_lanes", task=message.task, at=now, **listens)
        members = {name: getattr(message, name) for name in Message.__slots__}
        tx("add_messages", **members, **listens, hash=_hash(message))
    tx.news.add(OUTBOX)


def is_due(tx: Tx, hook: str) -> bool:
    """Whether there is anything to claim, as far as a look can tell."""
    return bool(tx("message_lanes_due", hook=hook, now=tx.now, limit=1))


def claim(tx: Tx, hook: str, held: Duration, most: int) -> list[tuple[Lane, Waiting]]:
    """Lanes for their new holder, until a time, each with its first message."""
    found = list[tuple[Lane, Waiting]]()
    for task, tries, number in tx("message_lanes_due", hook=hook, now=tx.now, limit=most):
        claimed = tx("claim_message_lane", hook=hook, task=task, claim=number, until=tx.now + held)
        first = _first(tx, hook, task)
        if claimed is not None and first is not None:
            found.append((Lane(hook, task, claimed[0], tries), first))
    return found


def delivered(tx: Tx, lane: Lane, key: int, held: Duration) -> Waiting | None:
    """The first message was taken: it goes, and the next one comes up, if there is one and the lane is still its holder's."""
    if _held(tx, lane) is None:
        return None
    tx("drop_message", key=key)
    following = _first(tx, lane.hook, lane.task)
    if following is None:
        tx("close_message_lane", hook=lane.hook, task=lane.task)
    else:
        _move(tx, lane, tx.now + held)
    return following


def rest(tx: Tx, lane: Lane, until: Instant, tries: int, error: str) -> bool:
    """The first message is tried again, not before a time; False when somebody else holds the lane."""
    if _held(tx, lane) is None:
        return False
    _move(tx, lane, until, tries, error)
    return True


def park(tx: Tx, lane: Lane, tries: int, error: str) -> bool:
    """The lane stands still until an operator redrives it."""
    if _held(tx, lane) is None:
        return False
    _move(tx, lane, tx.now, tries, error, parked_at=tx.now)
    return True


def park_all(tx: Tx, hook: str, error: str) -> None:
    tx("park_message_lanes", hook=hook, at=tx.now, error=error)


def redrive(tx: Tx, hook: str) -> int:
    """Parked lanes begin anew; how many."""
    found = tx("redrive_message_lanes", hook=hook, at=tx.now)
    if found:
        tx.news.add(OUTBOX)
    return len(found)


def parked(tx: Tx, hook: str, after: str, limit: int) -> list[Parked]:
    return [Parked(hook, *row) for row in tx("parked_message_lanes", hook=hook, after=after, limit=limit)]


def backlog(tx: Tx) -> dict[str, tuple[int, Instant]]:
    """How many messages wait for each hook, and since when the oldest does."""
    return {hook: (count, oldest) for hook, count, oldest in tx("messages_waiting")}


def after(tx: Tx, key: int, limit: int) -> list[Waiting]:
    return [_waiting(row) for row in tx("messages_after", after=key, limit=limit)]


def unpaired(tx: Tx) -> list[str]:
    """Messages that nobody would send, and lanes of no message, in words."""
    return [f"{what} for hook {hook} about task {task} stands alone" for what, hook, task in tx("unpaired_message_lanes")]


def _held(tx: Tx, lane: Lane) -> Row | None:
    """The lane, locked, while it is its holder's. The time is asked for before: whoever decides has it first, and lanes after it."""
    assert tx.now
    found = tx("lock_message_lane", hook=lane.hook, task=lane.task, claim=lane.claim)
    return None if found is None or found[1] is not None else found


def _move(tx: Tx, lane: Lane, until: Instant, tries: int = 0, error: str = "", parked_at: Instant | None = None) -> None:
    tx("move_message_lane", hook=lane.hook, task=lane.task, next_at=until, tries=tries, parked_at=parked_at, error=error)


def _first(tx: Tx, hook: str, task: str) -> Waiting | None:
    row = tx("first_message", hook=hook, task=task)
    return None if row is None else _waiting(row)


def _waiting(row: Row) -> Waiting:
    key, *members, hash_ = row
    return Waiting(key, Message(*members), hash_)
