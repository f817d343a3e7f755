"""The ledger where it is easy to go wrong: keys that repeat, owners that were replaced twice, content that moved, tasks that are over."""

from collections.abc import Iterator
from typing import Any

import pytest

from pointsman import (
    Effect,
    Event,
    Machine,
    Pointsman,
    Principal,
    Refused,
    State,
    Task,
    contributor,
    hours,
    minutes,
    optional,
    owner,
    result,
    role,
)
from pointsman.engine.operations import Shown
from pointsman.errors import StoreError
from pointsman.kernel.operation import Operation
from pointsman.store import history, requests
from pointsman.store.requests import Request
from pointsman.testing import FakeClock
from pointsman.types import seconds


class Payouts(Machine, name="payouts"):
    """Somebody else decides on what is paid out, and the payee can be put right afterwards."""

    payee: str = "ann"
    amount: int
    receipt: str | None = result()

    asked = State(initial=True, lease=minutes(10))
    judged = State()
    approved = State(lease=minutes(10), on_lapse="same")
    done = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> asked, acquires=True)
    go_on = Event(approved >> approved, acquires=True)
    submit = Event(asked >> judged, by=owner)
    approve = Event(judged >> approved, by=role("lead") & ~contributor)
    correct = Event(approved >> approved, by=owner, sets="payee")
    complete = Event(approved >> done, by=owner, sets=optional("receipt"))
    drop = Event((asked | judged | approved) >> dropped)

    take_back = Effect("take_back", during=approved, request=("payee", "amount"), kind="ask")
    pay = Effect("pay", during=approved, request=("payee", "amount"), kind="lookup", settle=minutes(5), undo=take_back)


OPERATOR = Principal("olga", kind="person")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Payouts], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def taken(pm: Pointsman, id: str, by: str, session: str | None = None) -> Task:
    found = pm.claim("payouts", by=by, id=id, session=session)
    assert found is not None
    return found


@pytest.fixture
def fresh(pm: Pointsman) -> Task:
    """Owned, and nobody decided yet."""
    return taken(pm, pm.create("payouts", {"amount": 5}, by="ann").id, "worker-1")


@pytest.fixture
def task(pm: Pointsman, fresh: Task) -> Task:
    """Approved, and back with its owner."""
    judged = pm.propose(fresh.id, "submit", by="worker-1", epoch=fresh.epoch)
    return pm.propose(judged.id, "approve", by="rita", digest=judged.digest)


def begin(pm: Pointsman, task: Task, name: str, kind: Any = None, request: Any = None, **more: Any) -> Shown:
    return pm.begin(task.id, name, by=task.owner or "", epoch=task.epoch, kind=kind, request=request, **more)


def replaced(pm: Pointsman, clock: FakeClock, task: Task, by: str) -> Task:
    clock.advance(minutes(10) + seconds(1))
    return taken(pm, task.id, by)


def refused(call: Any, *args: Any, **given: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **given)
    return caught.value


# ── keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_begin_with_its_key_is_answered_as_it_was_then(pm: Pointsman, task: Task) -> None:
    first = begin(pm, task, "load", "keyed", idempotency_key="k")
    pm.finish(first.operation.id, "succeeded", 1, by="worker-1", epoch=task.epoch)
    again = begin(pm, task, "load", "keyed", idempotency_key="k")
    assert (again.operation, again.standing, again.known, again.replayed) == (first.operation, "started", False, True)
    assert begin(pm, task, "load", "keyed").standing == "succeeded"
    for other in ({"timeout_s": 5}, {"settle_s": 5}, {"session": "s"}):
        assert refused(begin, pm, task, "load", "keyed", idempotency_key="k", **other).code == "idempotency_conflict"


