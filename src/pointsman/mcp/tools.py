"""Tools as data, made from the definitions of the served machines."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pointsman.engine.ledger import LONGEST_S, MOST_PLANNED
from pointsman.engine.terms import FATES, LARGEST_PRIORITY
from pointsman.kernel.definition import KINDS, Definition, Event, Schema
from pointsman.kernel.faults import SERVER_TOOLS
from pointsman.kernel.graph import MOST_UPSTREAMS
from pointsman.kernel.ingest import KEY_LENGTH
from pointsman.kernel.operation import OUTCOMES
from pointsman.kernel.rules import Principal, Rule, admits
from pointsman.mcp import arguments, shape, words
from pointsman.mcp.arguments import Seating
from pointsman.mcp.shape import Properties, count, one_of, optional, said

_REASON: Schema = {"type": "string", "maxLength": 4_000}
Verb = Literal[
    "list", "get", "create", "claim", "renew", "release", "propose", "event", "proposal", "wait", "checkpoint", "resume", "begin", "finish"
]


@dataclass(frozen=True, slots=True)
class Tool:
    """`sets` are the arguments that carry fields, by the field's name. `who` may use it, of those who have a name."""

    name: str
    verb: Verb
    description: str
    input: Schema
    output: Schema
    reads: bool = False
    repeatable: bool = False
    machine: str | None = None
    event: Event | None = None
    sets: Mapping[str, str] = field(default_factory=dict[str, str])
    who: Rule | None = None

    def admits(self, by: Principal | None) -> bool:
        """Whether the roles of this principal can ever use the tool; owning and not contributing are taken as true."""
        return self.who is None or by is None or admits(self.who, by, is_owner=True, is_contributor=False)


def names(machines: Mapping[str, Definition]) -> dict[tuple[str, str], str]:
    """The tool of each event by (machine, event). Two machines that want one name both put their own before it."""
    wanted = {
        (definition.name, event.name): event.tool or event.name
        for definition in machines.values()
        for event in definition.events
        if not event.acquires
    }
    taken = Counter([*wanted.values(), *SERVER_TOOLS])
    found: dict[tuple[str, str], str] = {}
    for (machine, event), tool in sorted(wanted.items()):
        name = tool if taken[tool] == 1 else f"{machine}_{tool}"
        while name in found.values() or (name != tool and taken[name]):
            name += "_"
        found[machine, event] = name
    return found


def toolbox(machines: Mapping[str, Definition], seating: Seating) -> dict[str, Tool]:
    """Every tool by name."""
    work = [
        _create(machines, seating),
        _claim(machines, seating),
        *_keeping(seating),
        *_durable(machines, seating),
        _propose(machines, seating),
    ]
    found = [*_reading(machines, seating), *work]
    called = names(machines)
    for definition in machines.values():
        events = [event for event in definition.events if not event.acquires]
        found += [_event(called[definition.name, event.name], definition, event, seating) for event in events]
    return {tool.name: tool for tool in found}


# ── the tools ────────────────────────────────────────────────────────────────────────────────────────────────────


def _reading(machines: Mapping[str, Definition], seating: Seating) -> Iterator[Tool]:
    by = arguments.named_by(seating, required=False)
    states = _states(machines)
    listing = {
        "view": optional(one_of(arguments.VIEWS), "open (the default): not in a final state; mine: owned by you and open; all."),
        **arguments.machine(machines, required=False),
        "state": optional(one_of(states), "Only tasks in this state."),
        "limit": optional(count(1), f"At most this many: {arguments.PAGE} unless you say otherwise, {arguments.LARGEST_PAGE} at most."),
        "cursor": optional(shape.ID, "The `next` of the answer before, for the tasks that follow."),
    }
    getting = {
        "task_id": arguments.TASK_ID,
        "version": optional(count(1), "As the task was at this version."),
        "field": optional({"type": "string", "maxLength": KEY_LENGTH}, "Only this field, as text from `offset` on: for what `cut` names."),
        "offset": optional(count(0), "Where in that field to begin, in characters."),
    }
    waiting = {
        "task_id": arguments.TASK_ID,
        "version": optional(count(1), "Wait until the task's version is beyond this one."),
        "states": optional({"type": "array", "items": one_of(states)}, "Wait until the task is in one of these states."),
        "timeout_s": optional(
            {"type": "number", "minimum": 0, "maximum": arguments.LONGEST_WAIT_S},
            f"Give up after so many seconds: {arguments.WAIT_S} unless you say otherwise.",
        ),
    }
    proposal = {"proposal_id": said(shape.ID, "The `proposal` of an answer that said pending.")}
    yield Tool("list_work", "list", words.LIST, arguments.strict(listing | by), shape.ROWS_ANSWER, reads=True)
    yield Tool("get_task", "get", words.GET, arguments.strict(getting | by), shape.TASK_ANSWER, reads=True)
    yield Tool("wait_task", "wait", words.WAIT, arguments.strict(waiting | by), shape.TASK_ANSWER, reads=True)
    yield Tool("get_proposal", "proposal", words.PROPOSAL, arguments.strict(proposal | by), shape.PROPOSAL_ANSWER, reads=True)


