"""Is a set of overlapping operations on one versioned task explained by some order of single steps?

The search of Wing and Gong, with the visited states remembered: an operation may come first when no other ended before
it began. Small runs only; a run's cost grows with how many operations overlap.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Step = Callable[[int], int | None]
"""From the version before to the version after; None when the answer does not fit that version."""


@dataclass(frozen=True)
class Operation:
    """What somebody saw: when it began and ended, and the step its answer tells of."""

    began: float
    ended: float
    step: Step
    told: str = ""


def moved_to(after: int) -> Step:
    """Accepted, and the answer named the version it made."""
    return lambda version: after if version == after - 1 else None


def moved() -> Step:
    """Accepted by a door that does not tell versions."""
    return lambda version: version + 1


def saw(current: int) -> Step:
    """Read, or refused with the current version in the answer."""
    return lambda version: version if version == current else None


def explained(operations: Sequence[Operation], start: int) -> bool:
    """Whether some order of the operations, each within its own time, gives every answer."""
    seen: set[tuple[frozenset[int], int]] = set()
    waiting = [(frozenset(range(len(operations))), start)]
    while waiting:
        left, version = waiting.pop()
        if not left:
            return True
        if (left, version) in seen:
            continue
        seen.add((left, version))
        deadline = min(operations[n].ended for n in left)
        first = ((n, operations[n].step(version)) for n in left if operations[n].began <= deadline)
        waiting += [(left - {n}, after) for n, after in first if after is not None]
    return False
