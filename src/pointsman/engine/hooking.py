"""The verbs about hooks: who is told what, outside; and what could not be told."""

import base64
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import cast

from pointsman.engine import receiver
from pointsman.engine.door import principal
from pointsman.engine.holding import operators_only
from pointsman.engine.record import Chance
from pointsman.engine.steps import Read, Steps, durable, verb
from pointsman.engine.view import By, Id, View, page_size, typed
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.hook import KINDS, SIGNED, Hook, Kind, Secret
from pointsman.kernel.ingest import Faults, identifier
from pointsman.kernel.message import EVENT, TOPICS
from pointsman.kernel.rules import Principal
from pointsman.kernel.signature import PREFIX
from pointsman.store import hooks, machines, outbox
from pointsman.store.database import Tx
from pointsman.store.hooks import Kept
from pointsman.store.outbox import Parked
from pointsman.types import SECOND, Duration, Instant, hours, task_id, uuid7

LINK = "http://127.0.0.1:8470"
OVERLAP: Duration = hours(24)
LONGEST_OVERLAP_S = 30 * 86_400
MOST_SECRETS = 4
MOST_TOPICS = 100
SECRET_BYTES = 24

Hooks = list[Hook]


@dataclass(frozen=True, slots=True)
class Made:
    """A hook, and what was shown of it this once: the secret that signs its messages."""

    hook: Hook
    secret: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many messages wait for a hook, and since when the oldest does."""

    waiting: int = 0
    oldest: Instant | None = None


class Hooking(View):
    @verb
    def add_hook(
        self,
        url: str,
        kind: Kind,
        on: Iterable[str],
        *,
        by: By,
        machine: str | None = None,
        link: str = LINK,
        allow_private: bool = False,
    ) -> Steps[Made]:
        """Tell a receiver of every change from now on that is about one of the topics `on`; needs role operator. `machine` is the
        only one that it hears of, `link` where people open tasks. The secret that signs a webhook's messages is shown here and
        nowhere else. Addresses that are not public are refused unless allowed."""
        typed(("url", url, str), ("kind", kind, str), ("machine", machine, str | None), ("link", link, str))
        typed(("allow_private", allow_private, bool))
        who, topics = principal(by), _topics(on)
        if kind not in KINDS:
            raise invalid(("kind", f"must be one of {', '.join(KINDS)}"))
        if found := [
            *receiver.of_url(kind, url, "url", private=allow_private),
            *receiver.of_link(link, "link"),
        ]:
            raise invalid(*found)
        secret = _secret(self.engine.chance) if kind in SIGNED else None
        secrets = () if secret is None else (Secret(secret),)
        hook = Hook("", kind, url, topics, machine, link.rstrip("/"), allow_private, secrets, who.name, 0)
        return Made((yield from durable(partial(_add, self.engine.chance, who, hook))), secret)

    @verb
    def remove_hook(self, id: Id, *, by: By) -> Steps[Hook]:
        """Tell a receiver nothing more; needs role operator. What still waits for it is dropped."""
        return (yield from durable(partial(_remove, principal(by), _named(id))))

    @verb
    def rotate_hook(self, id: Id, *, by: By, overlap_s: float = OVERLAP / SECOND) -> Steps[Made]:
        """A new secret, shown here and nowhere else; needs role operator. Messages are signed with the old ones too for
        `overlap_s`."""
        typed(("overlap_s", overlap_s, float | int))
        if not 0 <= overlap_s <= LONGEST_OVERLAP_S:
            raise invalid(("overlap_s", f"must be from 0 to {LONGEST_OVERLAP_S} seconds"))
        secret = _secret(self.engine.chance)
        return Made(
            (yield from durable(partial(_rotate, principal(by), _named(id), secret, round(overlap_s * SECOND)))),
            secret,
        )

    @verb
    def hooks(self) -> Steps[Hooks]:
        """The hooks that nobody removed, oldest first."""
        return (yield Read(hooks.in_use))

    @verb
    def backlogs(self) -> Steps[dict[str, Backlog]]:
        """What waits for each hook."""
        found = yield Read(outbox.backlog)
        return {hook: Backlog(*of_hook) for hook, of_hook in found.items()}

    @verb
    def dead(self, id: Id, *, after: str | None = None, limit: int | None = None) -> Steps[list[Parked]]:
        """A page of a hook's parked lanes by task: each holds all messages about one task, the first of which was not taken."""
        typed(("after", after, str | None))
        hook, count = _named(id), page_size(limit)
        return (yield Read(lambda tx: _dead(tx, hook, after or "", count)))

    @verb
    def redrive(self, id: Id, *, by: By) -> Steps[int]:
        """Send to a hook again, be it disabled, and begin anew on its parked lanes; needs role operator. How many lanes."""
        return (yield from durable(partial(_redrive, principal(by), _named(id))))