def _states(machines: Mapping[str, Definition]) -> list[str]:
    return list(dict.fromkeys(state.name for definition in machines.values() for state in definition.states))


def _create(machines: Mapping[str, Definition], seating: Seating) -> Tool:
    """The fields of all served machines side by side. One that some machine lacks is not required here: the engine
    says which fields a machine needs."""
    beside = {
        **arguments.machine(machines, required=len(machines) > 1),
        "priority": optional(count(-LARGEST_PRIORITY, LARGEST_PRIORITY), "Higher goes ahead."),
        "tags": optional(arguments.NAMES, "What it is called: claimers may ask for tasks of a tag."),
        "needs": optional(arguments.NAMES, "What a claimer must be able to do to be given it."),
        "run_at": optional(arguments.RUN_AT, "Not given to anybody before this time, such as 2026-01-31T12:00:00Z."),
        "dedupe_key": optional(
            shape.NAME, "A name for this piece of work: a task that is there under it is answered in place of a new one."
        ),
        "blocked_by": optional({"type": "array", "items": shape.ID, "maxItems": MOST_UPSTREAMS}, "Tasks to wait for, by their ids."),
        "on_failure": optional(one_of(FATES), "What the failing of one of those means for this task: it waits on, as if not said."),
        "parent": optional(shape.ID, "The task of yours that this one is a part of."),
        **arguments.held(seating, required=False),
        "idempotency_key": arguments.KEY,
        **arguments.named_by(seating, required=True),
    }
    fields: Properties = {}
    for definition in machines.values():
        for name, schema in shape.given(definition).items():
            fields[name] = _either(fields.get(name), schema)
    if len(machines) > 1:
        shared = [name for name in fields if all(name in shape.given(definition) for definition in machines.values())]
        fields = {name: schema if name in shared else optional(schema) for name, schema in fields.items()}
    placed = arguments.placed(fields, beside)
    properties = {argument: said(fields[name], words.field(name)) for argument, name in placed.items()}
    return Tool("create_task", "create", words.create(machines), arguments.strict(properties | beside), shape.TASK_ANSWER, sets=placed)


def _either(one: Schema | None, other: Schema) -> Schema:
    if one is None or one == other:
        return other
    return {"anyOf": [*one.get("anyOf", [one]), *other.get("anyOf", [other])]}


def _claim(machines: Mapping[str, Definition], seating: Seating) -> Tool:
    properties = {
        **arguments.machine(machines, required=len(machines) > 1),
        "task_id": optional(arguments.TASK_ID, "This task; without it, the first that waits."),
        "states": optional(
            {"type": "array", "minItems": 1, "items": one_of(_states(machines))},
            "Only tasks that wait in one of these states; else those that are new, and those whose owner let them lie.",
        ),
        "tags": optional(arguments.NAMES, "The first that has all these tags."),
        "capabilities": optional(arguments.NAMES, "What you are able to do: you are given no task that needs anything else."),
        "wait_s": optional(
            {"type": "number", "minimum": 0, "maximum": arguments.LONGEST_WAIT_S},
            "When none waits, look for one for so many seconds before you are told nothing_to_claim.",
        ),
        "lease_s": arguments.LEASE_S,
        "expect_version": arguments.EXPECT,
        **(
            {} if seating.holds else {"session": optional(shape.NAME, "A session of yours to hold it under; one is made if you give none.")}
        ),
        "idempotency_key": arguments.KEY,
        **arguments.named_by(seating, required=True),
    }
    return Tool("claim_task", "claim", words.claim(machines, holds=seating.holds), arguments.strict(properties), shape.TASK_ANSWER)


def _keeping(seating: Seating) -> Iterator[Tool]:
    """What an owner does about its time."""
    mine = {"task_id": arguments.TASK_ID, **arguments.held(seating, required=True)}
    by = arguments.named_by(seating, required=True)
    longer = {**mine, "lease_s": arguments.LEASE_S, **by}
    said = {
        "reason": optional(_REASON, "Why, for the history."),
        "counts": optional({"type": "boolean"}, "False when you could not work and it is nobody's fault, as when a service is down."),
        "error": optional({"type": "boolean"}, "True when the work failed: the task rests before it is tried again."),
    }
    back = {**mine, **said, "idempotency_key": arguments.KEY, **by}
    yield Tool("renew_lease", "renew", words.renew(holds=seating.holds), arguments.strict(longer), shape.TASK_ANSWER, repeatable=True)
    yield Tool("release_task", "release", words.RELEASE, arguments.strict(back), shape.TASK_ANSWER, repeatable=True)


