"""A class body, closed: what the author wrote with objects becomes a `Definition` that holds names.

`close` returns with the definition the functions it refers to and the faults that only the written form can have. What
is wrong with the definition itself is found by `faults.py`.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias, cast, get_origin

from pointsman.errors import Fault
from pointsman.kernel import definition as form
from pointsman.kernel import functions, marks, opinion
from pointsman.kernel.annotations import Unfit, as_json, on_json, parameters, resolved, returning_json, returns, schema_of, takes_null
from pointsman.kernel.rules import Rule, anyone
from pointsman.kernel.schema import admits_null

Functions: TypeAlias = Mapping[tuple[str, str, int], Callable[..., Any]]
"""By kind ("check", "computed", "guard"), name and version. Called by name: a guard with what it sees, the others with
stored values."""

GUARD_SEES = ("task", "proposal", "principal", "now", "decisions")

_DECLARED: tuple[type, ...] = (
    marks.State,
    marks.Event,
    functions.CheckMark,
    functions.JudgeMark,
    functions.ComputedMark,
    marks.Schedule,
    marks.Effect,
)
_OWN = ("version", "proves", "retry", "max_children", "max_depth")
_ABSENT = object()


def close(
    cls: type, body: Mapping[str, Any], lines: Mapping[str, int], repeated: Sequence[tuple[str, int]], name: str, line: int
) -> tuple[form.Definition, Functions, list[Fault]]:
    closing = _Closing(cls, body, lines, name, line)
    closing.found += [Fault("name_clash", "this name is written twice", word, at) for word, at in repeated]
    return closing.definition(), closing.functions, closing.found


class _Closing:
    def __init__(self, cls: type, body: Mapping[str, Any], lines: Mapping[str, int], name: str, line: int):
        self.cls, self.body, self.lines, self.name, self.line = cls, body, lines, name, line
        self.annotations = inspect.get_annotations(cls)
        self.found: list[Fault] = []
        self.functions: dict[tuple[str, str, int], Callable[..., Any]] = {}
        self.names: dict[int, str] = {}
        self.types: dict[str, Any] = {}

    def definition(self) -> form.Definition:
        self.bind()
        fields = tuple(self.fields())
        return form.Definition(
            name=self.name,
            version=self.body.get("version", 1),
            doc=inspect.cleandoc(self.body.get("__doc__") or ""),
            fields=fields,
            states=tuple(self.state(name, item) for name, item in self.all(marks.State)),
            checks=tuple(self.check(name, item) for name, item in self.all((functions.CheckMark, functions.JudgeMark))),
            computed=tuple(self.computed(name, item) for name, item in self.all(functions.ComputedMark)),
            events=tuple(self.event(name, item) for name, item in self.all(marks.Event)),
            proves=tuple(self.proofs()),
            retry=self.retry(),
            max_children=self.body.get("max_children", form.MAX_CHILDREN),
            max_depth=self.body.get("max_depth", form.MAX_DEPTH),
            schedules=tuple(self.schedule(name, item) for name, item in self.all(marks.Schedule)),
            effects=tuple(self.effect(name, item) for name, item in self.all(marks.Effect)),
            line=self.line,
        )

    # ── names ────────────────────────────────────────────────────────────────────────────────────────────────────

    def fault(self, code: str, message: str, name: str) -> None:
        self.found.append(Fault(code, message, name, self.at(name)))

    def at(self, name: str) -> int:
        return self.lines.get(name, self.line)

    def all(self, kind: type[Any] | tuple[type[Any], ...]) -> Iterator[tuple[str, Any]]:
        return ((name, item) for name, item in self.body.items() if isinstance(item, kind))

    def bind(self) -> None:
        """Each state, event, check, computed field and schedule has the one name it was assigned to."""
        for name, item in self.body.items():
            if isinstance(item, _DECLARED):
                if id(item) in self.names:
                    self.fault("name_clash", f"is the same object as {self.names[id(item)]}: declare it again", name)
                self.names[id(item)] = name
            elif self.stray(name, item):
                self.fault("untyped", "has no type: write `name: type = default` for a field", name)

    def stray(self, name: str, item: Any) -> bool:
        plain = item is None or type(item) in (bool, int, float, str, list, dict, marks.FieldMark)
        return plain and not name.startswith("_") and name not in _OWN and name not in self.annotations and not name.isupper()

    def named(self, item: Any, code: str, of: str) -> str | None:
        """The name of an object that this class body declares."""
        if id(item) not in self.names:
            self.fault(code, "refers to something that this machine does not declare under a name", of)
        return self.names.get(id(item))

    # ── fields ───────────────────────────────────────────────────────────────────────────────────────────────────

    def fields(self) -> Iterator[form.Field]:
        module = vars(sys.modules[self.cls.__module__])
        for name, written in self.annotations.items():
            try:
                annotation = resolved(written, module)
                if get_origin(annotation) is not ClassVar and annotation is not ClassVar:
                    yield self.field(name, annotation)
            except Unfit as error:
                self.fault("field_type", str(error), name)
                yield form.Field(name, {}, required=False, line=self.at(name))

    def field(self, name: str, annotation: Any) -> form.Field:
        value = self.body.get(name, _ABSENT)
        if id(value) in self.names:
            self.fault("name_clash", "is declared as a field too", name)
            value = _ABSENT
        schema = schema_of(annotation)
        self.types[name] = annotation
        plain = form.Field(name, schema, line=self.at(name))
        if isinstance(value, marks.FieldMark):
            plain = replace(plain, kind=value.kind)
            value = _ABSENT if value.default is None and not admits_null(schema) else value.default
        return plain if value is _ABSENT else replace(plain, required=False, default=self.default(name, annotation, value))

    def default(self, name: str, annotation: Any, value: Any) -> Any:
        try:
            return as_json(annotation, value)
        except Unfit as error:
            self.fault("bad_default", f"its default {error}", name)
            return None

    # ── states and events ────────────────────────────────────────────────────────────────────────────────────────

    def state(self, name: str, item: marks.State) -> form.State:
        on_lapse = item.on_lapse if isinstance(item.on_lapse, str | None) else self.named(item.on_lapse, "unknown_state", name)
        return form.State(
            name,
            initial=item.initial,
            final=item.final,
            outcome=item.outcome,
            lease=item.lease,
            on_lapse=on_lapse,
            max_hold=item.max_hold,
            deadline=item.deadline,
            on_deadline=item.on_deadline,
            line=self.at(name),
        )

    def event(self, name: str, item: marks.Event) -> form.Event:
        return form.Event(
            name,
            moves=tuple(pair for move in item.moves for pair in self.move(name, move)),
            by=self.rule(name, item.by),
            sets=tuple(self.setting(name, setting) for setting in item.sets),
            requires=tuple(check for mark in item.requires if (check := self.named(mark, "unknown_check", name))),
            otherwise=None if item.otherwise is None else self.named(item.otherwise, "unknown_state", name),
            acquires=item.acquires,
            when=tuple(self.guard(name, guard) for guard in item.when),
            tool=item.tool,
            limits=tuple(found for limit in item.limits if (found := self.limit(name, limit))),
            tells=item.tells,
            line=self.at(name),
        )

    def schedule(self, name: str, item: marks.Schedule) -> form.Schedule:
        return form.Schedule(name, item.cron, item.tz, item.fields, item.by, item.misfire, self.at(name))

    def effect(self, name: str, item: marks.Effect) -> form.Effect:
        undo = item.undo.name if isinstance(item.undo, marks.Effect) else item.undo
        during = tuple(self.states(name, item.during))
        return form.Effect(item.name, during, item.request, item.kind, item.settle, undo, self.at(name))

    def limit(self, event: str, item: Any) -> form.Limit | None:
        """Either so many tasks at once, or so much in a time."""
        if not isinstance(item, marks.Limit) or not _whole(item):
            return self.fault(
                "bad_limit", 'write Limit("name", per=minutes(1), max=600) or Limit("name", key=field.repo, concurrent=1)', event
            )
        key, total = (None if named is None else named.name for named in (item.key, item.sum))
        if item.concurrent is not None:
            return form.Limit(item.name, item.concurrent, key=key)
        return form.Limit(item.name, item.max or 0, item.per, key, total)

    def move(self, event: str, move: marks.Moves) -> Iterator[tuple[str, str]]:
        target = self.named(move.target, "unknown_state", event)
        return ((source, target) for source in self.states(event, move.sources) if target)

    def states(self, of: str, written: marks.States) -> list[str]:
        """The names of one or several states, or of all others that are not final."""
        listed = [name for state in written.members if (name := self.named(state, "unknown_state", of))]
        if not written.others:
            return listed
        return [name for name, state in self.all(marks.State) if name not in listed and not state.final]

    def rule(self, event: str, by: Any) -> Rule:
        if isinstance(by, Rule):
            return by
        self.fault("bad_rule", "`by` must be a rule, such as owner or role('reviewer')", event)
        return anyone

    def setting(self, event: str, item: marks.Sets) -> form.Setting:
        if not isinstance(item, marks.OptionalMark):
            return form.Setting(item)
        default = self.default(event, self.types.get(item.field, Any), item.default)
        return form.Setting(item.field, required=False, default=default)

    def retry(self) -> form.Retry:
        written = self.body.get("retry", form.Retry())
        if isinstance(written, form.Retry):
            return written
        self.fault("bad_retry", "write retry = Retry(tries=5, base=seconds(2), cap=minutes(10))", "retry")
        return form.Retry()

    def proofs(self) -> Iterator[form.Proof]:
        written: Any = self.body.get("proves", ())
        if not isinstance(written, tuple) or not all(isinstance(proof, marks.Always) for proof in cast(tuple[Any, ...], written)):
            self.fault("bad_proof", "`proves` is a tuple such as (always(done, approve),)", "proves")
            return
        for proof in cast(tuple[marks.Always, ...], written):
            state = self.named(proof.state, "unknown_state", "proves")
            event = self.named(proof.event, "unknown_event", "proves")
            if state and event:
                yield form.Proof("always", state, event, self.at("proves"))

    # ── functions ────────────────────────────────────────────────────────────────────────────────────────────────

    def check(self, name: str, item: marks.Checks) -> form.Check:
        if isinstance(item, functions.JudgeMark):
            return self.judge(name, item)
        function, reads = self.function("check", name, item)
        nulls = tuple((field, self.nullable(name, field, kind)) for field, kind in reads.items())
        return form.Check(name, function, nulls, item.eager, item.timeout, item.opinion, self.at(name))

    def judge(self, name: str, item: functions.JudgeMark) -> form.Check:
        """Bound by what it is told: it has no function here, and whoever serves the machine makes one."""
        reads = tuple((field, False) for field in item.reads)
        reference = opinion.reference(name, item.judge)
        return form.Check(name, reference, reads, timeout=item.timeout, opinion=True, line=self.at(name), judge=item.judge)

    def nullable(self, check: str, field: str, annotation: Any) -> bool:
        try:
            return takes_null(annotation)
        except Unfit as error:
            self.fault("bad_function", f"cannot be called with {field}: {error}", check)
            return False

    def computed(self, name: str, item: functions.ComputedMark[..., Any]) -> form.Computed:
        function, reads = self.function("computed", name, item)
        schema: form.Schema = {}
        try:
            annotation = returns(item.function)
            schema = schema_of(annotation, "serialization")
            key = ("computed", function.name, function.version)
            self.functions[key] = returning_json(self.functions.get(key, item.function), annotation, schema)
        except Unfit as error:
            self.fault("bad_function", str(error), name)
        return form.Computed(name, function, tuple(reads), schema, self.at(name))

    def guard(self, event: str, item: marks.Guards) -> form.Function:
        mark = item if isinstance(item, functions.GuardMark) else functions.guard(item)
        function, sees = self.function("guard", event, mark)
        if unknown := [name for name in sees if name not in GUARD_SEES]:
            self.fault("bad_function", f"a guard sees {', '.join(GUARD_SEES)}, and not {', '.join(unknown)}", event)
        return function

    def function(self, kind: str, name: str, mark: Any) -> tuple[form.Function, dict[str, Any]]:
        """The reference to a function, kept under its own name and version, and its parameters with their types."""
        reference = form.Function(getattr(mark.function, "__name__", name), mark.version)
        key = (kind, reference.name, reference.version)
        try:
            reads = parameters(mark.function)
            called = mark.function if kind == "guard" else on_json(mark.function)
        except Unfit as error:
            self.fault("bad_function", str(error), name)
            return reference, {}
        if key in self.functions and inspect.unwrap(self.functions[key]) is not mark.function:
            self.fault("name_clash", f"another {kind} function is called {reference.name} and has version {reference.version}", name)
        self.functions[key] = called
        return reference, reads


def _whole(limit: marks.Limit) -> bool:
    """Whether its parts are of their types, and say one thing."""
    sizes: tuple[Any, ...] = (limit.per, limit.max, limit.concurrent)
    typed = isinstance(limit.name, str) and all(isinstance(size, int | float | None) for size in sizes)  # pyright: ignore[reportUnnecessaryIsInstance]
    named = all(isinstance(item, marks.Named | None) for item in (limit.key, limit.sum))  # pyright: ignore[reportUnnecessaryIsInstance]
    windowed = None not in (limit.per, limit.max) and limit.concurrent is None
    return typed and named and (windowed or (limit.concurrent is not None and (limit.per, limit.max, limit.sum) == (None, None, None)))
