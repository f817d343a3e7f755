"""An operation of `/v1` as data: what it reads, what it calls, and what it may answer. Routes, judgement of requests and
the OpenAPI document are all drawn from it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from pointsman.engine.pointsman import Aio
from pointsman.http.v1.parameter import Parameter
from pointsman.kernel.definition import Schema
from pointsman.kernel.rules import Principal

if TYPE_CHECKING:
    from pointsman.http.v1.feed import Feed


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, read. `given` are the parameters by name, `body` the members of its body, `base` the path under which
    this application is mounted, `feed` what the readers of this process share."""

    pm: Aio
    feed: "Feed"
    by: Principal
    given: Mapping[str, Any]
    body: Mapping[str, Any]
    base: str

    @property
    def session(self) -> str | None:
        return self.given["Pointsman-Session"]


Call = Callable[[Asked], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Answer:
    """A documented answer. Without a schema it has no body; `headers` by name, with what each says."""

    said: str
    schema: Schema | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Operation:
    """`codes` are the refusals of rules it may answer; those of the edge itself are documented for every operation.
    `asks` is whether it asks for a decision."""

    method: str
    path: str
    call: Call
    summary: str
    parameters: tuple[Parameter, ...]
    answers: Mapping[int, Answer]
    codes: tuple[str, ...] = ()
    body: Schema | None = None
    asks: bool = False

    @property
    def conditional(self) -> bool:
        return any(item.name == "If-Match" for item in self.parameters)
