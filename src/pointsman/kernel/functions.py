"""The words of a class body for functions: checks, judges, computed fields and guards. Each only remembers what was written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

from pointsman.kernel.definition import Judge
from pointsman.kernel.verdict import Verdict
from pointsman.types import Duration, minutes

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, eq=False)
class CheckMark(Generic[P]):
    function: Callable[P, Verdict]
    version: int
    eager: bool
    timeout: Duration
    opinion: bool

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Verdict:
        return self.function(*args, **kwargs)


@dataclass(frozen=True, slots=True, eq=False)
class JudgeMark:
    judge: Judge
    reads: tuple[str, ...]
    timeout: Duration


@dataclass(frozen=True, slots=True, eq=False)
class ComputedMark(Generic[P, R]):
    function: Callable[P, R]
    version: int

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


Predicate: TypeAlias = Callable[..., bool] | Callable[..., Verdict]


@dataclass(frozen=True, slots=True, eq=False)
class GuardMark:
    function: Predicate
    version: int

    def __call__(self, **sees: Any) -> bool | Verdict:
        return self.function(**sees)


TIMEOUT = minutes(1)
ANSWER_TOKENS = 1024


@overload
def check(
    function: Callable[P, Verdict], /, *, version: int = 1, eager: bool = False, timeout: Duration = TIMEOUT, opinion: bool = False
) -> CheckMark[P]: ...
@overload
def check(
    *, version: int = 1, eager: bool = False, timeout: Duration = TIMEOUT, opinion: bool = False
) -> Callable[[Callable[P, Verdict]], CheckMark[P]]: ...
def check(
    function: Callable[..., Verdict] | None = None,
    /,
    *,
    version: int = 1,
    eager: bool = False,
    timeout: Duration = TIMEOUT,
    opinion: bool = False,
) -> Any:
    """A judgement of content: a function of content fields, named as its parameters, that returns a `Verdict`.

    Raise `version` when its meaning changes. An `eager` check is cheap and pure and is judged at every change of content;
    another one runs when an event requires it, outside any transaction, for at most `timeout`. An `opinion` is a
    verdict that no proof counts."""

    def mark(function: Callable[..., Verdict]) -> CheckMark[...]:
        return CheckMark(_plain(function), version, eager, timeout, opinion)

    return mark if function is None else mark(function)


def judge(
    rubric: str,
    /,
    *,
    model: str,
    reads: str | tuple[str, ...],
    max_tokens: int = ANSWER_TOKENS,
    base_url: str | None = None,
    api_key_env: str | None = None,
    price: tuple[float, float] | None = None,
    timeout: Duration = TIMEOUT,
) -> JudgeMark:
    """A check by an LLM: does the content of the fields it `reads` meet the rubric? Its verdict is an opinion, which no
    proof counts. It is not asked while one of the fields is null.

    `model` is "openai:…", "openai-responses:…" or "anthropic:…". `base_url` is that of a compatible service; `api_key_env`
    names the environment variable that holds its key. With a `price` per million tokens (in, out) the cost is kept beside
    the verdict. All attempts together take at most `timeout`."""
    texts = (rubric, model, base_url or "", api_key_env or "", *several(reads))
    if not all(isinstance(text, str) for text in texts) or type(max_tokens) is not int:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError("write judge(rubric, model=text, reads=(names), max_tokens=number)")
    charged = None if price is None else (float(price[0]), float(price[1]))
    return JudgeMark(Judge(rubric, model, max_tokens, base_url, api_key_env, charged), several(reads), timeout)


@overload
def computed(function: Callable[P, R], /, *, version: int = 1) -> ComputedMark[P, R]: ...
@overload
def computed(*, version: int = 1) -> Callable[[Callable[P, R]], ComputedMark[P, R]]: ...
def computed(function: Callable[..., Any] | None = None, /, *, version: int = 1) -> Any:
    """A stored pure function of content fields, named as its parameters; its return annotation is its type."""

    def mark(function: Callable[..., Any]) -> ComputedMark[..., Any]:
        return ComputedMark(_plain(function), version)

    return mark if function is None else mark(function)


@overload
def guard(function: Predicate, /, *, version: int = 1) -> GuardMark: ...
@overload
def guard(*, version: int = 1) -> Callable[[Predicate], GuardMark]: ...
def guard(function: Predicate | None = None, /, *, version: int = 1) -> Any:
    """A pure predicate inside the decision, for an event's `when`. Its parameters name what it sees: task, proposal, principal,
    now, decisions. A `Verdict` tells the reason."""

    def mark(function: Predicate) -> GuardMark:
        return GuardMark(_plain(function), version)

    return mark if function is None else mark(function)


def _plain(function: Any) -> Any:
    return function.__func__ if isinstance(function, staticmethod) else function  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def several(items: Any) -> tuple[Any, ...]:
    return items if isinstance(items, tuple) else (items,)  # pyright: ignore[reportUnknownVariableType]
