"""The one frozen form of a machine.

A class body (`authoring.py`) or a stored JSON text becomes a `Definition`; everything else is drawn from it: the
interpreter, the proofs, diagrams, forms, routes and tools. It holds structure and the names and versions of
functions, never a function. Field types are JSON Schema (the subset of `schema.py`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

from pointsman.kernel.rules import Rule, anyone, mentions
from pointsman.types import Duration, Json

FieldKind = Literal["content", "note", "result"]
Kind = Literal["repeatable", "keyed", "lookup", "ask"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What may be done about an operation that nobody alive can answer for: kernel/operation.py."""
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A typed field. A `content` field is part of revision and digest; a `note` or `result` is not."""

    name: str
    schema: Schema
    kind: FieldKind = "content"
    required: bool = True
    default: Json = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class State:
    name: str
    initial: bool = False
    final: bool = False
    outcome: str | None = None
    lease: Duration | None = None
    on_lapse: str | None = None
    max_hold: Duration | None = None
    deadline: Duration | None = None
    on_deadline: str | None = None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Setting:
    """A field that an event sets. When not required, an absent or null argument sets `default`."""

    field: str
    required: bool = True
    default: Json = None


@dataclass(frozen=True, slots=True)
class Function:
    """A reference to code: bound by name and declared version, never by content."""

    name: str
    version: int = 1


@dataclass(frozen=True, slots=True)
class Judge:
    """An LLM that is asked whether content meets a rubric. `model` is "provider:name"; `base_url` and the key, in the
    environment variable `api_key_env`, are the provider's usual ones unless given; `price` is per million tokens,
    (in, out)."""

    rubric: str
    model: str
    max_tokens: int
    base_url: str | None = None
    api_key_env: str | None = None
    price: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A judgement of content. `reads` are content fields with whether the function takes null; an `eager` one is
    cheap and pure and is judged at every change of content; an `opinion` satisfies no proof. A `judge` is an LLM's, and
    needs no code of the author's."""

    name: str
    function: Function
    reads: tuple[tuple[str, bool], ...]
    eager: bool = False
    timeout: Duration = 60_000_000
    opinion: bool = False
    line: int = 0
    judge: Judge | None = None


@dataclass(frozen=True, slots=True)
class Computed:
    """A stored pure function of content fields."""

    name: str
    function: Function
    reads: tuple[str, ...]
    schema: Schema
    line: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may happen across all tasks, under a name: `most` events in any `per`, or of the sum of a field; without
    `per`, `most` tasks that somebody owns. With a `key` each value of that field has a limit of its own."""

    name: str
    most: int | float
    per: Duration | None = None
    key: str | None = None
    sum: str | None = None


@dataclass(frozen=True)
class Event:
    """A named request to move a task. `moves` are (source, target) pairs, at most one per source. `tells` are words
    that go to the outside when it is taken."""

    name: str
    moves: tuple[tuple[str, str], ...]
    by: Rule = anyone
    sets: tuple[Setting, ...] = ()
    requires: tuple[str, ...] = ()
    otherwise: str | None = None
    acquires: bool = False
    when: tuple[Function, ...] = ()
    tool: str | None = None
    limits: tuple[Limit, ...] = ()
    tells: str | None = None
    line: int = 0

    @cached_property
    def decides(self) -> bool:
        """A decision judges somebody's content: its rule asks about contributors."""
        return mentions(self.by, "contributor")

    @cached_property
    def personal(self) -> bool:
        """Whether it matters who somebody is: its caller comes to own, owns, or decides."""
        return self.acquires or self.decides or mentions(self.by, "owner")

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(source for source, _ in self.moves)

    def target(self, source: str) -> str | None:
        return self._targets.get(source)

    @cached_property
    def _targets(self) -> Mapping[str, str]:
        return dict(reversed(self.moves))


@dataclass(frozen=True, slots=True)
class Proof:
    """`always`: on every path to `state`, `event` comes after the last change of content."""

    kind: Literal["always"]
    state: str
    event: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """Something that a task's owner may do to the outside while the task is in one of the states of `during`. What is sent are
    exactly the `request` fields of the task; `kind` and `settle` are those of its operation, `undo` is the effect that takes it
    back, if one does."""

    name: str
    during: tuple[str, ...]
    request: tuple[str, ...]
    kind: Kind
    settle: Duration = 0
    undo: str | None = None
    line: int = 0


