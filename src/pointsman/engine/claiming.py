"""The verb that takes a task, and how long work is waited for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pointsman.engine import claim as claims
from pointsman.engine import ordering
from pointsman.engine.claim import At, Look
from pointsman.engine.decision import Deciding, Done
from pointsman.engine.line import Wanted
from pointsman.engine.proposing import Names, Proposing, given_of
from pointsman.engine.steps import Steps, Write, durable, verb
from pointsman.engine.view import By, Id, patience, task_named, typed
from pointsman.engine.waiting import QUEUE_POLL_S, until
from pointsman.errors import invalid
from pointsman.kernel.case import Proposal
from pointsman.kernel.lease import LONGEST, SHORTEST
from pointsman.kernel.task import Task
from pointsman.store.database import Tx
from pointsman.store.hints import of_queue
from pointsman.types import SECOND, Duration, seconds


class Claiming(Proposing):
    @verb
    def claim(
        self,
        machine: str,
        *,
        by: By,
        id: Id | None = None,
        states: Sequence[str] | None = None,
        tags: Names | None = None,
        capabilities: Names | None = None,
        expect_version: int | None = None,
        session: str | None = None,
        lease_s: float | None = None,
        wait_s: float = 0,
        idempotency_key: str | None = None,
    ) -> Steps[Task | None]:
        """Take the task with this id, or the first that waits; None when none does, even after `wait_s` seconds.

        What waits are unowned tasks in the initial state and tasks whose owner's lease ran out, or both in `states`; those
        that have all of `tags`, and need nothing but `capabilities`. The first is the one that may run longest, a step of
        priority worth a minute. One that a guard, a limit or a hold keeps back is passed over.
        `lease_s` is how long to hold it without a call, the state's own time if not said."""
        typed(("machine", machine, str), ("states", states, list | tuple | None), ("expect_version", expect_version, int | None))
        patience(wait_s)
        wanted, chosen = waited_for(machine, states, {"tags": tags, "capabilities": capabilities})
        wanted = wanted if id is None else replace(wanted, task=task_named(id))
        named = {"id": wanted.task, "states": list(states or ()), "expect_version": expect_version, "session": session}
        asked = {
            "verb": "claim",
            "machine": machine,
            "lease_s": lease_s,
            **named,
            **given_of(chosen),
        }
        deciding = self.deciding(by, session, idempotency_key, asked)
        proposal = Proposal("", {}, deciding.call.by, self.door.strict, session, expect_version=expect_version, lease=held_for(lease_s))

        def look() -> Steps[Task | None]:
            return (yield from self._told(deciding, "claim", _claimed(deciding, wanted, proposal)))

        return (yield from until(self.engine, of_queue(machine), look, wait_s, line=wanted, poll_s=QUEUE_POLL_S))


def waited_for(machine: str, states: Sequence[str] | None, named: Mapping[str, Names | None]) -> tuple[Wanted, dict[str, list[str]]]:
    """Which tasks a claim is for, and its names of each kind as they are asked for."""
    if states is not None and not states:
        raise invalid(("states", "must name at least one state, or be left out"))
    typed(*((f"states[{index}]", name, str) for index, name in enumerate(states or ())))
    chosen, found = ordering.several(named)
    if found:
        raise invalid(*found)
    several = {name: frozenset(names) for name, names in chosen.items()}
    return Wanted(machine, None, None if states is None else tuple(states), **several), {
        name: list(names) for name, names in chosen.items()
    }


def _claimed(deciding: Deciding, wanted: Wanted, proposal: Proposal) -> Steps[Done | None]:
    """One task by its id, or the next in line."""
    if wanted.task is not None:
        return (yield from durable(partial(claims.claim, deciding, wanted, proposal)))
    return (yield from looked_for(wanted, partial(claims.claim_next, deciding, wanted, proposal)))


def looked_for(wanted: Wanted, unit: Callable[[At, Tx, bool], Any]) -> Steps[Any]:
    """Look until a look has an answer."""
    answer: Any = Look.FIRST
    while isinstance(answer, At):
        if answer is Look.WOKEN and (yield Write(partial(claims.wake, wanted.machine))):
            answer = Look.AGAIN
        answer = yield from durable(partial(unit, answer))
    return answer


def held_for(lease_s: float | None) -> Duration | None:
    """A wanted lease in µs, between one second and a day."""
    if lease_s is None:
        return None
    typed(("lease_s", lease_s, float | int))
    if not SHORTEST / SECOND <= lease_s <= LONGEST / SECOND:
        raise invalid(("lease_s", "must be from 1 to 86400 seconds"))
    return seconds(lease_s)
