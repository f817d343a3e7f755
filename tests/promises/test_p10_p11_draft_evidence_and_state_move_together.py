"""P10 and P11: draft, evidence and state move in one step, and nothing but an accepted event moves them.

Two submitters and a reviewer race on one task, from two database handles on one database, while every named statement
may pause before and after it runs.
"""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event, Lock
from typing import Any

import pytest

import support
from pointsman import Pointsman, Refused, Task
from pointsman.store.connect import statement_names

ROUNDS = 500
LONGEST_PAUSE_S = 0.0008
DECIDING = {"find_task", "advance_task", "add_entry", "add_payload", "add_request"}


class Pauses:
    """A probe that pauses at random before and after named statements, and remembers which it saw."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._lock = Lock()
        self._never = Event()
        self.seen: set[str] = set()

    def __call__(self, point: str) -> None:
        with self._lock:
            self.seen.add(point)
            pause = self._random.random() * LONGEST_PAUSE_S if self._random.random() < 0.2 else 0
        if pause:
            self._never.wait(pause)


def _tried(call: Callable[[], Task]) -> Task | Refused:
    try:
        return call()
    except Refused as refused:
        return refused


def _round(one: Pointsman, other: Pointsman, pool: ThreadPoolExecutor, decision: str) -> tuple[Task, list[Task | Refused]]:
    """One good and one bad draft, and a decision on whatever is shown when it is looked at, all at once."""
    task = support.drafting(one)
    gate = Barrier(3)

    def submit(pm: Pointsman, draft: str) -> Task | Refused:
        gate.wait()
        return _tried(lambda: pm.propose(task.id, "request_approval", {"draft": draft}, by=support.OWNER, epoch=task.epoch))

    def review() -> Task | Refused:
        gate.wait()
        return _tried(lambda: other.propose(task.id, decision, by=support.REVIEWER, digest=other.get(task.id).digest))

    started = [pool.submit(submit, one, support.GOOD), pool.submit(submit, other, support.BAD), pool.submit(review)]
    return task, [future.result() for future in started]


def _check_answers(good: Task | Refused, bad: Task | Refused, reviewed: Task | Refused) -> None:
    if isinstance(good, Refused):
        assert good.code == "wrong_state", "a good draft is never answered with failed evidence"
    else:
        assert (good.state, good.fields["draft"], good.evidence["topic"].status) == ("awaiting_approval", support.GOOD, "pass")
    assert isinstance(bad, Refused), "a bad draft is never promoted"
    assert (bad.code, bad.recorded) in {("evidence_failed", True), ("wrong_state", False)}
    if isinstance(reviewed, Refused):
        assert reviewed.code in ("wrong_state", "stale_content")
    else:
        assert reviewed.fields["draft"] == support.GOOD


def _check_history(pm: Pointsman, task: Task) -> None:
    """At every version: waiting or approved only with a good draft and passing evidence; never back in the queue."""
    last = pm.get(task.id)
    for version in range(task.version, last.version + 1):
        seen = pm.get(task.id, version=version)
        assert seen.state != "queued"
        assert seen.evidence["topic"].status == ("pass" if seen.fields["draft"] == support.GOOD else "fail")
        if seen.state in ("awaiting_approval", "approved"):
            assert seen.fields["draft"] == support.GOOD
    moved = [entry for entry in pm.history(task.id) if entry.from_state != entry.to_state or entry.changes]
    assert all(entry.event in pm.machines["tasks"].event or entry.event == "create" for entry in moved)


def test_submitters_and_a_reviewer_race(url: str) -> None:
    pauses = Pauses(seed=1)
    outcomes: set[str] = set()
    with Pointsman(url, probe=pauses) as one, Pointsman(url, probe=pauses) as other, ThreadPoolExecutor(3) as pool:
        for number in range(ROUNDS):
            task, answers = _round(one, other, pool, "reject" if number % 2 else "approve")
            _check_answers(*answers)
            _check_history(one, task)
            outcomes |= {answer.code if isinstance(answer, Refused) else answer.state for answer in answers}
        assert one.verify().ok
    assert {"awaiting_approval", "evidence_failed"} <= outcomes, "both drafts got through at times, or nothing raced"
    assert {f"{side}:{name}" for name in DECIDING for side in ("before", "after")} <= pauses.seen
    assert {point.partition(":")[2] for point in pauses.seen if ":" in point} <= set(statement_names())


def _everything(pm: Pointsman) -> object:
    return pm.list(limit=1000), pm.history(n=1000), [(pm.resume(task.id), pm.operations(task.id)) for task in pm.list(limit=1000)]


FIELDS = {"title": "t", "brief": "b"}
NOBODY = "01890000-0000-7000-8000-000000000000"


def _parts(pm: Pointsman, task: Task, **said: Any) -> object:
    """Two parts of a task, asked for by its owner."""
    return pm.create_batch([{"fields": FIELDS}, {"fields": FIELDS}], by=support.OWNER, machine="tasks", parent=task.id, **said)


REFUSED: list[tuple[str, Callable[[Pointsman, Task], object]]] = [
    ("not_owner", lambda pm, task: pm.propose(task.id, "start_draft", by=support.OTHER, epoch=task.epoch)),
    ("lease_lost", lambda pm, task: pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch + 1)),
    ("already_claimed", lambda pm, task: pm.claim("tasks", by=support.OTHER, id=task.id)),
    ("wrong_state", lambda pm, task: pm.propose(task.id, "complete", by=support.OWNER, epoch=task.epoch)),
    ("unknown_event", lambda pm, task: pm.propose(task.id, "promote", by=support.OWNER)),
    ("invalid", lambda pm, task: pm.propose(task.id, "start_draft", {"state": "done"}, by=support.OWNER, epoch=task.epoch)),
    ("self_approval", lambda pm, task: pm.propose(task.id, "approve", by=support.OWNER, digest=task.digest)),
    ("stale_version", lambda pm, task: pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch, expect_version=1)),
    ("stale_content", lambda pm, task: pm.propose(task.id, "approve", by=support.REVIEWER, digest="0" * 64)),
    ("unknown_task", lambda pm, task: pm.propose("01a22877-5573-7f83-ad0b-abae4ab3849b", "fail", by=support.OWNER)),
    ("unknown_machine", lambda pm, task: pm.create("nonsense", {}, by="ann")),
    ("invalid", lambda pm, task: pm.create("tasks", {"title": " ", "brief": "b"}, by="ann")),
    ("unknown_task", lambda pm, task: pm.create("tasks", FIELDS, by="ann", blocked_by=[{"task": NOBODY}])),
    ("not_owner", lambda pm, task: pm.create("tasks", FIELDS, by="ann", parent=task.id, epoch=task.epoch)),
    ("lease_lost", lambda pm, task: _parts(pm, task, epoch=task.epoch + 1)),
    ("invalid", lambda pm, task: _parts(pm, task, epoch=task.epoch, join=3)),
    ("lease_lost", lambda pm, task: pm.cancel(task.id, by="olga", reason="no", epoch=task.epoch + 1, cascade=True)),
    ("stale_version", lambda pm, task: pm.cancel(task.id, by="olga", reason="no", expect_version=1)),
    ("wrong_state", lambda pm, task: pm.unpark(task.id, by="olga", reason="no")),
    ("lease_lost", lambda pm, task: pm.begin(task.id, "load", by=support.OWNER, epoch=task.epoch + 1, kind="keyed")),
    ("invalid", lambda pm, task: pm.begin(task.id, "load", by=support.OWNER, epoch=task.epoch, effect="gift")),
    ("not_owner", lambda pm, task: pm.checkpoint(task.id, 1, by=support.OTHER, epoch=task.epoch)),
    ("stale_version", lambda pm, task: pm.checkpoint(task.id, 1, by=support.OWNER, epoch=task.epoch, expect=1)),
    ("unknown_operation", lambda pm, task: pm.finish(NOBODY, "failed", by=support.OWNER, epoch=task.epoch)),
    ("invalid", lambda pm, task: pm.create("tasks", {"title": "t", "brief": "b", "owner": "me"}, by="ann")),
]


@pytest.mark.parametrize(("code", "call"), REFUSED, ids=[f"{code}-{n}" for n, (code, _) in enumerate(REFUSED)])
def test_a_refusal_that_is_not_recorded_changes_nothing(url: str, code: str, call: Callable[[Pointsman, Task], object]) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        before = _everything(pm)
        with pytest.raises(Refused) as refused:
            call(pm, task)
        assert (refused.value.code, refused.value.recorded) == (code, False)
        assert _everything(pm) == before


def test_a_dry_run_tells_the_outcome_and_changes_nothing(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        before = _everything(pm)
        would = pm.propose(task.id, "request_approval", {"draft": support.GOOD}, by=support.OWNER, epoch=task.epoch, dry_run=True)
        assert (would.state, would.version) == ("awaiting_approval", task.version + 1)
        with pytest.raises(Refused) as refused:
            pm.propose(task.id, "request_approval", {"draft": "x"}, by=support.OWNER, epoch=task.epoch, dry_run=True)
        assert (refused.value.code, refused.value.recorded, refused.value.version) == ("evidence_failed", False, task.version)
        assert _everything(pm) == before