def _durable(machines: Mapping[str, Definition], seating: Seating) -> Iterator[Tool]:
    """What outlives whoever works on a task."""
    mine = {"task_id": arguments.TASK_ID, **arguments.held(seating, required=True)}
    by, key = arguments.named_by(seating, required=True), {"idempotency_key": arguments.KEY}
    effects = dict.fromkeys(effect.name for definition in machines.values() for effect in definition.effects)
    beginning = {
        **mine,
        "name": said(shape.NAME, "What you are about to do, in a word of yours; the same name is the same operation."),
        "kind": optional(one_of(KINDS), words.KINDS),
        "request": optional({}, "All that it depends on, as JSON: the same name with another request is refused."),
        **({"effect": optional(one_of(effects), "The declared effect that it is: then leave out kind and request.")} if effects else {}),
        "timeout_s": optional(
            {"type": "number", "minimum": 1, "maximum": LONGEST_S}, "When you would give up: 60 unless you say otherwise."
        ),
        "settle_s": optional({"type": "number", "minimum": 0, "maximum": LONGEST_S}, "How long after that it may still arrive."),
        "compensates": optional(shape.ID, "The operation that it undoes."),
    }
    ending = {
        **mine,
        "operation_id": said(shape.ID, "The operation's id."),
        "status": said(one_of(OUTCOMES), "What came of it; not_done when it certainly did not happen and may be tried again."),
        "result": optional({}, "What it brought back, as JSON."),
        "note": optional(_REASON, "What a reader should know."),
    }
    keeping = {
        **mine,
        "data": said({}, "What you need to go on from here, as JSON; it takes the place of the last."),
        "plan": optional({"type": "array", "items": shape.NAME, "maxItems": MOST_PLANNED}, "Operations that you mean to begin, by name."),
        "progress": optional({}, "How far you are, for whoever looks."),
        "expect": optional(count(0), "Refuse unless the last checkpoint has this number."),
    }
    looking = {"task_id": arguments.TASK_ID, **arguments.named_by(seating, required=False)}
    begin, ended = arguments.strict(beginning | key | by), arguments.strict(ending | key | by)
    yield Tool("begin_operation", "begin", words.BEGIN, begin, shape.OPERATION_ANSWER, repeatable=True)
    yield Tool("finish_operation", "finish", words.FINISH, ended, shape.OPERATION_ANSWER, repeatable=True)
    yield Tool("checkpoint", "checkpoint", words.CHECKPOINT, arguments.strict(keeping | by), shape.CHECKPOINT_ANSWER)
    yield Tool("resume_task", "resume", words.RESUME, arguments.strict(looking), shape.RESUME_ANSWER, reads=True)


def _propose(machines: Mapping[str, Definition], seating: Seating) -> Tool:
    fields: Properties = {}
    for definition in machines.values():
        for event in definition.events:
            for name, schema in shape.sets(definition, event).items():
                fields[name] = _either(fields.get(name), optional(schema))
    args = shape.arguments(fields, ())
    defs = {"$defs": args["$defs"]} if "$defs" in args else {}
    events = dict.fromkeys(event.name for definition in machines.values() for event in definition.events)
    properties = {
        "task_id": arguments.TASK_ID,
        "event": said(one_of(events), "The event, as `allowed` names it."),
        "args": optional({**{word: part for word, part in args.items() if word != "$defs"}, **defs}, "What the event sets."),
        "digest": optional(arguments.DIGEST),
        "epoch": optional(arguments.EPOCH),
        "expect_version": arguments.EXPECT,
        **({} if seating.holds else {"session": arguments.SESSION}),
        "dry_run": optional({"type": "boolean"}, "True: say what would be decided, change nothing, run no check."),
        "idempotency_key": arguments.KEY,
        **arguments.named_by(seating, required=True),
    }
    return Tool("propose", "propose", words.PROPOSE, arguments.strict(properties), shape.TASK_ANSWER)


def _event(name: str, definition: Definition, event: Event, seating: Seating) -> Tool:
    fields = shape.sets(definition, event)
    beside = {
        **({"digest": arguments.DIGEST} if event.decides else {}),
        **arguments.owning(event, seating),
        "expect_version": arguments.EXPECT,
        "idempotency_key": arguments.KEY,
        **arguments.named_by(seating, required=True),
    }
    placed = arguments.placed(fields, {"task_id": arguments.TASK_ID, **beside})
    values = {argument: said(fields[name], words.field(name)) for argument, name in placed.items()}
    return Tool(
        name,
        "event",
        words.event(definition, event),
        arguments.strict({"task_id": arguments.TASK_ID, **values, **beside}),
        shape.TASK_ANSWER,
        repeatable=_once(event),
        machine=definition.name,
        event=event,
        sets=placed,
        who=event.by,
    )


def _once(event: Event) -> bool:
    """Whether asking again right away is refused, and so changes nothing more."""
    ends = {target for _, target in event.moves} | ({event.otherwise} if event.otherwise else set())
    return not ends & set(event.sources)