NOTICES = ("remind", "escalate")
"""What a deadline may do beside taking an event."""

Misfire = Literal["once", "skip"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Makes a task from `fields`, created by `by`, at every moment that a cron expression names on the clocks of a time zone.
    What came due while nobody was there is made `once`, late, or is left out (`skip`)."""

    name: str
    cron: str
    tz: str
    fields: Mapping[str, Json]
    by: str
    misfire: Misfire
    line: int = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """How often work on a task may begin and come to nothing before it is parked, and how long it rests after an error:
    a random part of `base` doubled with every try, up to `cap`. Source: exponential backoff with full jitter, Brooker 2015."""

    tries: int = 5
    base: Duration = 2_000_000
    cap: Duration = 600_000_000


MAX_CHILDREN, MAX_DEPTH = 1_000, 5
"""How many children a task may have, and how far below the first parent, unless its machine says otherwise."""

Named = TypeVar("Named", Field, State, Check, Computed, Event, Schedule, Effect)


@dataclass(frozen=True)
class Definition:
    name: str
    version: int
    doc: str = ""
    fields: tuple[Field, ...] = ()
    states: tuple[State, ...] = ()
    events: tuple[Event, ...] = ()
    checks: tuple[Check, ...] = ()
    computed: tuple[Computed, ...] = ()
    proves: tuple[Proof, ...] = ()
    retry: Retry = Retry()
    max_children: int = MAX_CHILDREN
    max_depth: int = MAX_DEPTH
    schedules: tuple[Schedule, ...] = ()
    effects: tuple[Effect, ...] = ()
    line: int = field(default=0, compare=False)

    def __hash__(self) -> int:
        """Schemas are mappings and have no hash. Name and version nearly always tell definitions apart."""
        return hash((self.name, self.version))

    @property
    def cancels_to(self) -> str | None:
        """Where a cancelled task goes: the final state declared for it, else the final failed one."""
        ends = {state.outcome: state.name for state in reversed(self.states) if state.final}
        return ends.get("cancelled", ends.get("failed"))

    @cached_property
    def field(self) -> Mapping[str, Field]:
        return _by_name(self.fields)

    @cached_property
    def state(self) -> Mapping[str, State]:
        return _by_name(self.states)

    @cached_property
    def event(self) -> Mapping[str, Event]:
        return _by_name(self.events)

    @cached_property
    def check(self) -> Mapping[str, Check]:
        return _by_name(self.checks)

    @cached_property
    def schedule(self) -> Mapping[str, Schedule]:
        return _by_name(self.schedules)

    @cached_property
    def effect(self) -> Mapping[str, Effect]:
        return _by_name(self.effects)

    @cached_property
    def initial(self) -> str:
        return next(state.name for state in self.states if state.initial)

    @cached_property
    def content(self) -> tuple[str, ...]:
        """Names of the fields that revision and digest cover."""
        return tuple(f.name for f in self.fields if f.kind == "content")

    @cached_property
    def judged(self) -> frozenset[str]:
        """States in which somebody has to decide."""
        return frozenset(source for event in self.events if event.decides for source in event.sources)

    @cached_property
    def limits(self) -> tuple[Limit, ...]:
        """Every limit of its events."""
        return tuple(dict.fromkeys(limit for event in self.events for limit in event.limits))

    @cached_property
    def settable(self) -> frozenset[str]:
        """Fields that some event sets: a creator cannot pre-write them."""
        return frozenset(setting.field for event in self.events for setting in event.sets)

    def functions(self) -> Iterator[tuple[str, Function]]:
        """Every function the machine needs, as (kind, reference)."""
        yield from (("check", check.function) for check in self.checks)
        yield from (("computed", computed.function) for computed in self.computed)
        yield from (("guard", guard) for event in self.events for guard in event.when)


def _by_name(items: tuple[Named, ...]) -> dict[str, Named]:
    return {item.name: item for item in items}
