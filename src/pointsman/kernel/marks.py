"""The words of a machine's class body. Each only remembers what was written; the class closes them into a `Definition`.

    a >> b          one move                (a | b) >> c    from several states
    ~(a | b) >> c   from every state that is neither a nor b and not final

`>>` binds tighter than `|`, so `a | b >> c` would mean something else: such spellings raise a TypeError that says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Never, TypeAlias

from pointsman.kernel.definition import Kind, Misfire
from pointsman.kernel.functions import CheckMark, GuardMark, JudgeMark, Predicate, several
from pointsman.kernel.rules import Rule, anyone
from pointsman.types import Duration

# ── states and moves ─────────────────────────────────────────────────────────────────────────────────────────────


class States:
    """One or several states as the source of a move; with `~`, every other one that is not final."""

    def __init__(self, members: "tuple[State, ...]", others: bool = False):
        self.members = members
        self.others = others

    def __rshift__(self, target: "State") -> "Moves":
        if not isinstance(target, State):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("a move leads to one state: write `(a | b) >> c`")
        return Moves(self, target)

    def __or__(self, other: "States") -> "States":
        if isinstance(other, Moves):
            raise TypeError("`a | b >> c` means `a | (b >> c)`: write `(a | b) >> c`")
        if not isinstance(other, States):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        if self.others or other.others:
            raise TypeError("`~` stands outermost: write `~(a | b) >> c`")
        return States(self.members + other.members)

    def __invert__(self) -> "States":
        if self.others:
            raise TypeError("`~` stands once, outermost: write `~(a | b) >> c`")
        return States(self.members, others=True)

    def __bool__(self) -> bool:
        raise TypeError("combine states with |; `and`, `or` and `not` would drop one of them")


class State(States):
    """A place a task can be in. A `lease` says how long an owner holds the task here without a call; `on_lapse` where it
    goes when somebody else takes it over ("same", or a state; the initial one if not said), `max_hold` how long an owner may
    go on renewing without any other call. A `deadline` says how long
    it may wait here, `on_deadline` what then ("remind", "escalate", or the name of an event)."""

    def __init__(
        self,
        *,
        initial: bool = False,
        final: bool = False,
        outcome: Literal["failed", "cancelled"] | None = None,
        lease: Duration | None = None,
        on_lapse: "State | str | None" = None,
        max_hold: Duration | None = None,
        deadline: Duration | None = None,
        on_deadline: str | None = None,
    ):
        super().__init__((self,))
        self.initial, self.final, self.outcome = initial, final, outcome
        self.lease, self.on_lapse, self.max_hold = lease, on_lapse, max_hold
        self.deadline, self.on_deadline = deadline, on_deadline


class Moves:
    """Sources and one target."""

    def __init__(self, sources: States, target: State):
        self.sources = sources
        self.target = target

    def __rshift__(self, target: Never) -> "Moves":
        raise TypeError("`a >> b >> c` is two moves: write `a >> b, b >> c`")

    def __or__(self, other: Never) -> "Moves":
        raise TypeError("`a >> b | c` means `(a >> b) | c`: write `a >> b, a >> c` in two events, or `(a | c) >> b`")

    def __bool__(self) -> bool:
        raise TypeError("list moves with commas; `and`, `or` and `not` would drop one of them")


# ── fields ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FieldMark:
    kind: Literal["note", "result"]
    default: Any


def note(default: Any = None) -> Any:
    """Words about the work: not part of the content that gates bind to. Typed Any so that it fits every annotation."""
    return FieldMark("note", default)


def result(default: Any = None) -> Any:
    """What an effect brought back: not part of the content that gates bind to."""
    return FieldMark("result", default)


@dataclass(frozen=True, slots=True)
class OptionalMark:
    field: str
    default: Any


def optional(field: str, default: Any = None) -> OptionalMark:
    """An argument that may be absent or null; then the event sets `default`."""
    return OptionalMark(field, default)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Named:
    """A field of the machine by its name."""

    name: str


class Fields:
    """`field.amount` names a field of the machine that a rule or limit stands in."""

    def __getattr__(self, name: str) -> Named:
        return Named(name)


field = Fields()


class Limit:
    """How much may happen across all tasks, under a name that other events and machines may share.

    `Limit("openai", per=minutes(1), max=600)`: so many accepted events in any minute. `sum=field.amount` counts the value of
    a field in place of one each. `concurrent=1`: so many tasks that somebody owns, for events that acquire. With
    `key=field.repo` each value of that field has a limit of its own."""

    def __init__(
        self,
        name: str,
        *,
        per: Duration | None = None,
        max: int | float | None = None,
        sum: Named | None = None,
        concurrent: int | None = None,
        key: Named | None = None,
    ):
        self.name, self.per, self.max, self.sum, self.concurrent, self.key = name, per, max, sum, concurrent, key


# ── events and proofs ────────────────────────────────────────────────────────────────────────────────────────────

Checks: TypeAlias = CheckMark[...] | JudgeMark
Guards: TypeAlias = GuardMark | Predicate
Sets: TypeAlias = str | OptionalMark


class Event:
    """A named request to move a task.

    `by` says who may propose it, `sets` names the fields its arguments set, `requires` the checks that must pass on the
    proposed content, `otherwise` the state taken, draft and evidence kept, when one fails. An event that `acquires` makes
    the proposer the owner. `when` are guards, `limits` are shared with all other tasks. `tool` names it for agents.
    `tells` are words for whoever listens outside: hooks hear of `event:NAME`."""

    def __init__(
        self,
        *moves: Moves,
        by: Rule = anyone,
        sets: Sets | tuple[Sets, ...] = (),
        requires: Checks | tuple[Checks, ...] = (),
        otherwise: State | None = None,
        acquires: bool = False,
        when: Guards | tuple[Guards, ...] = (),
        tool: str | None = None,
        limits: Limit | tuple[Limit, ...] = (),
        tells: str | None = None,
    ):
        for move in moves:
            if not isinstance(move, Moves):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError("an event is made of moves such as `a >> b`; write `(a | b) >> c` for several sources")
        self.moves, self.by, self.otherwise, self.acquires, self.tool = moves, by, otherwise, acquires, tool
        self.sets: tuple[Sets, ...] = several(sets)
        self.requires: tuple[Checks, ...] = several(requires)
        self.when: tuple[Guards, ...] = several(when)
        self.limits: tuple[Limit, ...] = several(limits)
        self.tells = tells


@dataclass(frozen=True, slots=True)
class Always:
    state: State
    event: Event


def always(state: State, event: Event) -> Always:
    """On every path to `state`, `event` comes after the last change of content."""
    return Always(state, event)


# ── effects ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Effect:
    """Something that the task's owner may do to the outside, and that approving it allows.

    `refund = Effect("refund", during=approved, request=("order", "amount"), kind="lookup", settle=minutes(10))`. What is sent are
    exactly those fields of the task, as they are then. `kind` says what a new owner may do when nobody can say whether it
    happened: "repeatable" and "keyed" are done again, "lookup" asks the remote first (and believes "not found" only `settle`
    after the sender gave up), "ask" waits for a person. `undo` names the effect that takes it back."""

    def __init__(
        self,
        name: str,
        *,
        during: States,
        request: str | tuple[str, ...],
        kind: Kind,
        settle: Duration = 0,
        undo: "Effect | str | None" = None,
    ):
        if not isinstance(during, States):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError("an effect happens in states: write during=approved, or during=approved | paying")
        self.name, self.during, self.settle, self.undo = name, during, settle, undo
        self.kind: Kind = kind
        self.request: tuple[str, ...] = several(request)


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────────────────


class Schedule:
    """Makes a task at every moment that a cron expression names: minute, hour, day of month, month, day of week, on the clocks
    of the time zone `tz`. `fields` are those of each task, `by` its creator. `misfire` says what becomes of moments that came
    while no server ran: "once" makes one task, late; "skip" makes none."""

    def __init__(
        self,
        cron: str,
        *,
        tz: str = "UTC",
        fields: Mapping[str, Any] | None = None,
        by: str = "scheduler",
        misfire: Misfire = "once",
    ):
        self.cron, self.tz, self.by = cron, tz, by
        self.misfire: Misfire = misfire
        self.fields: Mapping[str, Any] = {} if fields is None else fields
