"""The verbs of operators: place a hold, lift it, see which there are."""

from functools import partial
from typing import Any

from pointsman.engine import holding, ordering
from pointsman.engine.door import principal
from pointsman.engine.holding import Wanted
from pointsman.engine.steps import Read, Steps, durable, verb
from pointsman.engine.view import By, Id, View, page_size, typed
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.hold import MEMBERS, Hold, Match
from pointsman.kernel.ingest import Faults, identifier
from pointsman.store import holds
from pointsman.types import Instant, task_id

FASTEST_RELEASE = 10_000
LONGEST_REASON = 1_000
Holds = list[Hold]


class Operating(View):
    @verb
    def hold(
        self,
        match: dict[str, str],
        *,
        by: By,
        reason: str,
        start: Instant | None = None,
        until: Instant | None = None,
        release_per_s: int | None = None,
    ) -> Steps[Hold]:
        """Stop the events that fit all given members of `match` (machine, event, state, tag), from `start` (now, if not said)
        until `until` or until it is lifted; needs role operator. When it has ended, the tasks it held back are acquired at no
        more than `release_per_s` a second, the setting if not said. One that this operator placed in the same words and that has not
        ended is answered as it stands; so placing one takes no idempotency key."""
        typed(("match", match, dict), ("reason", reason, str), ("from", start, int | None), ("until", until, int | None))
        typed(("release_per_s", release_per_s, int | None))
        who, rate = principal(by), self.engine.release_per_s if release_per_s is None else release_per_s
        if found := [*_of_match(match), *_of_reason(reason), *_of_times(start, until), *of_rate(rate)]:
            raise invalid(*found)
        wanted = Wanted(Match(**match), reason, start, until, rate)
        return (yield from durable(partial(holding.place, self.engine.chance, who, wanted)))

    @verb
    def lift(self, id: Id, *, by: By) -> Steps[Hold]:
        """End a hold now, and let its backlog go; needs role operator. One that was lifted stays as it is."""
        who = principal(by)
        try:
            wanted = task_id(id)
        except ValueError:
            raise Refused(Refusal("unknown_hold", "no hold has this id")) from None
        return (yield from durable(partial(holding.lift, who, wanted)))

    @verb
    def holds(self, *, after: str | None = None, limit: int | None = None) -> Steps[Holds]:
        """A page of all holds, oldest first, also those that ended."""
        typed(("after", after, str | None))
        count = page_size(limit)
        return (yield Read(lambda tx: [row.hold for row in holds.after(tx, after, count)]))


def _of_match(match: dict[Any, Any]) -> Faults:
    strange = [("match", f"has the members {', '.join(MEMBERS)} and no other")] if match.keys() - set(MEMBERS) else []
    empty = [] if match else [("match", f"names at least one of {', '.join(MEMBERS)}")]
    return strange + empty + [fault for name in MEMBERS if name in match for fault in identifier(match[name], f"match.{name}")]


def _of_reason(reason: str) -> Faults:
    if not reason.strip():
        return [("reason", "must not be blank")]
    return [("reason", f"must have at most {LONGEST_REASON} characters")] if len(reason) > LONGEST_REASON else []


def _of_times(start: Instant | None, until: Instant | None) -> Faults:
    return [*ordering.moment(start, "from")[1], *ordering.moment(until, "until")[1]]


def of_rate(rate: int) -> Faults:
    fits = 1 <= rate <= FASTEST_RELEASE
    return [] if fits else [("release_per_s", f"must be from 1 to {FASTEST_RELEASE}")]
