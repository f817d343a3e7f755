"""The covered facts of one task, and what one step of history does to them.

`Task` is what rules see, what readers get, and what folding history must give back. A step never edits a task:
it makes a new one, and `changes` is the difference that the history payload keeps. Folding is `apply` in a row.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal

from pointsman.kernel.chain import same
from pointsman.types import Fields, Instant, Json

Status = Literal["pass", "fail", "error", "pending", "stale"]
Fate = Literal["block", "cancel", "continue"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A check's result, bound to the digest of the inputs it judged."""

    status: Status
    reason: str
    inputs_digest: str
    by: str
    at: Instant
    detail: Json = None


@dataclass(frozen=True, slots=True)
class Decided:
    """An approver's recorded yes or no. `shown` is the digest the approver named, null when decided blind."""

    event: str
    by: str
    root: str
    at: Instant
    revision: int
    digest: str
    shown: str | None
    machine_version: int
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """Until when an owner holds a task without a call. Volatile: outside history, version and digest; `live` is
    computed when the row is read."""

    expires_at: Instant
    live: bool


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often somebody began on the task and brought nothing: `lost` counts an owner from the moment it holds a lease
    and is taken back when it delivers; `error` and `deferred` are what it said itself. Deferring is not capped."""

    lost: int = 0
    error: int = 0
    deferred: int = 0

    @property
    def counted(self) -> int:
        return self.lost + self.error


@dataclass(frozen=True, slots=True)
class Parked:
    """Out of work for a reason, since a time, until an operator unparks it."""

    reason: str
    at: Instant


@dataclass(frozen=True, slots=True)
class Dependency:
    """A task that has to be done first, and what its failing means here."""

    task: str
    on_failure: Fate = "block"


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that was begun, under an epoch, and is not settled."""

    id: str
    name: str
    epoch: int


Rule = Literal["all", "any"] | int


@dataclass(frozen=True, slots=True)
class Joining:
    """Waiting, without a lease, until enough children are done: all, any or so many of them. How many had ended before
    does not count."""

    rule: Rule
    done: int = 0
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Children:
    """How many children are open, and how the others ended."""

    open: int = 0
    done: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        return self.open + self.done + self.failed + self.cancelled


Cause = Literal["owner", "time", "decision", "dependency", "children"]


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a task waits for, and who can bring it on, in words; since when, and until when it may."""

    cause: Cause
    who: str | None
    since: Instant
    deadline: Instant | None
    satisfiable: bool


@dataclass(frozen=True)
class Task:
    """A unit of work. `fields` holds content, notes, results and computed fields by name; `revision` and `digest`
    move only with content; `contributors` are root names, case-folded; `decisions` are those of this revision. `since` is
    when it came into its state, `deadline` how long it may stay there. It is not claimed before `run_at`.
    `joining` says that its owner waits for children, `begun` are its operations that are not settled. `waiting`, `allowed`,
    `children`, `deduped` (it was there under its dedupe_key) and `replayed` (this is an earlier answer to the same request) are
    told to one reader and kept nowhere."""

    id: str
    machine: str
    machine_version: int
    state: str
    version: int
    revision: int
    digest: str
    fields: Fields
    created_at: Instant
    updated_at: Instant
    created_by: str
    owner: str | None = None
    owner_root: str | None = None
    session: str | None = None
    epoch: int = 0
    priority: int = 0
    evidence: Mapping[str, Evidence] = field(default_factory=dict[str, Evidence])
    contributors: tuple[str, ...] = ()
    decisions: tuple[Decided, ...] = ()
    since: Instant = 0
    deadline: Instant | None = None
    run_at: Instant | None = None
    tags: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    dedupe_key: str | None = None
    parent: str | None = None
    blocked_by: tuple[Dependency, ...] = ()
    attempts: Attempts = Attempts()
    parked: Parked | None = None
    joining: Joining | None = None
    begun: tuple[Begun, ...] = ()
    lease: Lease | None = field(default=None, compare=False)
    waiting: Waiting | None = field(default=None, compare=False)
    allowed: tuple[str, ...] = field(default=(), compare=False)
    replayed: bool = field(default=False, compare=False)
    deduped: bool = field(default=False, compare=False)
    children: Children | None = field(default=None, compare=False)

    @property
    def lapsed(self) -> bool:
        """The owner's time ran out, and nobody has taken the task yet."""
        return self.owner is not None and self.lease is not None and not self.lease.live

    @property
    def held(self) -> bool:
        return self.owner is not None and not self.lapsed

    @classmethod
    def of(cls, members: Mapping[str, Any]) -> "Task":
        """A task from all its members by name. Every step makes several tasks, so none runs twenty setters."""
        task = object.__new__(cls)
        task.__dict__.update(members)
        return task

    def but(self, **changes: Any) -> "Task":
        """This task with other values for some members, as `dataclasses.replace`."""
        assert changes.keys() <= self.__dict__.keys(), "a task has no such member"
        return Task.of(self.__dict__ | changes)


