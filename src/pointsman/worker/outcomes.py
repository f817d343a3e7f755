"""How work on a task ends, as values, and what an effect's two functions say.

What a handler returns is `Done`, from its last event, or one of `Fail`, `Defer` and `Cancel`. A call of its `Work` that cannot go on
ends the handler there and then, by `Halt`; it carries `Fail` or `Defer`, or what no handler says of itself: `Waits` and `Lost`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from pointsman.errors import Refusal
from pointsman.kernel.operation import Operation
from pointsman.kernel.task import Task
from pointsman.types import Instant, Json


@dataclass(frozen=True, slots=True)
class Done:
    """A step was accepted; `task` as it is now."""

    task: Task


@dataclass(frozen=True, slots=True)
class Fail:
    """Nothing came of this attempt. It is counted as an error, and the task rests before the next one."""

    reason: str


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now, and nobody's fault: no attempt is counted. Nobody takes the task for `rest_s` seconds, or before `until`."""

    reason: str
    rest_s: float | None = None
    until: Instant | str | None = None


@dataclass(frozen=True, slots=True)
class Cancel:
    """It is not to be done at all: the task goes to the state that its machine has for what is cancelled."""

    reason: str


@dataclass(frozen=True, slots=True)
class Waits:
    """An operation is in doubt, and a person is to say whether it happened. Whoever answers puts the task back into work."""

    operation: Operation

    @property
    def reason(self) -> str:
        return f"operation {self.operation.name} is in doubt: a person with role operator says what happened"


@dataclass(frozen=True, slots=True)
class Lost:
    """The lease is lost, and nothing may be done about the task any more."""

    refusal: Refusal

    @property
    def reason(self) -> str:
        return self.refusal.detail


Outcome: TypeAlias = Done | Fail | Defer | Cancel
"""What a handler answers."""
End: TypeAlias = Outcome | Waits | Lost | None
"""What came of one task; None of a handler that answered nothing."""


class Halt(BaseException):
    """The handler goes no further, and what came of its task is known. It is no Exception, so that a handler which catches those
    ends all the same; `finally` is for what it has to put in order."""

    def __init__(self, outcome: Fail | Defer | Waits | Lost):
        super().__init__(outcome.reason)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Found:
    """The remote knows the operation, and this came of it."""

    result: Json = None


@dataclass(frozen=True, slots=True)
class NotFound:
    """The remote does not know the operation."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The remote does not say."""


Finding: TypeAlias = Found | NotFound | Unknown | type[NotFound] | type[Unknown]
"""What `find` answers. What holds nothing may be answered as the class itself."""


class NotSent(Exception):
    """Raised by `send` when nothing left this process, as when no connection could be made: then the outcome is not in doubt.

    It is raised and not returned, because whoever knows is deep inside a client, and every other end of a send that did not succeed
    is an exception already. Whatever `send` returns is a result. A handler that does not catch it gives its task back uncounted,
    for `rest_s` seconds."""

    def __init__(self, reason: str = "nothing was sent", rest_s: float = 30.0):
        super().__init__(reason)
        self.rest_s = rest_s


class EffectFailed(Exception):
    """Raised by `send` when the remote has said no for good: the operation failed, whoever asks for it again is told so by the same
    exception, and it is never sent again."""

    def __init__(self, result: Json = None):
        super().__init__("the remote refused it for good")
        self.result = result
