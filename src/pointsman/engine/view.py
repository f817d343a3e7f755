"""An engine, a view of it through one door, and how calls are read before any verb begins."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from pointsman.engine.chance import elapsed, wall_clock
from pointsman.engine.checks import Checks
from pointsman.engine.decision import Deciding
from pointsman.engine.door import Call, Door, principal, request
from pointsman.engine.record import Chance
from pointsman.engine.refusal_log import RefusalLog
from pointsman.engine.registry import Registry
from pointsman.engine.settling import Settling
from pointsman.engine.steps import Steps
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.definition import Definition
from pointsman.kernel.ingest import faults, identifier
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import Principal
from pointsman.kernel.task import Task
from pointsman.kernel.waiting import waiting
from pointsman.store.database import Database
from pointsman.types import task_id, uuid7

Id = str | UUID
By = str | Principal
PAGE = 100
LARGEST_PAGE = 1_000
RELEASE_PER_S = 10
"""How many tasks a second are acquired from what an ended hold kept back, unless somebody says otherwise."""


class Engine:
    """What all views of one database share."""

    def __init__(
        self,
        db: Database,
        registry: Registry,
        chance: Chance,
        clock: Any = wall_clock,
        elapsed: Callable[[], float] = elapsed,
        release_per_s: int = RELEASE_PER_S,
    ):
        self.db = db
        self.registry = registry
        self.chance = chance
        self.clock = clock
        self.elapsed = elapsed
        self.release_per_s = release_per_s
        self.checks = Checks()
        self.settling = Settling(db, registry, chance, self.checks)
        self.refusals = RefusalLog(db)

    def close(self) -> None:
        self.checks.close()
        self.settling.close()
        self.refusals.close()
        self.db.close()


class View:
    """An engine seen through a door. Its subclasses hold the verbs."""

    def __init__(self, engine: Engine, door: Door):
        self.engine = engine
        self.door = door

    @property
    def machines(self) -> Mapping[str, Definition]:
        """The newest served version of each machine."""
        return self.engine.registry.newest

    @property
    def url(self) -> str:
        """The database, with no secret in it."""
        return self.engine.db.url

    def opened(self, task: Task, by: By, session: str | None = None) -> Task:
        """A task that this process has just decided on, with what it waits for, unless others keep it waiting, and
        what is open to a principal now."""
        definition = self.engine.registry.known(task.machine, task.machine_version)
        if definition is None:
            return task
        held_then = task.replayed and task.owner is not None  # history keeps no leases
        told = None if task.blocked_by or held_then else waiting(definition, task, task.updated_at)
        return replace(task, waiting=told, allowed=allowed(definition, task, principal(by), session))

    def drive(self, steps: Steps[Any]) -> Any:
        raise NotImplementedError

    def deciding(self, by: By, session: str | None, key: str | None, body: Mapping[str, Any]) -> Deciding:
        """Who calls and what was asked. A call without an idempotency key gets one of its own."""
        who = principal(by)
        if session is not None and (found := identifier(session, "session")):
            raise invalid(*found)
        engine = self.engine
        fresh = uuid7(engine.clock(), engine.chance(74))
        call = Call(who, self.door, session, request(who, key, fresh, body), given=key is not None)
        return Deciding(call, engine.registry, engine.chance)


def task_named(id: Id, path: str = "id") -> str:
    try:
        return task_id(id)
    except ValueError as error:
        raise invalid((path, str(error))) from None


def proposal_named(id: Id) -> str:
    try:
        return task_id(id)
    except ValueError:
        raise Refused(Refusal("unknown_proposal", "no proposal has this id")) from None


def typed(*arguments: tuple[str, Any, Any]) -> None:
    """Arguments as (path, value, type), every fault at once, those of their text and size included. In Python True is
    an int; here it is not."""
    found = [fault for path, value, kind in arguments for fault in _faults(path, value, kind)]
    if found:
        raise invalid(*found)


def _faults(path: str, value: Any, kind: Any) -> list[tuple[str, str]]:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        return [(path, "has the wrong type")]
    return faults(value, path) if isinstance(value, str | int | float) else []


def patience(wait_s: float) -> None:
    """How long a caller would wait: seconds, none or more."""
    typed(("wait_s", wait_s, float | int))
    if wait_s < 0:
        raise invalid(("wait_s", "must not be negative"))


def page_size(limit: int | None, path: str = "limit") -> int:
    """Over the maximum clamps, below 1 is a fault."""
    typed((path, limit, int | None))
    if limit is not None and limit < 1:
        raise invalid((path, "must be at least 1"))
    return PAGE if limit is None else min(limit, LARGEST_PAGE)