TOLD: Mapping[str, Any] = {"waiting": None, "allowed": (), "replayed": False, "deduped": False, "children": None}
"""Members that are told to one reader, as they are when nobody asked."""

# `id` names the row; `version` and `updated_at` stand on the entry itself; the lease is volatile, and the rest is
# told to one reader.
_OUTSIDE_CHANGES = ("id", "version", "updated_at", "lease", *TOLD)
COVERED = tuple(item.name for item in fields(Task) if item.name not in _OUTSIDE_CHANGES)
_USUAL: Mapping[str, Any] = {item.name: item.default for item in fields(Task) if item.default is not MISSING}


def plain(value: Any) -> Any:
    """A member of a task as JSON."""
    if isinstance(value, Evidence | Decided | Attempts | Parked | Dependency | Joining | Begun | Children):
        return {name: getattr(value, name) for name in value.__slots__}
    if isinstance(value, tuple):
        return [plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value


def parsed(name: str, value: Any) -> Any:
    """The inverse of `plain` for the member called `name`."""
    match name:
        case "evidence":
            return {check: Evidence(**item) for check, item in value.items()}
        case "decisions":
            return tuple(Decided(**item) for item in value)
        case "blocked_by":
            return tuple(Dependency(**item) for item in value)
        case "begun":
            return tuple(Begun(**item) for item in value)
        case "attempts":
            return Attempts(**value)
        case "parked":
            return None if value is None else Parked(**value)
        case "joining":
            return None if value is None else Joining(**value)
        case "contributors" | "tags" | "needs":
            return tuple(value)
        case _:
            return value


def changes(before: Task | None, after: Task) -> dict[str, Json]:
    """What a step changed, as JSON. Fields are named one by one, so a payload holds only what moved; a first entry leaves
    out what every task has unless its creator says otherwise."""
    if before is None:
        return {name: plain(getattr(after, name)) for name in COVERED if name not in _USUAL or getattr(after, name) != _USUAL[name]}
    old, new = before.__dict__, after.__dict__
    moved: dict[str, Json] = {
        name: plain(new[name]) for name in COVERED if new[name] is not old[name] and name != "fields" and new[name] != old[name]
    }
    if after.fields is before.fields:
        return moved
    moved_fields = {
        name: value for name, value in after.fields.items() if name not in before.fields or not same(before.fields[name], value)
    }
    return {**moved, "fields": moved_fields} if moved_fields else moved


def apply(before: Task | None, task_id: str, version: int, at: Instant, moved: Mapping[str, Any]) -> Task:
    """One step of a fold: the task after an entry, from the task before it."""
    values = {name: parsed(name, value) for name, value in moved.items()}
    if before is None:
        return Task(id=task_id, version=version, updated_at=at, **values)
    if "fields" in values:
        values["fields"] = {**before.fields, **values["fields"]}
    return before.but(version=version, updated_at=at, **values)


def fold(steps: Iterable[tuple[str, int, Instant, Mapping[str, Any]]]) -> Task | None:
    """Replay (task id, version, at, changes) in order."""
    task: Task | None = None
    for task_id, version, at, moved in steps:
        task = apply(task, task_id, version, at, moved)
    return task
