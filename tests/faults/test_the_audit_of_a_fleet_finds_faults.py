"""The audit of a fleet's run is worth something: it finds each kind of fault in a record that has one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from faults import fleet_audit as audit
from faults.fleet_work import PLACES, RATE, REST_S, TRIES, Jobs
from pointsman import Pointsman, Task, seconds
from pointsman.engine.queries import Entry
from pointsman.engine.timers import Deadlines
from pointsman.kernel.task import Attempts, Parked
from pointsman.testing import FakeClock

Change = Callable[[Entry], Entry]


@dataclass
class Run:
    """A run in which two jobs were done, one of them after its first owner had vanished and one after a rest, and one waits."""

    entries: list[Entry]
    taken: Task
    rested: Task
    waits: Task
    now: int

    @property
    def histories(self) -> dict[str, list[Entry]]:
        return audit.by_task(self.entries)

    def with_changed(self, id: str, kind: str, change: Change) -> dict[str, list[Entry]]:
        """The histories, with the last entry of a kind of one task as it should not be."""
        last = max(entry.version for entry in self.entries if (entry.task, entry.kind) == (id, kind))
        return audit.by_task(change(entry) if (entry.task, entry.version) == (id, last) else entry for entry in self.entries)

    def nothing(self, **said: Any) -> audit.Line:
        head = len(self.entries)
        return {"what": "nothing", "before": head, "after": head, "at": self.now, "tags": [], "capabilities": [], **said}


@pytest.fixture
def pm(tmp_path: Path) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Jobs], clock=FakeClock()) as opened:
        yield opened


def make(pm: Pointsman, kind: str = "plain", **terms: Any) -> Task:
    return pm.create("jobs", {"kind": kind, "shelf": terms.pop("shelf", "a")}, by="ann", **terms)


def take(pm: Pointsman, task: Task, by: str = "w") -> Task:
    taken = pm.claim("jobs", by=by, id=task.id)
    assert taken is not None
    return taken


@pytest.fixture
def run(pm: Pointsman) -> Run:
    clock = pm.engine.clock
    taken, rested = take(pm, make(pm), "gone"), take(pm, make(pm, "timed", shelf="b"))
    pm.propose(rested.id, "rest", by="w", epoch=rested.epoch)
    clock.advance(seconds(10))
    Deadlines(pm.engine).run_once()
    taken = take(pm, taken)
    pm.propose(taken.id, "finish", by="w", epoch=taken.epoch)
    waits = make(pm, needs=["http"], tags=["red"])
    return Run(audit.feed(pm), taken, rested, waits, clock.now)


def test_a_run_that_is_right_passes(run: Run) -> None:
    ack = {"what": "done", "task": run.taken.id, "version": run.taken.version, "epoch": 2, "event": "take", "by": "w"}
    late = {"what": "no", "task": run.taken.id, "epoch": 1, "event": "step", "code": "lease_lost", "by": "gone"}
    audit.one_owner_per_epoch(run.histories)
    audit.time_goes_on(run.histories)
    audit.acknowledged(run.histories, [ack])
    assert audit.replaced_owners_are_refused(run.histories, [late]) == 1
    assert audit.timers_fired_once(run.histories) == 1
    assert audit.limits_hold(run.entries) == 1
    assert audit.nobody_was_turned_away(run.entries, [run.nothing()]) == 1


OWNERS: list[tuple[str, Change]] = [
    ("acquire", lambda entry: replace(entry, epoch=0)),
    ("acquire", lambda entry: replace(entry, epoch=1)),
    ("event", lambda entry: replace(entry, epoch=1)),
    ("event", lambda entry: replace(entry, by="gone")),
]


@pytest.mark.parametrize(("kind", "change"), OWNERS)
def test_two_owners_of_an_epoch_and_a_late_word(run: Run, kind: str, change: Change) -> None:
    with pytest.raises(AssertionError):
        audit.one_owner_per_epoch(run.with_changed(run.taken.id, kind, change))


@pytest.mark.parametrize("members", [{"at": 0}, {"version": 9}])
def test_time_that_runs_backwards_and_a_gap(run: Run, members: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        audit.time_goes_on(run.with_changed(run.taken.id, "event", lambda entry: replace(entry, **members)))


@pytest.mark.parametrize("members", [{"version": 99}, {"event": "finish"}, {"epoch": 1}, {"by": "gone"}, {"task": "?"}])
def test_what_was_acknowledged_and_is_not_in_history(run: Run, members: dict[str, Any]) -> None:
    ack = {"what": "done", "task": run.taken.id, "version": run.taken.version, "epoch": 2, "event": "take", "by": "w"}
    with pytest.raises(AssertionError):
        audit.acknowledged(run.histories, [ack | members])


def test_an_owner_refused_whom_nobody_replaced(run: Run) -> None:
    late = {"what": "no", "task": run.taken.id, "epoch": 2, "event": "step", "code": "lease_lost", "by": "w"}
    with pytest.raises(AssertionError):
        audit.replaced_owners_are_refused(run.histories, [late])


TIMERS: list[Change] = [
    lambda entry: replace(entry, kind="event"),
    lambda entry: replace(entry, at=entry.at - seconds(10 - REST_S) - 1),
]


@pytest.mark.parametrize("change", TIMERS)
def test_a_timer_that_did_not_fire_or_fired_early(run: Run, change: Change) -> None:
    with pytest.raises(AssertionError):
        audit.timers_fired_once(run.with_changed(run.rested.id, "deadline", change))


def test_a_timer_that_fired_twice(run: Run) -> None:
    histories = run.histories
    histories[run.rested.id].append(histories[run.rested.id][-1])
    with pytest.raises(AssertionError):
        audit.timers_fired_once(histories)


def test_one_moment_of_a_schedule_with_two_tasks_and_one_before_its_time(run: Run) -> None:
    made = run.waits.but(fields={"kind": "timed", "shelf": "schedule"}, dedupe_key="schedule:minutely:2026-01-01T00:00:00.000000Z")
    audit.schedules_fired_once([made])
    for tasks in ([made, made], [made.but(created_at=0)]):
        with pytest.raises(AssertionError):
            audit.schedules_fired_once(tasks)


def test_an_attempt_too_many_and_one_too_few(run: Run) -> None:
    audit.attempts_are_bounded(run.histories)
    acquired = next(entry for entry in run.entries if entry.kind == "acquire")
    for more in ([acquired] * TRIES, [replace(acquired, kind="park", changes={})]):
        histories = run.histories
        histories[acquired.task] += more
        with pytest.raises(AssertionError):
            audit.attempts_are_bounded(histories)


def test_work_left_undone_and_a_killer_that_is_not_parked(run: Run, pm: Pointsman) -> None:
    done, poisoned = pm.get(run.taken.id), run.waits.but(attempts=Attempts(lost=TRIES), parked=Parked("it kills", run.now))
    audit.all_is_over([done, poisoned], poisoned.id)
    for tasks in ([done], [run.waits, poisoned], [poisoned.but(parked=None)], [poisoned.but(attempts=Attempts())]):
        with pytest.raises(AssertionError):
            audit.all_is_over(tasks, poisoned.id)


def test_limits_that_were_exceeded(run: Run) -> None:
    acquired = next(entry for entry in run.entries if entry.kind == "acquire")
    made = next(entry for entry in run.entries if entry.task == acquired.task)
    ids = [f"{number}" for number in range(RATE + 1)]

    def shelved(id: str) -> Entry:
        return replace(made, task=id, changes={**made.changes, "fields": {"kind": "plain", "shelf": id}})

    crowd = [replace(entry, task=id) for id in ids[: PLACES + 1] for entry in (made, acquired)]
    rush = [entry for id in ids for entry in (shelved(id), replace(acquired, task=id))]
    for entries in (crowd, rush):
        with pytest.raises(AssertionError):
            audit.limits_hold(entries)
        assert audit.limits_hold(entries[:-2]) > 0


def test_nothing_for_somebody_whom_a_task_suits(run: Run) -> None:
    suited = run.nothing(capabilities=["http"], tags=["red"])
    with pytest.raises(AssertionError):
        audit.nobody_was_turned_away(run.entries, [suited])
    for other in ({"tags": ["blue"]}, {"capabilities": []}, {"before": len(run.entries) - 1}):
        audit.nobody_was_turned_away(run.entries, [suited | other])
