"""Attempts: what counts as one, when there have been enough, and how long a task rests after an error.

An attempt is counted when somebody comes to hold the task under a lease, for the time being as `lost`: whoever vanishes
can no longer say so. It is taken back when the owner delivers, that is, when an event leads on to where no lease is held,
and becomes an `error` or `deferred` when the owner says that. `lost` and `error` are capped, and at the cap the task is
parked; giving work back because a provider is down eats no attempt.
"""

from dataclasses import replace
from typing import Literal

from pointsman.kernel.definition import Definition, Retry
from pointsman.kernel.task import Attempts, Task
from pointsman.types import Duration

Cause = Literal["lost", "error", "deferred"]
_DOUBLINGS = 40
"""Beyond it every span is over its cap."""


def counted(definition: Definition, task: Task, owner: str | None, state: str) -> Attempts:
    """The attempts once the task is in `state` and belongs to `owner`."""
    begun = _works(definition, owner, state) - _works(definition, task.owner, task.state)
    return replace(task.attempts, lost=max(0, task.attempts.lost + begun)) if begun else task.attempts


def told(attempts: Attempts, cause: Cause) -> Attempts:
    """The owner says what the attempt that was counted as lost came to."""
    if cause == "lost":
        return attempts
    return replace(attempts, **{"lost": max(0, attempts.lost - 1), cause: getattr(attempts, cause) + 1})


def exhausted(definition: Definition, task: Task) -> bool:
    return task.attempts.counted >= definition.retry.tries


def delay(retry: Retry, errors: int, chance: float) -> Duration:
    """Exponential backoff with full jitter: `chance`, from 0 to 1, of min(cap, base doubled `errors` times)."""
    return round(chance * min(retry.cap, retry.base << min(errors, _DOUBLINGS)))


def _works(definition: Definition, owner: str | None, state: str) -> bool:
    return owner is not None and definition.state[state].lease is not None
