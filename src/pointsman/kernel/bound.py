"""A definition joined with the functions it names: what the interpreter runs.

This is the one place where an author's code is called. Whatever it does wrong becomes a verdict in error: it
never passes, and never takes the decision down with it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any

from pointsman.errors import Refusal, Refused
from pointsman.kernel.chain import digest
from pointsman.kernel.definition import Check, Computed, Definition, Function
from pointsman.kernel.ingest import clean, faults
from pointsman.kernel.task import Status
from pointsman.kernel.verdict import NoVerdict, Verdict
from pointsman.types import Fields, Json

FunctionKey = tuple[str, str, int]
REASON_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Judgement:
    """A check's answer about one set of inputs."""

    status: Status
    reason: str
    detail: Json = None


@dataclass(frozen=True)
class Bound:
    definition: Definition
    functions: Mapping[FunctionKey, Callable[..., Any]]

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """Functions that the definition names and this process lacks."""
        needed = ((kind, function.name, function.version) for kind, function in self.definition.functions())
        return tuple(f"{kind} {name} version {version}" for kind, name, version in needed if (kind, name, version) not in self.functions)

    def inputs(self, check: Check, fields: Mapping[str, Json]) -> Fields | None:
        """What the check reads; None while content it needs is null, and then it is not called."""
        if any(fields[name] is None and not takes_null for name, takes_null in check.reads):
            return None
        return {name: fields[name] for name, _ in check.reads}

    def judge(self, check: Check, inputs: Fields) -> Judgement:
        """Run a check. Only a clear `Verdict` counts; anything else is an error."""
        try:
            return _judgement(self._call("check", check.function)(**inputs))
        except NoVerdict as error:
            return errored(str(error), error.detail)
        except BaseException as error:  # noqa: BLE001 - an author's code may raise anything, SystemExit too; it must not pass
            return errored(_told(error))

    def guard(self, function: Function, sees: Mapping[str, Any]) -> Verdict:
        """Ask a guard, with those of the facts it names as parameters."""
        called = self._call("guard", function)
        try:
            answer = called(**{name: sees[name] for name in _parameters(called)})
        except BaseException as error:  # noqa: BLE001 - as above: a guard that raises says no
            return Verdict(False, clean(f"guard error: {_told(error)}")[:REASON_LIMIT])
        if isinstance(answer, Verdict):
            return answer
        return Verdict(answer is True, "" if answer is True else f"{function.name} is not true")

    def compute(self, fields: Mapping[str, Json]) -> Fields:
        """Every computed field from these fields. A raising function, or a value that is no JSON, refuses the change."""
        return {
            computed.name: self._computed(computed, {name: fields[name] for name in computed.reads})
            for computed in self.definition.computed
        }

    def _computed(self, computed: Computed, inputs: Fields) -> Json:
        try:
            value = self._call("computed", computed.function)(**inputs)
        except BaseException as error:
            raise _uncomputed(computed, _told(error)) from error
        if found := faults(value, computed.name):
            raise _uncomputed(computed, found[0][1])
        return value

    def _call(self, kind: str, function: Function) -> Callable[..., Any]:
        return self.functions[kind, function.name, function.version]


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a guard looks at: the parameters of what the author wrote, also behind a decorator."""
    return tuple(signature(function).parameters)


def _told(error: BaseException) -> str:
    """What an author's code raised, in words. Somebody at the keyboard is not its doing."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    return f"{type(error).__name__}: {error}"


def _uncomputed(computed: Computed, why: str) -> Refused:
    reason = clean(f"computed field {computed.name}: {why}")[:REASON_LIMIT]
    return Refused(Refusal("guard_failed", reason, failed=[{"computed": computed.name, "reason": reason}]))


def errored(reason: str, detail: Json = None) -> Judgement:
    """A judgement that could not be made. A `detail` that cannot be stored is left out."""
    kept = None if faults(detail, "detail") else detail
    return Judgement("error", clean(f"check error: {reason}")[:REASON_LIMIT], kept)


def _judgement(answer: Any) -> Judgement:
    if not isinstance(answer, Verdict) or not isinstance(answer.ok, bool) or not isinstance(answer.reason, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        return errored("the check did not answer with a Verdict")
    if found := faults(answer.detail, "detail"):
        return errored(f"the verdict's {found[0][0]}: {found[0][1]}")
    return Judgement("pass" if answer.ok else "fail", clean(answer.reason)[:REASON_LIMIT], answer.detail)


def inputs_digest(check: Check, inputs: Fields) -> str:
    """Binds a judgement to the check's name and version and to exactly what it read."""
    return digest("inputs", [check.name, check.function.name, check.function.version, inputs])
