"""Everything that is wrong with a definition, at once, each with its line.

`faults` also gives the warnings (`Fault.warning`), which do not keep a machine from being served.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain

from pointsman.errors import Fault
from pointsman.kernel import ingest, opinion, schedule, schema
from pointsman.kernel.cautions import cautions
from pointsman.kernel.definition import (
    KINDS,
    NOTICES,
    Check,
    Computed,
    Definition,
    Effect,
    Event,
    Field,
    Limit,
    Retry,
    Schedule,
    Schema,
    State,
)
from pointsman.kernel.flow import first, reachable, satisfiable, search
from pointsman.kernel.kinds import misfits
from pointsman.kernel.prove import false_proofs
from pointsman.kernel.rules import ANONYMOUS, leaves, says
from pointsman.types import Duration, hours

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_MACHINE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")

# Words with a meaning of their own: in `on_lapse`, in `on_deadline`, as a caller without a name, and on every machine.
_OF_THE_MACHINE = ("version", "proves", "retry", "max_children", "max_depth", "definition", "functions")
RESERVED = frozenset({"same", *NOTICES, ANONYMOUS, *_OF_THE_MACHINE})

# Tools that every server has for agents.
SERVER_TOOLS = frozenset(
    [
        "list_work",
        "get_task",
        "create_task",
        "claim_task",
        "renew_lease",
        "release_task",
        "checkpoint",
        "resume_task",
        "begin_operation",
        "finish_operation",
        "get_proposal",
        "wait_task",
        "propose",
    ]
)

LONGEST_WORDS = 200
MOST = 10**12
"""The largest limit: its millionths fit 64 bits with room."""
LONGEST: Duration = hours(24 * 36_500)
"""A hundred years: whatever is declared ends before the calendar does."""
_AND_AT_MOST = "and at most a hundred years"

OUTCOMES = (None, "failed", "cancelled")


def faults(definition: Definition) -> tuple[Fault, ...]:
    """Faults first, in the order of their lines, then warnings. Members of the wrong kind leave nothing else to ask."""
    if unfit := list(misfits(definition)):
        return tuple(sorted(unfit, key=lambda fault: fault.line))
    found = [
        *_names(definition),
        *_whole(definition),
        *(fault for item in definition.fields for fault in _field(definition, item)),
        *(fault for item in definition.states for fault in _state(definition, item)),
        *(fault for item in definition.checks for fault in _check(definition, item)),
        *(fault for item in definition.computed for fault in _computed(definition, item)),
        *(fault for item in definition.events for fault in _event(definition, item)),
        *(fault for item in definition.schedules for fault in _schedule(definition, item)),
        *(fault for item in definition.effects for fault in _effect(definition, item)),
        *_tools(definition),
        *_ways(definition),
        *_proofs(definition),
        *false_proofs(definition),
    ]
    return (*sorted(found, key=lambda fault: fault.line), *cautions(definition))


def _at(item: Field | State | Check | Computed | Event | Schedule | Effect, code: str, message: str) -> Fault:
    return Fault(code, message, item.name, item.line)


# ── names and the whole ──────────────────────────────────────────────────────────────────────────────────────────


def _names(definition: Definition) -> Iterator[Fault]:
    """One name, one thing: fields, states, events, checks, computed fields, schedules and effects share one set of names."""
    seen = set[str]()
    declared = (definition.fields, definition.states, definition.events, definition.checks, definition.computed)
    for item in chain.from_iterable((*declared, definition.schedules, definition.effects)):
        if not _NAME.fullmatch(item.name):
            yield _at(item, "bad_name", "a name is up to 64 ASCII letters, digits and _, and begins with a letter")
        if item.name in RESERVED:
            yield _at(item, "reserved_name", "this name has a meaning of its own")
        if item.name in seen:
            yield _at(item, "name_clash", "this name is taken in the same machine")
        seen.add(item.name)


def _whole(definition: Definition) -> Iterator[Fault]:
    def fault(code: str, message: str) -> Fault:
        return Fault(code, message, definition.name, definition.line)

    if not _MACHINE_NAME.fullmatch(definition.name) or definition.name in RESERVED:
        yield fault("bad_name", "a machine's name is up to 64 ASCII letters, digits, _ and -, begins with a letter and is no reserved word")
    if type(definition.version) is not int or not 1 <= definition.version < 1 << 31:
        yield fault("bad_version", "`version` must be a whole number from 1")
    yield from (fault("bad_retry", text) for text in _retry(definition.retry))
    for name, number in (("max_children", definition.max_children), ("max_depth", definition.max_depth)):
        if type(number) is not int or not 0 <= number < 1 << 31:
            yield fault("bad_limit", f"`{name}` must be a whole number from 0")
    starts = [state for state in definition.states if state.initial]
    if not starts:
        yield fault("no_initial", "no state is initial: write State(initial=True)")
    yield from (_at(state, "two_initial", f"{starts[0].name} is initial already") for state in starts[1:])
    if definition.cancels_to is None:
        yield fault("no_cancel_target", 'a cancelled task has nowhere to go: write State(final=True, outcome="cancelled" or "failed")')


def _retry(retry: Retry) -> Iterator[str]:
    if retry.tries < 1 or not 0 <= retry.base <= retry.cap <= LONGEST:
        yield "`tries` is a whole number from 1, `base` no longer than `cap`, and `cap` no longer than a hundred years"


def _tools(definition: Definition) -> Iterator[Fault]:
    count = Counter(event.tool or event.name for event in definition.events if not event.acquires)
    for event in definition.events:
        tool = event.tool or event.name
        if not _NAME.fullmatch(tool):
            yield _at(event, "bad_name", "a tool's name is up to 64 ASCII letters, digits and _, and begins with a letter")
        if event.acquires and event.tool:
            yield _at(event, "unused_tool", "an acquiring event has no tool of its own: claim_task is its tool")
        elif not event.acquires and tool in SERVER_TOOLS:
            yield _at(event, "tool_clash", f"every server has a tool {tool}: name another with tool=")
        elif not event.acquires and count[tool] > 1:
            yield _at(event, "tool_clash", f"two events have the tool {tool}")


# ── fields and functions ─────────────────────────────────────────────────────────────────────────────────────────


def _field(definition: Definition, item: Field) -> Iterator[Fault]:
    unfit = list(schema.unsupported(item.schema))
    if unfit:
        yield _at(item, "field_type", f"its type cannot be judged: {', '.join(unfit)}")
    elif not item.required and (found := ingest.faults(item.default, "default") or schema.faults(item.schema, item.default, "default")):
        yield _at(item, "bad_default", "; ".join(f"{path} {message}" for path, message in found))
    if item.required and item.name in definition.settable:
        yield _at(item, "no_default", "an event sets it, so a creator cannot give it: it needs a default until then")


def _check(definition: Definition, item: Check) -> Iterator[Fault]:
    yield from _reads(definition, item, (name for name, _ in item.reads))
    yield from _version(item)
    if item.eager and item.opinion:
        yield _at(item, "eager_opinion", "an opinion is slow and costs: it cannot be eager")
    if not 0 < item.timeout <= LONGEST:
        yield _at(item, "bad_time", f"its timeout must be longer than nothing, {_AND_AT_MOST}")
    if item.judge is not None:
        yield from (_at(item, "bad_judge", text) for text in opinion.faults(item.judge))
        if not item.reads or len(set(item.reads)) < len(item.reads):
            yield _at(item, "bad_judge", "`reads` names the fields that the judge sees, each once")


def _computed(definition: Definition, item: Computed) -> Iterator[Fault]:
    yield from _reads(definition, item, item.reads)
    yield from _version(item)
    if unfit := list(schema.unsupported(item.schema)):
        yield _at(item, "field_type", f"its type cannot be judged: {', '.join(unfit)}")


def _reads(definition: Definition, item: Check | Computed, names: Iterable[str]) -> Iterator[Fault]:
    for name in names:
        if name not in definition.field:
            yield _at(item, "unknown_field", f"it reads {name}, which is no field")
        elif name not in definition.content:
            yield _at(item, "reads_no_content", f"it reads {name}, which is a {definition.field[name].kind} and not content")


def _version(item: Check | Computed) -> Iterator[Fault]:
    if item.function.version < 1:
        yield _at(item, "bad_version", "the version of a function is a whole number from 1")


# ── states and events ────────────────────────────────────────────────────────────────────────────────────────────


def _state(definition: Definition, item: State) -> Iterator[Fault]:
    if item.outcome not in OUTCOMES:
        yield _at(item, "bad_outcome", 'an outcome is "failed" or "cancelled"')
    if item.outcome and not item.final:
        yield _at(item, "bad_outcome", "only a final state has an outcome")
    if item.final and (item.lease or item.deadline or item.on_lapse or item.on_deadline or item.initial):
        yield _at(item, "final_waits", "a final state is not initial and has no lease and no deadline")
    if any(span is not None and not 0 < span <= LONGEST for span in (item.lease, item.deadline)):
        yield _at(item, "bad_time", f"a lease or deadline must be longer than nothing, {_AND_AT_MOST}")
    if item.on_lapse not in (None, "same", *definition.state):
        yield _at(item, "unknown_state", f'on_lapse is "same" or a state, and {item.on_lapse} is neither')
    if item.on_lapse and item.lease is None:
        yield _at(item, "no_lease", "on_lapse says what happens when a lease lapses, and there is none")
    yield from _deadline(definition, item)


def _deadline(definition: Definition, item: State) -> Iterator[Fault]:
    event = definition.event.get(item.on_deadline or "")
    if item.on_deadline and item.deadline is None:
        yield _at(item, "no_deadline", "on_deadline says what happens at a deadline, and there is none")
    if item.on_deadline not in (None, *NOTICES) and (event is None or event.target(item.name) is None):
        yield _at(
            item,
            "unknown_event",
            f'on_deadline is "remind", "escalate" or an event open in this state, and {item.on_deadline} is none of them',
        )
    if event and (event.acquires or any(setting.required for setting in event.sets)):
        yield _at(item, "unfit_deadline", f"nobody asks for {event.name} then: it cannot acquire, nor set what is not given")


def _event(definition: Definition, item: Event) -> Iterator[Fault]:
    yield from _moves(definition, item)
    yield from _settings(definition, item)
    yield from (
        _at(item, "unknown_check", f"it requires {name}, which is no check") for name in item.requires if name not in definition.check
    )
    if item.otherwise and item.otherwise not in definition.state:
        yield _at(item, "unknown_state", f"otherwise leads to {item.otherwise}, which is no state")
    if item.otherwise and not item.requires:
        yield _at(item, "unused_otherwise", "`otherwise` is taken when a required check fails, and none is required")
    if any(guard.version < 1 for guard in item.when):
        yield _at(item, "bad_version", "the version of a function is a whole number from 1")
    if item.tells is not None and not (0 < len(item.tells.strip()) <= LONGEST_WORDS and item.tells.isprintable()):
        yield _at(item, "bad_words", f"`tells` is one line of 1 to {LONGEST_WORDS} characters")
    yield from (_at(item, code, message) for limit in item.limits for code, message in _limit(definition, item, limit))
    yield from _rule(definition, item)


def _limit(definition: Definition, event: Event, limit: Limit) -> Iterator[tuple[str, str]]:
    if ingest.identifier(limit.name, ""):
        yield "bad_name", "the name of a limit is ASCII, as that of a tag"
        return
    if [other for other in definition.limits if other.name == limit.name] != [limit] or event.limits.count(limit) > 1:
        yield "name_clash", f"limit {limit.name} is declared twice, or in two ways: declare it once"
    if type(limit.most) not in ((int,) if limit.sum is None else (int, float)) or not 0 < limit.most <= MOST:
        yield "bad_limit", f"what limit {limit.name} lets pass must be more than 0, and a whole number unless it is a sum"
    if limit.per is not None and (type(limit.per) is not int or not 0 < limit.per <= LONGEST):
        yield "bad_time", f"limit {limit.name} must be for a time longer than nothing, {_AND_AT_MOST}"
    if limit.per is None and not event.acquires:
        yield "bad_limit", f"limit {limit.name} counts owners, and {event.name} makes none: it does not acquire"
    for name in (limit.key, limit.sum):
        if name is not None and name not in definition.field:
            yield "unknown_field", f"limit {limit.name} looks at {name}, which is no field"
    if limit.sum is not None and limit.sum in definition.field and not _numeric(definition.field[limit.sum].schema):
        yield "bad_limit", f"limit {limit.name} adds up {limit.sum}, which is no number"


def _numeric(schema: Schema) -> bool:
    """Whether a field holds a number, or none."""
    options = [option for option in schema.get("anyOf", [schema]) if option.get("type") != "null"]
    return bool(options) and all(option.get("type") in ("integer", "number") for option in options)


def _moves(definition: Definition, item: Event) -> Iterator[Fault]:
    if not item.moves:
        yield _at(item, "no_moves", "it moves nothing: give it moves such as `a >> b`")
    for name in dict.fromkeys(name for move in item.moves for name in move if name not in definition.state):
        yield _at(item, "unknown_state", f"it moves from or to {name}, which is no state")
    for name, times in Counter(item.sources).items():
        if times > 1:
            yield _at(item, "shadowed", f"it has {times} moves from {name}, and only the first would ever be taken")
        if name in definition.state and definition.state[name].final:
            yield _at(item, "out_of_final", f"it moves out of {name}, which is final")


def _settings(definition: Definition, item: Event) -> Iterator[Fault]:
    computed = {computed.name for computed in definition.computed}
    for name, times in Counter(setting.field for setting in item.sets).items():
        if name in computed:
            yield _at(item, "sets_computed", f"it sets {name}, which is computed")
        elif name not in definition.field:
            yield _at(item, "unknown_field", f"it sets {name}, which is no field")
        if times > 1:
            yield _at(item, "sets_twice", f"it sets {name} twice")
    for setting in item.sets:
        field = definition.field.get(setting.field)
        if field and not setting.required and (found := schema.faults(field.schema, setting.default, "")):
            yield _at(item, "bad_default", f"the default it sets {setting.field} to {found[0][1]}")


def _rule(definition: Definition, item: Event) -> Iterator[Fault]:
    """A rule that contradicts itself, or needs an owner where nobody can be one."""
    if any(leaf.op == "role" and leaf.args[0] == ANONYMOUS for leaf in leaves(item.by)):
        yield _at(item, "reserved_name", f"{ANONYMOUS} is a caller without a name, not a role")
    possible = [held for held in (False, True) if satisfiable(item.by, held)]
    if not possible:
        yield _at(item, "nobody", f"nobody can satisfy its rule: {says(item.by)}; whoever owns a task is a contributor")
        return
    for source in item.sources:
        there = [held for state, held in reachable(definition) if state == source]
        due = source in definition.state and definition.state[source].on_deadline == item.name
        if there and not due and not set(there) & set(possible):
            yield _at(item, "nobody", f"nobody can satisfy its rule in {source}: it needs the owner, and nobody owns the task there")


def _schedule(definition: Definition, item: Schedule) -> Iterator[Fault]:
    yield from (_at(item, "bad_schedule", text) for text in schedule.faults(item))
    if not isinstance(item.fields, dict):
        yield _at(item, "bad_schedule", "its fields are a dict, as for a task that somebody creates")
    elif found := schema.initial_fields(definition, item.fields)[1]:
        yield _at(item, "bad_schedule", "; ".join(f"{path} {message}" for path, message in found))


def _effect(definition: Definition, item: Effect) -> Iterator[Fault]:
    if item.kind not in KINDS:
        yield _at(item, "bad_effect", f"its kind is one of {', '.join(KINDS)}")
    if not 0 <= item.settle <= LONGEST:
        yield _at(item, "bad_time", f"the time to settle is none or more, {_AND_AT_MOST}")
    for name in item.during:
        if name in definition.state and definition.state[name].final:
            yield _at(item, "bad_effect", f"it happens in {name}, which is final: nobody works on the task there")
    for name in item.request:
        if name not in definition.field:
            yield _at(item, "unknown_field", f"its request has {name}, which is no field")
        elif name not in definition.content:
            yield _at(item, "reads_no_content", f"its request has {name}, which is a {definition.field[name].kind}: nobody approves that")
    if len(set(item.request)) < len(item.request):
        yield _at(item, "bad_effect", "its request names a field twice")
    if item.undo is not None and (item.undo not in definition.effect or item.undo == item.name):
        yield _at(item, "bad_effect", f"it is undone by {item.undo}, which is no other effect of this machine")


# ── the graph ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ways(definition: Definition) -> Iterator[Fault]:
    """States that no task comes to, and states that no task leaves for good."""
    entered = {state for state, _ in reachable(definition)}
    ends = _leading_to_an_end(definition)
    for state in definition.states:
        if entered and state.name not in entered:
            yield _at(state, "unreachable", f"no path leads here from {first(definition)}")
        if not state.final and not _leaves(definition, state.name):
            yield _at(state, "no_way_out", "no event leads out of it, and it is not final")
        elif state.name not in ends:
            yield _at(state, "no_way_out", "no path of events leads from it to a final state")


def _leaves(definition: Definition, name: str) -> bool:
    return any(source == name != target for event in definition.events for source, target in event.moves)


def _leading_to_an_end(definition: Definition) -> set[str]:
    back = [(target, source) for event in definition.events for source, target in event.moves]
    ends = [state.name for state in definition.states if state.final]

    def onward(name: str) -> Iterator[tuple[str, str]]:
        if not name:
            return (("", end) for end in ends)
        return (("", source) for target, source in back if target == name)

    return set(search("", onward))


def _proofs(definition: Definition) -> Iterator[Fault]:
    for proof in definition.proves:
        if proof.state not in definition.state:
            yield Fault("unknown_state", f"it speaks of {proof.state}, which is no state", "proves", proof.line)
        if proof.event not in definition.event:
            yield Fault("unknown_event", f"it speaks of {proof.event}, which is no event", "proves", proof.line)
