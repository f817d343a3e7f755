"""Limits across tasks: how much a declared one has left, and what an accepted event takes of it.

A use counts under the limit's name and its subject: the value of the field that is its key. Who declares a limit of the
same name elsewhere means the same one. What counts is that of other tasks and of earlier entries: events of the last `per`,
one each or the sum of a field, or, where it is `concurrent`, tasks that somebody owns.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel.case import Case, Used
from pointsman.kernel.chain import canonical, digest
from pointsman.kernel.definition import Definition, Event, Limit
from pointsman.kernel.lease import acquiring
from pointsman.kernel.task import Task
from pointsman.types import SECOND, Instant, Json

UNIT = 1_000_000
"""Amounts are counted in millionths, so that sums are exact and the same on every database."""

LONGEST = 200
"""What an index takes of a value, whatever the database."""


@dataclass(frozen=True, slots=True)
class Use:
    """What one entry takes of a limit, until a time or, where that is None, as long as its task has its owner."""

    name: str
    subject: str
    amount: int
    at: Instant
    ends: Instant | None


def subject(limit: Limit, fields: Mapping[str, Any]) -> str:
    """What has a limit of its own; one that is long is known by its digest."""
    text = "" if limit.key is None else canonical(fields.get(limit.key))
    return text if len(text) <= LONGEST else digest("subject", text)


def amount(limit: Limit, fields: Mapping[str, Any]) -> int:
    """What an event takes. Nothing gives back: less than nothing is nothing."""
    if limit.sum is None:
        return UNIT
    return max(0, round((fields.get(limit.sum) or 0) * UNIT))


def full(limit: Limit, used: Used) -> bool:
    """Whether nothing at all is left."""
    return used.amount + (UNIT if limit.sum is None else 1) > limit.most * UNIT


def fields_of(case: Case) -> Mapping[str, Json]:
    """The content that is proposed: what an event sets is what it takes."""
    return {**case.task.fields, **case.values} if case.values else case.task.fields


def limited(case: Case) -> Refusal | None:
    for limit in case.event.limits:
        fields, used = fields_of(case), case.used.get(limit.name, Used())
        wanted = amount(limit, fields)
        if used.amount + wanted > limit.most * UNIT:
            return _refusal(case, limit, used, wanted)
    return None


def _refusal(case: Case, limit: Limit, used: Used, wanted: int) -> Refusal:
    said: dict[str, Json] = {"limit": limit.name, "used": used.amount / UNIT, "wanted": wanted / UNIT, "max": limit.most}
    if limit.key is not None:
        said["key"] = fields_of(case)[limit.key]
    wait = _wait_s(case, limit, used)
    if wanted > limit.most * UNIT:
        return case.no("limit_reached", f"limit {limit.name} never lets so much pass at once", failed=[said])
    return case.no("limit_reached", f"limit {limit.name} is used up; try again in {wait} s", failed=[said], retry_after_s=wait)


def _wait_s(case: Case, limit: Limit, used: Used) -> int:
    """When the oldest use leaves the window. When an owner will let go nobody knows."""
    if limit.per is None or used.first_at is None:
        return 1
    return max(1, ceil((used.first_at + limit.per - case.now) / SECOND))


def uses(event: Event, after: Task) -> Iterator[Use]:
    """What an accepted event takes of its limits, from the task after it."""
    for limit in event.limits:
        ends = None if limit.per is None else after.updated_at + limit.per
        yield Use(limit.name, subject(limit, after.fields), amount(limit, after.fields), after.updated_at, ends)


def has_place(definition: Definition, task: Task) -> bool:
    """Whether a task still counts as one that somebody is at. A lapsed one does: its owner may come back."""
    return task.owner is not None and task.parked is None and not definition.state[task.state].final


def lane(definition: Definition, task: Task) -> str:
    """What decides whom a task may go to: what its worker must be able to do, what it is called, and the limits, each with
    its subject, of the event that would acquire it."""
    event = acquiring(definition, task.state, owned=task.owner is not None)
    limits: list[Json] = [] if event is None else [[limit.name, subject(limit, task.fields)] for limit in event.limits]
    return canonical({"limits": limits, "needs": list(task.needs), "tags": list(task.tags)})