def test_a_key_that_took_over_what_was_in_doubt_says_so_again(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    begin(pm, task, "load", "keyed")
    later = replaced(pm, clock, task, "worker-2")
    first, again = (begin(pm, later, "load", "keyed", idempotency_key="k") for _ in range(2))
    assert (first.standing, again.standing, again.known, again.operation.attempt) == ("in_doubt", "in_doubt", True, 2)


def test_an_outcome_with_its_key_does_not_end_the_next_attempt(pm: Pointsman, task: Task) -> None:
    first = begin(pm, task, "load", "keyed").operation
    pm.finish(first.id, "not_done", by="worker-1", epoch=task.epoch, idempotency_key="k")
    begin(pm, task, "load", "keyed")
    again = pm.finish(first.id, "not_done", by="worker-1", epoch=task.epoch, idempotency_key="k")
    assert (again.standing, again.operation.attempt, again.replayed) == ("not_done", 1, True)
    assert pm.operations(task.id)[0].standing == "started"
    no = refused(pm.finish, first.id, "failed", by="worker-1", epoch=task.epoch, idempotency_key="k")
    assert no.code == "idempotency_conflict"


def test_a_begin_whose_commit_was_unknown_is_this_calls_own(pm: Pointsman, task: Task) -> None:
    steps = Pointsman.begin.steps(pm, task.id, "load", by="worker-1", epoch=task.epoch, kind="keyed")
    pm.engine.db.run(next(steps).unit)
    second = steps.throw(StoreError("store_unavailable", "the connection broke in COMMIT", "unknown"))
    with pytest.raises(StopIteration) as ended:
        steps.send(pm.engine.db.run(second.unit))
    shown = ended.value.value
    assert (shown.standing, shown.known, shown.replayed) == ("started", False, False)
    assert pm.get(task.id).version == task.version + 1


def test_what_is_remembered_once_more_after_an_unknown_commit_stands_once(pm: Pointsman, task: Task) -> None:
    """Its name says whether it was written. It keeps no idempotency record, and none is missed."""
    steps = Pointsman.remember.steps(pm, task.id, "load", 7, by="worker-1", epoch=task.epoch)
    pm.engine.db.run(next(steps).unit)
    second = steps.throw(StoreError("store_unavailable", "the connection broke in COMMIT", "unknown"))
    with pytest.raises(StopIteration) as ended:
        steps.send(pm.engine.db.run(second.unit))
    shown = ended.value.value
    assert (shown.standing, shown.operation.result, shown.known) == ("succeeded", 7, False)
    links = [entry.link for entry in pm.engine.db.read(lambda tx: history.of_task(tx, task.id, 0))]
    assert [link.kind for link in links if link.version > task.version] == ["remember"]
    kept = pm.engine.db.run(lambda tx: [requests.find(tx, Request(link.by, link.request_key, "")) for link in links])
    assert [link.kind for link, found in zip(links, kept, strict=True) if found is None] == ["remember"]
    assert pm.verify().ok


@pytest.mark.parametrize("other", [{"result": 8}, {"request": ["A-2"]}, {"epoch": 9}])
def test_an_unknown_commit_of_what_is_remembered_is_known_by_its_name_also_when_the_task_has_moved_on(
    pm: Pointsman, clock: FakeClock, task: Task, other: dict[str, Any]
) -> None:
    given: dict[str, Any] = {"by": "worker-1", "epoch": task.epoch, "result": 7}
    unknown = StoreError("store_unavailable", "the connection broke in COMMIT", "unknown")

    def asked(steps: Any) -> Shown:
        next(steps)
        with pytest.raises(StopIteration) as ended:
            steps.send(pm.engine.db.run(steps.throw(unknown).unit))
        return ended.value.value

    first = pm.remember(task.id, "load", **given)
    replaced(pm, clock, task, "worker-2")
    assert asked(Pointsman.remember.steps(pm, task.id, "load", **given)).operation == first.operation
    assert refused(pm.remember, task.id, "load", **given).code == "lease_lost"
    assert refused(asked, Pointsman.remember.steps(pm, task.id, "load", **{**given, **other})).code == "lease_lost"


# ── owners ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_was_replaced_is_heard_also_when_another_began_it_again(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "load", "keyed").operation
    later = replaced(pm, clock, task, "worker-2")
    begin(pm, later, "load", "keyed")
    for _ in range(3):
        assert refused(pm.finish, first.id, "succeeded", 1, by="worker-1", epoch=task.epoch).code == "lease_lost"
    refused(pm.finish, first.id, "succeeded", True, by="worker-1", epoch=task.epoch)
    refused(pm.finish, first.id, "succeeded", by="stranger")
    (shown,) = pm.operations(task.id)
    assert [(said.by, said.result) for said in shown.testimony] == [("worker-1", 1), ("worker-1", True)]


def test_so_much_is_kept_of_what_is_said(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "load", "keyed").operation
    replaced(pm, clock, task, "worker-2")
    for number in range(25):
        refused(pm.finish, first.id, "succeeded", number, by="worker-1", epoch=task.epoch)
    assert len(pm.operations(task.id)[0].testimony) == 20


def test_an_old_epoch_is_refused_though_an_operator_sends_it(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "letter", "ask").operation
    later = replaced(pm, clock, task, "worker-2")
    assert refused(pm.finish, first.id, "not_done", by=OPERATOR, epoch=task.epoch).code == "lease_lost"
    clock.advance(minutes(11))
    assert pm.finish(first.id, "not_done", by=OPERATOR, epoch=later.epoch).standing == "not_done"


def test_asking_for_what_is_there_renews_too(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    operation = begin(pm, task, "load", "keyed").operation
    clock.advance(minutes(11))
    assert begin(pm, task, "load", "keyed").standing == "started", "it lapsed, and nobody took it"
    lease = pm.get(task.id).lease
    assert lease is not None
    assert lease.live
    pm.finish(operation.id, "failed", by="worker-1", epoch=task.epoch)
    clock.advance(minutes(11))
    assert pm.finish(operation.id, "failed", by="worker-1", epoch=task.epoch).known
    assert (lease := pm.get(task.id).lease) is not None
    assert lease.live


def test_whoever_waits_for_children_goes_on_without_a_lease(pm: Pointsman, clock: FakeClock, fresh: Task) -> None:
    child = {"fields": {"amount": 1}}
    pm.create_batch([child], by="worker-1", machine="payouts", parent=fresh.id, epoch=fresh.epoch, join="all")
    operation = begin(pm, fresh, "load", "keyed").operation
    pm.checkpoint(fresh.id, 1, by="worker-1", epoch=fresh.epoch)
    begin(pm, fresh, "load", "keyed")
    pm.finish(operation.id, "failed", by="worker-1", epoch=fresh.epoch)
    clock.advance(hours(2))
    found = pm.get(fresh.id)
    assert (found.lease, found.held) == (None, True)


def test_a_given_back_task_leaves_its_operations_in_doubt(pm: Pointsman, task: Task) -> None:
    operation = begin(pm, task, "load", "lookup", settle_s=5).operation
    pm.release(task.id, by="worker-1", epoch=task.epoch)
    assert pm.operations(task.id)[0].standing == "in_doubt"
    assert refused(pm.finish, operation.id, "succeeded", by="worker-1").code == "not_owner"
    again = taken(pm, task.id, "worker-1")
    assert begin(pm, again, "load", "lookup").standing == "in_doubt", "the same name, but a new epoch"


# ── what was approved ────────────────────────────────────────────────────────────────────────────────────────────────


def test_content_that_moved_since_its_approval_is_not_sent(pm: Pointsman, task: Task) -> None:
    moved = pm.propose(task.id, "correct", {"payee": "mallory"}, by="worker-1", epoch=task.epoch)
    no = refused(begin, pm, moved, "pay", effect="pay")
    assert (no.code, no.recorded) == ("approvals_missing", False)
    assert pm.operations(task.id) == []


def test_what_was_begun_with_other_fields_is_not_begun_again(pm: Pointsman, task: Task) -> None:
    first = begin(pm, task, "pay", effect="pay").operation
    assert first.request == {"payee": "ann", "amount": 5}
    pm.finish(first.id, "not_done", by="worker-1", epoch=task.epoch)
    pm.propose(task.id, "correct", {"payee": "mallory"}, by="worker-1", epoch=task.epoch)
    assert refused(begin, pm, task, "pay", effect="pay").code == "approvals_missing"


def test_an_effect_under_another_name_is_the_same_effect(pm: Pointsman, task: Task) -> None:
    first = begin(pm, task, "pay", effect="pay").operation
    no = refused(begin, pm, task, "pay once more", effect="pay")
    assert (no.code, no.refusal.extra["operation"]) == ("idempotency_conflict", first.id)
    pm.finish(first.id, "failed", "no such account", by="worker-1", epoch=task.epoch)
    assert begin(pm, task, "pay once more", effect="pay").standing == "started", "what failed may be tried anew"


def test_an_effect_settles_as_its_machine_says(pm: Pointsman, task: Task) -> None:
    no = refused(begin, pm, task, "pay", effect="pay", settle_s=1)
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", ["settle_s"])


def test_what_is_undone_is_an_operation(pm: Pointsman, task: Task) -> None:
    paid = begin(pm, task, "pay", effect="pay").operation
    no = refused(begin, pm, task, "back", "keyed", compensates="01890000-0000-7000-8000-000000000000")
    assert (no.code, no.failed[0]["path"]) == ("invalid", "compensates")
    pm.finish(paid.id, "succeeded", by="worker-1", epoch=task.epoch)
    kept = begin(pm, task, "note", "keyed").operation
    pm.finish(kept.id, "succeeded", by="worker-1", epoch=task.epoch)
    before = pm.cancel(task.id, by="olga", reason="wrong account").report
    assert [item.name for item in before.happened] == ["pay", "note"]
    assert ([item.name for item in before.undoable], [item.name for item in before.not_undoable]) == (["pay"], ["note"])


def test_what_was_undone_is_no_longer_to_be_undone(pm: Pointsman, task: Task) -> None:
    paid = begin(pm, task, "pay", effect="pay").operation
    pm.finish(paid.id, "succeeded", by="worker-1", epoch=task.epoch)
    back = begin(pm, task, "take_back", effect="take_back", compensates=paid.id).operation
    pm.finish(back.id, "succeeded", by="worker-1", epoch=task.epoch)
    report = pm.cancel(task.id, by="olga", reason="wrong account").report
    assert (report.undoable, report.not_undoable) == ([], [])


def done(pm: Pointsman, task: Task, name: str, **how: Any) -> Operation:
    operation = begin(pm, task, name, **how).operation
    return pm.finish(operation.id, "succeeded", by=task.owner or "", epoch=task.epoch).operation


def test_only_what_was_done_is_undone_and_as_it_is_declared(pm: Pointsman, task: Task) -> None:
    paid, noted = done(pm, task, "pay", effect="pay"), done(pm, task, "note", kind="keyed")
    open_ = begin(pm, task, "open", "keyed").operation
    other = taken(pm, pm.create("payouts", {"amount": 5}, by="ann").id, "worker-1")
    elsewhere = done(pm, other, "note", kind="keyed")
    for how, why in (
        ({"effect": "pay", "compensates": paid.id}, "is an effect that take_back undoes"),
        ({"kind": "keyed", "compensates": paid.id}, "is an effect that take_back undoes"),
        ({"effect": "take_back", "compensates": noted.id}, "is no effect, and take_back is one"),
        ({"kind": "keyed", "compensates": open_.id}, "is no operation of this task that has succeeded"),
        ({"kind": "keyed", "compensates": elsewhere.id}, "is no operation of this task that has succeeded"),
    ):
        no = refused(begin, pm, task, "back", **how)
        assert (no.code, no.failed) == ("invalid", [{"path": "compensates", "message": why}])
    back = done(pm, task, "back", kind="keyed", compensates=noted.id)
    twice = refused(begin, pm, task, "back once more", "keyed", request={"by": "other words"}, compensates=noted.id)
    assert (twice.code, twice.refusal.extra["operation"]) == ("idempotency_conflict", back.id)
    again = refused(begin, pm, task, "back again", "keyed", compensates=back.id)
    assert again.failed == [{"path": "compensates", "message": "undoes another one itself"}]


def test_an_effect_is_undone_once_whatever_that_is_called(pm: Pointsman, task: Task) -> None:
    paid = done(pm, task, "pay", effect="pay")
    back = begin(pm, task, "back", effect="take_back", compensates=paid.id).operation
    no = refused(begin, pm, task, "back again", effect="take_back", compensates=paid.id)
    assert (no.code, no.refusal.extra["operation"]) == ("idempotency_conflict", back.id)
    assert refused(begin, pm, task, "by itself", effect="take_back").code == "idempotency_conflict"
    pm.finish(back.id, "failed", "no such account", by="worker-1", epoch=task.epoch)
    assert begin(pm, task, "back again", effect="take_back", compensates=paid.id).standing == "started"


# ── what is over ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cancelled_task_still_learns_what_came_of_it(pm: Pointsman, task: Task) -> None:
    paid = begin(pm, task, "pay", effect="pay").operation
    report = pm.cancel(task.id, by="olga", reason="wrong account").report
    assert [item.id for item in report.in_doubt] == [paid.id]
    facts = pm.resume(task.id)
    assert (facts.pending, [item.id for item, _ in facts.in_doubt]) == ([], [paid.id])


def test_a_person_says_of_any_kind_what_came_of_it_once_its_task_is_over(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    paid = begin(pm, task, "pay", effect="pay").operation
    pm.cancel(task.id, by="olga", reason="wrong account")
    assert refused(pm.finish, paid.id, "succeeded", by="gus", epoch=task.epoch).code == "not_owner"
    assert pm.finish(paid.id, "succeeded", 7, by=OPERATOR).standing == "succeeded"
    assert pm.operations(task.id)[0].operation.result == 7


def test_what_may_still_arrive_has_not_failed_yet(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    paid = begin(pm, task, "pay", "lookup", settle_s=3_600).operation
    later = replaced(pm, clock, task, "worker-2")
    begin(pm, later, "pay", "lookup")
    now = {"by": "worker-2", "epoch": later.epoch}
    for status in ("failed", "not_done"):
        assert refused(pm.finish, paid.id, status, **now).code == "operation_in_doubt"
    clock.advance(pm.operations(task.id)[0].operation.settles_at - clock())
    assert pm.finish(paid.id, "failed", **now).standing == "failed"


def test_an_outcome_is_that_of_the_task_that_is_named(pm: Pointsman, task: Task) -> None:
    other = taken(pm, pm.create("payouts", {"amount": 5}, by="ann").id, "worker-1")
    operation = begin(pm, task, "load", "keyed").operation
    no = refused(pm.finish, operation.id, "succeeded", by="worker-1", task=other.id, epoch=other.epoch)
    assert (no.code, pm.operations(task.id)[0].standing) == ("unknown_operation", "started")
    assert pm.finish(operation.id, "succeeded", by="worker-1", task=task.id, epoch=task.epoch).standing == "succeeded"


def test_what_is_in_doubt_is_not_pruned_and_what_is_pruned_is_vouched_for(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    letter = begin(pm, task, "letter", "ask").operation
    pm.propose(task.id, "drop", by="rita")
    clock.advance(hours(1))
    assert (pm.prunable(minutes(1), payloads=True).tasks, pm.prune(minutes(1), payloads=True).tasks) == (0, 0)
    pm.finish(letter.id, "not_done", by=OPERATOR)
    clock.advance(hours(1))
    assert (pm.prunable(minutes(1), payloads=True).tasks, pm.prune(minutes(1), payloads=True).tasks) == (1, 1)
    assert pm.verify().ok


def test_history_tells_of_the_operation(pm: Pointsman, task: Task) -> None:
    operation = begin(pm, task, "load", "keyed", {"page": 1}).operation
    pm.finish(operation.id, "succeeded", 7, by="worker-1", epoch=task.epoch, note="as it was")
    began, ended = (entry.as_json()["changes"]["operation"] for entry in pm.history(task.id)[-2:])
    assert (began["id"], began["name"], began["request"], began["status"]) == (operation.id, "load", {"page": 1}, "started")
    assert (ended["status"], ended["result"], ended["note"]) == ("succeeded", 7, "as it was")
    assert began["begun_at"].endswith("Z")
    assert began["settled_at"] is None


def test_a_note_that_no_store_takes_is_named(pm: Pointsman, task: Task) -> None:
    operation = begin(pm, task, "load", "keyed").operation
    for note in ("a\0b", "\ud800", "x" * 300_000):
        no = refused(pm.finish, operation.id, "failed", by="worker-1", epoch=task.epoch, note=note)
        assert (no.code, no.failed[0]["path"]) == ("invalid", "note")
    assert refused(begin, pm, task, "more", effect="\ud800").failed[0]["path"] == "effect"


def test_a_task_of_the_past_says_what_was_begun_then(pm: Pointsman, task: Task) -> None:
    operation = begin(pm, task, "load", "keyed").operation
    pm.finish(operation.id, "succeeded", by="worker-1", epoch=task.epoch)
    assert [[item.name for item in pm.get(task.id, version=version).begun] for version in range(task.version, task.version + 3)] == [
        [],
        ["load"],
        [],
    ]
