"""The facade that programs and edges hold: `Pointsman` blocks, `pm.aio` awaits, the verbs are the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pointsman.builtin import Tasks
from pointsman.engine import ends, export, moving, pruning, verify
from pointsman.engine.batching import Batching
from pointsman.engine.chance import entropy, wall_clock
from pointsman.engine.chance import uptime as machine_uptime
from pointsman.engine.door import Door
from pointsman.engine.duties import Duties
from pointsman.engine.hooking import Hooking
from pointsman.engine.hooking import warnings as of_hooks
from pointsman.engine.judges import Judges, by_model
from pointsman.engine.ledger import Ledger
from pointsman.engine.moving import Arrived
from pointsman.engine.operating import Operating, of_rate
from pointsman.engine.owning import Owning
from pointsman.engine.past import numbered
from pointsman.engine.record import Chance
from pointsman.engine.registry import Registry
from pointsman.engine.relaying import Outlet
from pointsman.engine.reporting import Reporting
from pointsman.engine.steps import Awaits, Blocks, Steps, adrive, drive
from pointsman.engine.verify import Report
from pointsman.engine.view import RELEASE_PER_S, Engine, View, typed
from pointsman.errors import invalid
from pointsman.kernel.authoring import Machine
from pointsman.store import feed
from pointsman.store.connect import connect
from pointsman.store.copying import Told
from pointsman.store.database import Probe, Tx
from pointsman.store.pruning import Removed
from pointsman.types import Duration, Instant, Json, iso, uuid7

PYTHON = Door("python")
HEAD_FORMAT = 1


def unheard(*_: object) -> None:
    """Nobody listens to how far it has come."""


class Verbs(Batching, Owning, Ledger, Reporting, Operating, Hooking):
    """Every verb."""


class Pointsman(Verbs, Blocks):
    """Pointsman embedded in a program: thread-safe, blocking; a context manager that closes its database.

    Opening makes the database when it is not there (`create`) and publishes the machines it serves (`publish`). With
    `duties` this process also numbers the feed, settles proposals that others left behind, fires deadlines and schedules, and
    keeps the store's time, as a server does. A `clock` of one's own is believed forward, unless an `uptime` tells a jump from
    time that passes. What a hold kept back is let go at `release_per_s`, unless the hold says otherwise. Of a PostgreSQL server
    it uses at most so many `connections` at a time (16), and one more for renewing the leases of its workers. With
    duties, messages go out through an `outlet` (`pointsman.sinks.outlet`)."""

    def __init__(
        self,
        url: str = "sqlite:///pointsman.db",
        machines: Sequence[type[Machine]] | None = None,
        *,
        create: bool = True,
        publish: bool = True,
        duties: bool = False,
        clock: Callable[[], Instant] | None = None,
        uptime: Callable[[], Duration] | None = None,
        chance: Chance = entropy,
        probe: Probe | None = None,
        judges: Judges = by_model,
        release_per_s: int = RELEASE_PER_S,
        connections: int | None = None,
        outlet: Outlet | None = None,
    ):
        typed(("release_per_s", release_per_s, int), ("connections", connections, int | None))
        found = of_rate(release_per_s)
        if connections is not None and connections < 1:
            found = [*found, ("connections", "must be at least 1")]
        if found:
            raise invalid(*found)
        registry = Registry([Tasks] if machines is None else machines, judges)
        time, passing = (wall_clock, machine_uptime) if clock is None else (clock, uptime)
        db = connect(url, clock=time, uptime=passing, server_clock=clock is None, create=create, probe=probe, connections=connections)
        try:
            if publish:
                registry.publish(db)
        except BaseException:
            db.close()
            raise
        super().__init__(Engine(db, registry, chance, time, release_per_s=release_per_s), PYTHON)
        self._duties = Duties(self.engine, outlet) if duties else None

    @property
    def aio(self) -> "Aio":
        """The same verbs, awaitable."""
        return Aio(self.engine, self.door)

    def through(self, door: Door) -> "Pointsman":
        """The same engine, recorded as called through another door."""
        view = object.__new__(Pointsman)
        View.__init__(view, self.engine, door)
        view._duties = self._duties
        return view

    def drive(self, steps: Steps[Any]) -> Any:
        return drive(steps, self.engine.db)

    def verify(self, head: Mapping[str, Any] | None = None) -> Report:
        """Recompute every chain and fold, and compare the live rows; with an exported head, find a cut tail too."""
        if head is not None and not (type(head.get("seq")) is int and isinstance(head.get("hash"), str)):
            raise invalid(("head", "is not what `head()` wrote: a `seq` and a `hash`"))
        return verify.verify(self.engine.db, head)

    def head(self) -> dict[str, Json]:
        """The feed's last number and hash, to be kept outside: `verify(head)` finds what was cut off behind it."""
        self.drive(numbered())
        last = self.engine.db.read(feed.head)
        return {"format": HEAD_FORMAT, "seq": last.seq, "hash": last.hash, "at": iso(last.at)}

    def export(self) -> Iterator[export.Line]:
        """The whole record as JSON objects, one a line of an export: what was published and every entry in feed order."""
        self.drive(numbered())
        return export.lines(self.engine.db)

    def backup(self, target: Path, *, replace: bool = False) -> None:
        """Copy the database, as of one moment and beside live work, into one file. StoreError when it cannot be had."""
        self.engine.db.backup(str(target.absolute()), replace=replace)

    def copy(self, to: str, told: Told = unheard) -> Arrived:
        """Copy everything, as of one moment and beside live work, into the database that a URL names, which must hold
        nothing, and verify it there. Until then that database is refused wherever it is opened.

        `told` hears of a table and how many of its rows have arrived."""
        typed(("to", to, str))
        engine = self.engine
        self.drive(numbered())
        target = connect(to, clock=engine.clock, create=True, unfinished=True)
        try:
            return moving.copy(engine.db, target, uuid7(engine.clock(), engine.chance(74)), told)
        finally:
            target.close()

    def prunable(self, older_than: Duration, *, payloads: bool = False) -> Removed:
        """How much `prune` would remove now."""
        typed(("payloads", payloads, bool))
        return pruning.prunable(self.engine.db, older_than, payloads=payloads)

    def prune(self, older_than: Duration, *, payloads: bool = False, told: Callable[[Removed], None] = unheard) -> Removed:
        """Remove what need not be kept for ever and is older: idempotency records, refusals, settled proposals, judgements
        of tasks that have been final for so long; with `payloads` those of these tasks' entries too. Entries stay, and
        `verify` knows what was pruned. `told` hears, after each transaction, what went so far."""
        typed(("payloads", payloads, bool))
        return pruning.prune(self.engine.db, older_than, payloads=payloads, told=told)

    def doctor(self) -> list[str]:
        """Warnings in words: functions that changed under a version number, or that open tasks need and nobody has; open
        tasks that nothing will move on; messages that do not go out."""
        return self.engine.db.read(lambda tx: [*self.engine.registry.warnings(tx), *_stranded(self.engine.registry, tx), *of_hooks(tx)])

    def check(self) -> list[str]:
        """Faults of the store itself; none is an empty list."""
        return self.engine.db.check()

    def close(self) -> None:
        if self._duties is not None:
            self._duties.stop()
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _stranded(registry: Registry, tx: Tx) -> list[str]:
    return [f"task {task} {why}" for task, why in ends.stranded(registry, tx)]


class Aio(Verbs, Awaits):
    """The verbs, awaitable, on the caller's event loop; no thread is spent on a call. `async with pm.aio as a:` names
    it for a block; closing stays with `Pointsman`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def _drive(self, steps: Steps[Any]) -> Any:
        return await adrive(steps, self.engine.db)

    def drive(self, steps: Steps[Any]) -> Any:
        return self._drive(steps)
