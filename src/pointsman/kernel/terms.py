"""What a creator asks of a task besides its fields."""

from dataclasses import dataclass

from pointsman.kernel.task import Dependency
from pointsman.types import Instant


@dataclass(frozen=True, slots=True)
class Terms:
    """Its place in the order, what it is called, what a worker must be able to do, when it may begin and after what, and
    whose part it is. Two tasks of a machine never share a `dedupe_key`."""

    priority: int = 0
    tags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    run_at: Instant | None = None
    dedupe_key: str | None = None
    parent: str | None = None
    blocked_by: tuple[Dependency, ...] = ()
