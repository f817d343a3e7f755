"""Runs the checks of pending proposals and settles them, for this process's callers and for processes that died.

Checks run in the pool; the settling unit is queued when the last of them has spoken. While a proposal is worked on
here, a pulse says so, so that nobody else runs its checks; when the pulse stops, somebody else takes over.
"""

import logging
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from pointsman.engine import ends, pending
from pointsman.engine.checks import Checks
from pointsman.engine.decision import Asked, Done, Pending, judged
from pointsman.engine.record import Chance
from pointsman.engine.registry import Registry
from pointsman.engine.steps import unattended
from pointsman.errors import Refused
from pointsman.kernel.bound import Judgement
from pointsman.kernel.decide import Need
from pointsman.store import proposals, tasks
from pointsman.store.database import Database, Tx

T = TypeVar("T")
log = logging.getLogger("pointsman")
PULSE_S = 1.0
TAKEN_AT_ONCE = 16


class Settling:
    def __init__(self, db: Database, registry: Registry, chance: Chance, checks: Checks):
        self._db, self._registry, self._chance, self._checks = db, registry, chance, checks
        self._lock = threading.Lock()
        self._working: dict[str, Future[Done]] = {}
        self._tasks: dict[str, str] = {}
        self._stop = threading.Event()
        self._pulse: threading.Thread | None = None

    def outcome(self, proposal: Pending) -> "Future[Done] | None":
        """The coming outcome of a proposal that this process works on, or begins to with `asked`; None when it is
        another's."""
        with self._lock:
            if proposal.asked is None or proposal.proposal in self._working:
                return self._working.get(proposal.proposal)
            outcome: Future[Done] = Future()
            self._working[proposal.proposal] = outcome
            self._tasks[proposal.proposal] = proposal.task
            self._beat()
        self._run(proposal.proposal, proposal.task, proposal.asked, outcome)
        return outcome

    def take_over(self) -> int:
        """Begin on proposals that nobody works on any more; how many were taken. One that cannot be judged here is left
        to others, untouched."""
        found = self._db.read(lambda tx: proposals.abandoned(tx, TAKEN_AT_ONCE))
        return sum(self._taken(proposal_id) for proposal_id in found)

    def _taken(self, proposal_id: str) -> bool:
        try:
            found = self._db.read(lambda tx: pending.examine(tx, self._registry, proposal_id))
            if found is None or not self._db.run(lambda tx: proposals.take(tx, proposal_id)):
                return False
        except Refused as refused:  # a function of the machine is missing here, or the store failed
            log.warning("proposal %s: %s", proposal_id, refused)
            return False
        self.outcome(found)
        return True

    def close(self) -> None:
        self._stop.set()
        if self._pulse is not None:
            self._pulse.join()

    def _run(self, proposal_id: str, task: str, asked: Asked, outcome: "Future[Done]") -> None:
        needs = asked.checks.needs
        made = together([self._check(task, asked, need) for need in needs])

        def settle(checked: "Future[list[Judgement]]") -> None:
            if error := checked.exception():
                return self._end(proposal_id, outcome, error)
            said = {need.digest: judgement for need, judgement in zip(needs, checked.result(), strict=True)}
            ended = set[str]()
            unit = partial(pending.settle, registry=self._registry, chance=self._chance, proposal_id=proposal_id, judged=said, ended=ended)
            self._db.submit(unit).add_done_callback(lambda done: self._end(proposal_id, outcome, done.exception() or done.result(), ended))
            return None

        made.add_done_callback(settle)

    def _check(self, task: str, asked: Asked, need: Need) -> "Future[Judgement]":
        timeout = asked.machine.definition.check[need.check].timeout
        return self._checks.start((task, need.digest), partial(judged, self._db, task, asked.machine, need), timeout)

    def _end(self, proposal_id: str, outcome: "Future[Done]", answer: Done | BaseException, ended: Collection[str] = ()) -> None:
        """Tell whoever waits, for the outcome or for the task: its caller may be gone. After a fault of the store the proposal
        is still pending, and will be taken over."""
        with self._lock:
            self._working.pop(proposal_id, None)
            self._tasks.pop(proposal_id, None)
        if isinstance(answer, BaseException):
            outcome.set_exception(answer)
        else:
            outcome.set_result(answer)
            unattended(ends.telling(ends.unasked(self._registry, self._chance, ended)), self._db)

    def _beat(self) -> None:
        if self._pulse is None:
            self._pulse = threading.Thread(target=self._beats, name="pointsman-pulse", daemon=True)
            self._pulse.start()

    def _beats(self) -> None:
        while not self._stop.wait(PULSE_S):
            for proposal_id, task in list(self._tasks.items()):
                self._db.submit(partial(_keep, proposal_id, task))


def _keep(proposal_id: str, task: str, tx: Tx) -> None:
    """Say that this process still works on it, and keep the lease alive meanwhile of an owner who made it; a check's own
    time is the cap.
    The task is locked first, as by whoever decides on it."""
    found, kept = tasks.find(tx, task), proposals.find(tx, proposal_id)
    if proposals.keep(tx, proposal_id) and found is not None and kept is not None and found.task.owner == kept.principal:
        tasks.prolong(tx, task, tx.now + proposals.HELD)


def together(futures: Sequence["Future[T]"]) -> "Future[list[T]]":
    """One future for all: their results in order, or the first error."""
    whole: Future[list[T]] = Future()
    left = iter(futures)

    def following(_: object = None) -> None:
        future = next(left, None)
        if future is not None:
            future.add_done_callback(following)
        elif error := next((done.exception() for done in futures if done.exception()), None):
            whole.set_exception(error)
        else:
            whole.set_result([done.result() for done in futures])

    following()
    return whole
