"""One colour for two callers: a verb is written once, as a generator of steps.

A verb yields what has to happen (a unit of work, a read, a run of checks) and is sent the answer. `Pointsman` drives
it by blocking, `pm.aio` by awaiting; the verb itself does not know. No thread is spent per call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import closing
from functools import cached_property
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, overload

from pointsman.engine.bridge import bridge
from pointsman.errors import StoreError
from pointsman.store.database import Database, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Step(Protocol):
    """Something a verb waits for, in two colours."""

    def run(self, db: Database) -> Any: ...

    async def arun(self, db: Database) -> Any: ...


Steps = Generator[Step, Any, T]


class Write(Generic[T]):
    """A unit of work; its answer comes after COMMIT."""

    def __init__(self, unit: Callable[[Tx], T]):
        self.unit = unit

    def run(self, db: Database) -> T:
        return db.run(self.unit)

    async def arun(self, db: Database) -> T:
        return await bridge().cross(db.submit(self.unit))


class Read(Generic[T]):
    """A unit that only reads, on a snapshot."""

    def __init__(self, unit: Callable[[Tx], T]):
        self.unit = unit

    def run(self, db: Database) -> T:
        return db.read(self.unit)

    async def arun(self, db: Database) -> T:
        return await bridge().cross(db.submit_read(self.unit))


class Await(Generic[T]):
    """Somebody else's answer, or None when it does not come in time. Giving up does not stop the work."""

    def __init__(self, future: "Future[T]", wait_s: float | None):
        self.future = future
        self.wait_s = wait_s

    def run(self, db: Database) -> T | None:
        try:
            return self.future.result(self.wait_s)
        except TimeoutError:
            return None

    async def arun(self, db: Database) -> T | None:
        try:
            async with asyncio.timeout(self.wait_s):
                return await bridge().cross(self.future)
        except TimeoutError:
            return None


def durable(unit: Callable[[Tx, bool], T]) -> Steps[T]:
    """Run a unit; when its COMMIT is unknown, run it again: `unit(tx, True)` first looks for its own request. Unless that
    is answered, nobody knows."""
    try:
        return (yield Write(lambda tx: unit(tx, False)))
    except StoreError as error:
        if error.outcome != "unknown":
            raise
    try:
        return (yield Write(lambda tx: unit(tx, True)))
    except StoreError as error:
        raise StoreError(error.code, error.detail, "unknown") from error


def drive(steps: Steps[T], db: Database) -> T:
    """Blocking."""
    answer, error = None, None
    with closing(steps):
        while True:
            try:
                step = steps.throw(error) if error else steps.send(answer)
            except StopIteration as end:
                return end.value
            try:
                answer, error = step.run(db), None
            except Exception as raised:  # noqa: BLE001 - handed to the verb, which decides
                error = raised


async def adrive(steps: Steps[T], db: Database) -> T:
    """Awaiting."""
    answer, error = None, None
    with closing(steps):
        while True:
            try:
                step = steps.throw(error) if error else steps.send(answer)
            except StopIteration as end:
                return end.value
            try:
                answer, error = await step.arun(db), None
            except Exception as raised:  # noqa: BLE001 - handed to the verb, which decides
                error = raised


def unattended(steps: Steps[None], db: Database, answer: Any = None) -> None:
    """For nobody: each unit of work is handed to the store when the one before it is done, and no thread waits. A fault ends
    it."""
    step = _next(steps, answer)
    if step is not None:
        db.submit(step.unit).add_done_callback(lambda done: steps.close() if done.exception() else unattended(steps, db, done.result()))


def _next(steps: Steps[None], answer: Any) -> Write[Any] | None:
    try:
        step = steps.send(answer)
    except StopIteration:
        return None
    assert isinstance(step, Write), "whoever is not there reads nothing"
    return cast("Write[Any]", step)


class Blocks:
    """Whoever calls its verbs waits for the answer."""


class Awaits:
    """Whoever calls its verbs awaits the answer."""


class verb(Generic[P, T]):
    """Makes a generator method blocking on `Pointsman` and awaitable on `pm.aio`, or on any other such pair."""

    def __init__(self, steps: "Callable[Concatenate[Any, P], Steps[T]]"):
        self.steps = steps
        self.__doc__ = steps.__doc__

    @cached_property
    def signature(self) -> Signature:
        """As it is called: without the view."""
        whole = signature(self.steps)
        return whole.replace(parameters=list(whole.parameters.values())[1:])

    @overload
    def __get__(self, view: None, kind: type | None = None) -> "verb[P, T]": ...
    @overload
    def __get__(self, view: Blocks, kind: type | None = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, view: Awaits, kind: type | None = None) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, view: Any, kind: type | None = None) -> Any:
        return self if view is None else Bound(self, view)


class Bound:
    """A verb on a view: called as a method, and shown as one."""

    __slots__ = ("verb", "view")

    def __init__(self, verb: "verb[..., Any]", view: Any):
        self.verb = verb
        self.view = view

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.view.drive(self.verb.steps(self.view, *args, **kwargs))

    @property
    def __name__(self) -> str:
        return self.verb.steps.__name__

    @property
    def __doc__(self) -> str | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.verb.__doc__

    @property
    def __signature__(self) -> Signature:
        return self.verb.signature