def warnings(tx: Tx) -> list[str]:
    """What an operator should know of messages that do not go out."""
    found = list[str]()
    for hook in hooks.in_use(tx):
        if hook.disabled_at is not None:
            found.append(f"hook {hook.id} is disabled: its receiver said that it is gone; `pointsman hook redrive` enables it")
        if parked := outbox.parked(tx, hook.id, "", 1):
            found.append(f"hook {hook.id} has messages that could not be delivered, such as those about task {parked[0].task}")
    return found


def _named(id: Id) -> str:
    try:
        return task_id(id)
    except ValueError:
        raise _unknown() from None


def _unknown() -> Refused:
    return Refused(Refusal("unknown_hook", "no hook has this id, or it was removed"))


def _secret(chance: Chance) -> str:
    return PREFIX + base64.b64encode(chance(8 * SECRET_BYTES).to_bytes(SECRET_BYTES)).decode()


def _topics(on: object) -> tuple[str, ...]:
    """In their order, each once."""
    if not isinstance(on, list | tuple | set | frozenset) or not 0 < len(cast(Collection[object], on)) <= MOST_TOPICS:
        raise invalid(("on", f"must be a list of 1 to {MOST_TOPICS} of {', '.join(TOPICS)}, event:NAME"))
    if found := [fault for topic in cast(Collection[object], on) for fault in _of_topic(topic)]:
        raise invalid(*found)
    return tuple(sorted({*cast(Collection[str], on)}))


def _of_topic(topic: object) -> Faults:
    if isinstance(topic, str) and topic.startswith(EVENT):
        return identifier(topic.removeprefix(EVENT), "on")
    return [] if isinstance(topic, str) and topic in TOPICS else [("on", f"must be of {', '.join(TOPICS)}, event:NAME")]


def _add(chance: Chance, by: Principal, wanted: Hook, tx: Tx, look: bool) -> Hook:
    """Of a unit whose COMMIT is unknown the hook is there, if it is there: it is told by its secret or all of its words."""
    operators_only(by, "add a hook")
    hooks.lock(tx)
    now = tx.now
    if look and (there := _there(tx, wanted)) is not None:
        return there
    _heard(tx, wanted)
    made = replace(wanted, id=uuid7(now, chance(74)), made_at=now)
    hooks.add(tx, made)
    return made


def _there(tx: Tx, wanted: Hook) -> Hook | None:
    return next((hook for hook in reversed(hooks.in_use(tx)) if replace(hook, id="", made_at=0) == wanted), None)


def _heard(tx: Tx, wanted: Hook) -> None:
    """What is misspelled would tell nothing, and nobody would notice."""
    published = [row.definition for row in machines.every(tx)]
    meant = [item for item in published if wanted.machine in (None, item.name)]
    if wanted.machine is not None and not meant:
        raise Refused(Refusal("unknown_machine", "no such machine was published here"))
    telling = {f"{EVENT}{event.name}" for item in meant for event in item.events if event.tells is not None}
    if strange := [topic for topic in wanted.topics if topic.startswith(EVENT) and topic not in telling]:
        raise invalid(*(("on", "no published machine that it means has an event of this name with `tells`") for _ in strange))


def _found(tx: Tx, hook_id: str) -> Kept:
    kept = hooks.find(tx, hook_id)
    if kept is None or kept.hook.removed_at is not None:
        raise _unknown()
    return kept


def _remove(by: Principal, hook_id: str, tx: Tx, look: bool) -> Hook:
    operators_only(by, "remove a hook")
    hooks.lock(tx)
    kept = hooks.find(tx, hook_id)
    if look and kept is not None and kept.hook.removed_at is not None:
        return kept.hook
    return hooks.remove(tx, _found(tx, hook_id), by.name, tx.now)


def _rotate(by: Principal, hook_id: str, secret: str, overlap: Duration, tx: Tx, look: bool) -> Hook:
    operators_only(by, "rotate a secret")
    now = tx.now  # before any row is locked: whoever decides has the time first, and a lane after it
    kept = _found(tx, hook_id)
    if kept.hook.kind not in SIGNED:
        raise invalid(("id", f"names a hook of kind {kept.hook.kind}, which signs nothing"))
    if look and kept.hook.secrets[-1].text == secret:
        return kept.hook
    rotated = kept.hook.rotated(secret, now, now + overlap)
    if len(rotated.secrets) > MOST_SECRETS:
        raise invalid(("id", f"names a hook with {MOST_SECRETS} secrets that still count; wait for the oldest to end"))
    hooks.change(tx, kept, rotated)
    return rotated


def _dead(tx: Tx, hook_id: str, after: str, limit: int) -> list[Parked]:
    if all(hook.id != hook_id for hook in hooks.in_use(tx)):
        raise _unknown()
    return outbox.parked(tx, hook_id, after, limit)


def _redrive(by: Principal, hook_id: str, tx: Tx, _look: bool) -> int:
    """Whoever is deciding is waited for: it may be parking what it writes."""
    operators_only(by, "redrive a hook")
    hooks.lock(tx)
    kept = _found(tx, hook_id)
    if kept.hook.disabled_at is not None:
        hooks.change(tx, kept, replace(kept.hook, disabled_at=None))
    return outbox.redrive(tx, hook_id)
