"""What was pruned is gone and is not missed: entries and their hashes stay, and everything else goes on."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

import databases
import support
from databases import STORES
from pointsman import Pointsman, Refused, Task
from pointsman.engine.pruning import LONGEST
from pointsman.errors import StoreError
from pointsman.store import proposals, pruning
from pointsman.store.proposals import Kept
from pointsman.store.pruning import Removed
from pointsman.testing import FakeClock
from pointsman.types import hours

AGE = hours(24 * 30)
LATER = AGE + hours(1)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, clock=clock) as pm:
        yield pm


def done(pm: Pointsman) -> Task:
    task = support.approved(pm)
    return pm.propose(task.id, "complete", by=support.OWNER, epoch=task.epoch)


def pruned_status(pm: Pointsman, id: str, version: int) -> str:
    with pytest.raises(Refused) as refused:
        pm.get(id, version=version)
    return refused.value.code


def test_old_records_go_and_the_young_ones_stay(pm: Pointsman, clock: FakeClock) -> None:
    old, open_one = done(pm), support.drafting(pm)
    with pytest.raises(Refused):
        pm.propose(old.id, "complete", by=support.OWNER, epoch=1)
    pm.refusals()
    clock.advance(LATER)
    young = done(pm)
    expected = pm.prunable(AGE)
    assert (expected.requests, expected.refusals) == (old.version + open_one.version, 1)
    assert pm.prune(AGE) == expected
    assert pm.prunable(AGE) == Removed()
    assert pm.refusals() == []
    assert pm.verify(pm.head()).ok
    assert pm.get(old.id, version=1).state == "queued"
    assert [pm.get(task.id).version for task in (old, open_one, young)] == [old.version, open_one.version, young.version]


def test_a_key_is_remembered_for_as_long_as_it_is_kept(pm: Pointsman, clock: FakeClock) -> None:
    asked = {"by": "ann", "idempotency_key": "once"}
    first = pm.create("tasks", {"title": "t", "brief": "b"}, **asked)
    clock.advance(AGE)
    pm.prune(AGE)
    assert pm.create("tasks", {"title": "t", "brief": "b"}, **asked).id == first.id, "an age is older only beyond it"
    clock.advance(1)
    pm.prune(AGE)
    assert pm.create("tasks", {"title": "t", "brief": "b"}, **asked).id != first.id
    assert pm.verify().ok


def test_payloads_go_only_when_asked_for_and_only_those_of_tasks_long_final(pm: Pointsman, clock: FakeClock) -> None:
    old, still_open = done(pm), support.drafting(pm)
    clock.advance(LATER)
    young = done(pm)
    assert pm.prune(AGE).tasks == 0
    assert pm.get(old.id, version=1).fields["title"] == "Release notes"
    assert pm.prune(AGE, payloads=True) == Removed(tasks=1)
    assert {pruned_status(pm, old.id, version) for version in range(1, old.version)} == {"pruned"}
    for task in (still_open, young):
        assert pm.get(task.id, version=1).state == "queued"
    assert pm.verify(pm.head()).ok
    assert pm.prune(AGE, payloads=True) == Removed()


def test_the_last_version_of_a_pruned_task_can_still_be_read(pm: Pointsman, clock: FakeClock) -> None:
    task = done(pm)
    before = pm.get(task.id, version=task.version)
    seq = pm.as_of()
    clock.advance(LATER)
    pm.prune(AGE, payloads=True)
    assert pm.get(task.id, version=task.version) == before
    assert pm.get(task.id, at=f"#{seq}") == before
    assert [item.id for item in pm.list(at=f"#{seq}")] == [task.id]
    with pytest.raises(Refused, match="pruned"):
        pm.list(at="#1")
    with pytest.raises(Refused, match="pruned"):
        pm.get(task.id, at="#1")
    with pytest.raises(Refused, match="no task has this id and this version"):
        pm.get(task.id, version=task.version + 1)


def test_history_of_a_pruned_task_still_says_who_did_what(pm: Pointsman, clock: FakeClock) -> None:
    task = done(pm)
    before = pm.history(task.id)
    clock.advance(LATER)
    pm.prune(AGE, payloads=True)
    after = pm.history(task.id)
    assert [(item.event, item.by, item.at, item.to_state, item.hash) for item in after] == [
        (item.event, item.by, item.at, item.to_state, item.hash) for item in before
    ]
    assert {bool(item.changes) for item in after} == {False}
    assert [line["entry"]["payload"] for line in pm.export() if "entry" in line] == [None] * task.version


def test_a_long_history_is_pruned_with_its_snapshots(pm: Pointsman, clock: FakeClock) -> None:
    task = support.drafting(pm)
    for _ in range(40):
        task = pm.propose(task.id, "start_draft", by=support.OWNER, epoch=task.epoch)
    task = pm.propose(task.id, "fail", by=support.OWNER, epoch=task.epoch)
    clock.advance(LATER)
    pm.prune(AGE, payloads=True)
    assert pruned_status(pm, task.id, 33) == "pruned"
    assert pm.verify().ok


def judged_and_settled(pm: Pointsman, task: Task, status: proposals.Status) -> None:
    """A judgement of the task, and a proposal for it."""

    def unit(tx: proposals.Tx) -> None:
        tx("add_judgement", task=task.id, check="c", inputs_digest="d", status="pass", reason="", detail="null", at=tx.now, hash="h")
        kept = Kept(task.id, task.id, "finish", "{}", "w", task.id, "d", tx.now)
        proposals.add(tx, kept)
        if status != "pending":
            proposals.settle(tx, kept, status, tx.now)

    pm.engine.db.run(unit)


def test_judgements_of_open_tasks_and_pending_proposals_stay(pm: Pointsman, clock: FakeClock) -> None:
    """Forgetting a judgement while its task is open would let its check be asked again."""
    final, still_open = done(pm), support.drafting(pm)
    judged_and_settled(pm, final, "accepted")
    judged_and_settled(pm, still_open, "pending")
    clock.advance(LATER)
    removed = pm.prune(AGE)
    assert (removed.judgements, removed.proposals) == (1, 1)
    left = pm.engine.db.read(lambda tx: [tx("find_judgement", task=task.id, check="c", inputs_digest="d") for task in (final, still_open)])
    assert [row is not None for row in left] == [False, True]
    assert pm.engine.db.read(lambda tx: proposals.count_pending(tx)) == 1


def test_rows_are_removed_a_window_at_a_time(pm: Pointsman, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "WINDOW", 4)
    monkeypatch.setattr(pruning, "TASKS", 2)
    monkeypatch.setattr(pruning, "KEYS", 3)
    tasks = [done(pm) for _ in range(5)]
    clock.advance(LATER)
    told = list[Removed]()
    removed = pm.prune(AGE, payloads=True, told=told.append)
    assert removed == told[-1] == Removed(requests=sum(task.version for task in tasks), tasks=5)
    steps = [later.requests - sooner.requests for sooner, later in pairwise(told)]
    assert max(steps) == 4
    assert max(later.tasks - sooner.tasks for sooner, later in pairwise(told)) == 2
    assert pm.verify().ok


def test_work_goes_on_between_two_windows(pm: Pointsman, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "WINDOW", 1)
    done(pm)
    clock.advance(LATER)
    pm.prune(AGE, payloads=True, told=lambda _: support.create(pm) and None)
    assert pm.verify(pm.head()).ok


class Stopped(Exception):
    pass


@pytest.mark.parametrize("statement", ["add_pruning", "prune_requests", "add_pruned", "drop_payloads", "drop_snapshots"])
@pytest.mark.parametrize("kind", STORES)
def test_a_pruning_that_ends_anywhere_leaves_a_whole_database(
    kind: str, statement: str, tmp_path: databases.Path, request: pytest.FixtureRequest, clock: FakeClock
) -> None:
    url = databases.empty(kind, tmp_path, request)
    armed = list[str]()

    def probe(point: str) -> None:
        if armed and point == f"after:{statement}":
            raise Stopped

    with Pointsman(url, clock=clock, probe=probe) as pm:
        task = done(pm)
        clock.advance(LATER)
        armed.append("now")
        with pytest.raises(Stopped):
            pm.prune(AGE, payloads=True)
        armed.clear()
        assert pm.verify().ok
        pm.prune(AGE, payloads=True)
        assert pm.verify().ok
        assert pruned_status(pm, task.id, 1) == "pruned"


def test_two_prunings_at_once_drop_a_task_once(pm: Pointsman, clock: FakeClock) -> None:
    task = done(pm)
    clock.advance(LATER)
    ids = next(iter(pruning.final_tasks(pm.engine.db, clock())))
    assert [pm.engine.db.run(lambda tx: pruning.drop(tx, ids)) for _ in range(2)] == [1, 0]
    assert pm.verify().ok
    assert ids == [task.id]


@pytest.mark.parametrize("age", [-1, LONGEST + 1, 2**63, True, 1.0, "30d", None])
def test_an_age_that_is_none_is_refused(pm: Pointsman, age: object) -> None:
    calls: list[Callable[..., Removed]] = [pm.prune, pm.prunable]
    for call in calls:
        with pytest.raises(Refused, match="older_than"):
            call(age)
    assert pm.engine.db.read(lambda tx: pruning.every(tx)) == []


def test_what_is_no_flag_and_no_url_is_refused(pm: Pointsman) -> None:
    wrong: Any = 1
    for call in (lambda: pm.prune(AGE, payloads=wrong), lambda: pm.prunable(AGE, payloads=wrong), lambda: pm.copy(wrong)):
        with pytest.raises(Refused, match="has the wrong type"):
            call()


def test_a_store_that_fails_in_the_middle_is_told(pm: Pointsman) -> None:
    pm.engine.db.close()
    with pytest.raises(StoreError):
        pm.prune(AGE)


# ── keys that are known for good ─────────────────────────────────────────────────────────────────────────────────────

LATE = {"title": "Release notes", "brief": "Say what is new"}


def keyed(pm: Pointsman, **said: Any) -> Task:
    return pm.create("tasks", {**LATE, **said.pop("fields", {})}, by="ann", dedupe_key="k", **said)


def pruned_task(pm: Pointsman, clock: FakeClock, **said: Any) -> Task:
    task = keyed(pm, **said)
    pm.cancel(task.id, by="olga", reason="not wanted")
    clock.advance(LATER)
    assert pm.prune(AGE, payloads=True).tasks == 1
    return task


def test_a_known_key_is_answered_when_its_payloads_are_gone(pm: Pointsman, clock: FakeClock) -> None:
    task = pruned_task(pm, clock, priority=1)
    again = keyed(pm, priority=1)
    assert (again.id, again.deduped) == (task.id, True)
    items = [{"fields": LATE, "priority": 1, "dedupe_key": "k"}, {"fields": LATE, "ref": "new", "blocked_by": [{"task": task.id}]}]
    assert pm.create_batch(items, by="bea", machine="tasks")[0].id == task.id


@pytest.mark.parametrize("said", [{"priority": 2}, {"tags": ["late"]}, {"fields": {"title": "Other"}}])
def test_other_words_are_a_conflict_when_its_payloads_are_gone(pm: Pointsman, clock: FakeClock, said: dict[str, Any]) -> None:
    pruned_task(pm, clock)
    with pytest.raises(Refused, match="dedupe_conflict"):
        keyed(pm, **said)


def test_what_work_may_have_moved_is_not_compared(pm: Pointsman, clock: FakeClock) -> None:
    task = pruned_task(pm, clock, run_at=clock.now + hours(1))
    assert keyed(pm).id == task.id
