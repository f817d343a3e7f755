"""The port of a store: units of work, each a plain function of a transaction.

    version = db.run(lambda tx: tx("advance_task", id=id, expected=3))

A unit may run twice (after a lost transaction it is run again), so it touches nothing but `tx`.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pointsman.types import Instant

if TYPE_CHECKING:
    from pointsman.store.clock import RisingClock
    from pointsman.store.hints import Hints

T = TypeVar("T")
Row = tuple[Any, ...]
Topic = str
"""What may change, as those who wait for it name it; store/hints.py has them all."""

Probe = Callable[[str], None]
"""Called with the name of each point passed; tests pause or kill the process there. None in production."""


class Tx(Protocol):
    """One transaction. `now` is the store's clock, read once after the write lock was taken, and anew after waiting for a row."""

    @property
    def now(self) -> Instant: ...

    @property
    def news(self) -> set[Topic]:
        """What the unit has changed; told to those who wait for it, once it is committed."""
        ...

    def ahead(self, statement: str, /, **parameters: Any) -> None:
        """Say that a reading statement will be run next, on what this unit does not change itself. A server that is a journey
        away is asked together with the next statement that is answered, behind it; until the unit may have had to wait for
        others, that answer stands."""
        ...

    def __call__(self, statement: str, /, **parameters: Any) -> Any:
        """Run a named statement. Its shape says what comes back: `:none` and `:sure` None, `:one` a row (its absence is a
        LookupError), `:one?` a row or None, `:many` a list of rows. Where a `:sure` statement finds nothing, the whole unit
        ends in a StoreError `store_busy`, at once or at its COMMIT."""
        ...


class Database(Protocol):
    @property
    def url(self) -> str: ...

    @property
    def hints(self) -> "Hints":
        """Who waits in this process, to be told of what is committed, here or elsewhere."""
        ...

    @property
    def clock(self) -> "RisingClock | None":
        """This process's clock, if the store goes by that and has none of its own."""
        ...

    def submit(self, unit: Callable[[Tx], T]) -> "Future[T]":
        """Queue a unit. Its future is set only after COMMIT; an exception of the unit rolls back that unit alone
        and is set after COMMIT too, since it may rest on a neighbour's work."""
        ...

    def submit_read(self, unit: Callable[[Tx], T]) -> "Future[T]":
        """Queue a unit that only reads, on a snapshot beside the writer."""
        ...

    def run(self, unit: Callable[[Tx], T]) -> T:
        """`submit`, and wait."""
        ...

    def read(self, unit: Callable[[Tx], T]) -> T:
        """A reading unit on the caller's own thread."""
        ...

    def aside(self) -> "Database":
        """The same database for units that must not wait until others of this process are done with their connections. It is
        closed with this one."""
        ...

    def check(self) -> list[str]:
        """What is wrong with the store itself, in words; nothing when it is sound. Reads all of it."""
        ...

    def backup(self, target: str, *, replace: bool) -> None:
        """Copy the whole store, as of one moment, into one file at an absolute path, beside live work."""
        ...

    def close(self) -> None:
        """Whoever still waits is told so too."""
        ...
