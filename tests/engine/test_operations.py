"""The ledger: what is about to be done is written first, what came of it after, and in between it is in doubt."""

from collections.abc import Iterator
from typing import Any

import pytest

from pointsman import (
    Effect,
    Event,
    Machine,
    NonBlank,
    Pointsman,
    Principal,
    Refused,
    State,
    Task,
    Verdict,
    check,
    hours,
    minutes,
    note,
    owner,
    result,
    role,
)
from pointsman.engine.operations import Shown
from pointsman.testing import FakeClock
from pointsman.types import iso, seconds


class Refunds(Machine, name="refunds"):
    order: NonBlank
    amount: int
    reason: str | None = note()
    receipt: str | None = result()

    asked = State(initial=True)
    paying = State(lease=minutes(10))
    done = State(final=True)
    dropped = State(final=True, outcome="failed")

    take = Event(asked >> paying, acquires=True)
    complete = Event(paying >> done, by=owner, sets="receipt")
    drop = Event((asked | paying) >> dropped, by=owner | role("operator"))

    refund = Effect("refund", during=paying, request=("order", "amount"), kind="lookup", settle=minutes(10))
    mail = Effect("mail", during=paying, request="order", kind="ask")


def is_good(text: str) -> Verdict:
    return Verdict(text == "good", "compared")


class Screens(Machine, name="screens"):
    """What fails its check is filed away."""

    text: str | None = None
    open = State(initial=True)
    work = State(lease=minutes(10))
    review = State()
    filed = State(final=True)
    lost = State(final=True, outcome="failed")
    good = check(is_good)
    take = Event(open >> work, acquires=True)
    submit = Event(work >> review, by=owner, sets="text", requires=good, otherwise=filed)
    drop = Event((open | work | review) >> lost)


OPERATOR = Principal("olga", kind="person")
AGENT_OPERATOR = Principal("robot", kind="agent")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Refunds, Screens], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


@pytest.fixture
def task(pm: Pointsman) -> Task:
    pm.create("refunds", {"order": "A-1", "amount": 12}, by="ann")
    return taken(pm, "worker-1")


def taken(pm: Pointsman, by: str) -> Task:
    found = pm.claim("refunds", by=by)
    assert found is not None
    return found


def replaced(pm: Pointsman, clock: FakeClock, by: str = "worker-2") -> Task:
    """The task as another worker took it over."""
    clock.advance(minutes(10) + seconds(1))
    return taken(pm, by)


def begin(pm: Pointsman, task: Task, name: str, kind: Any = None, request: Any = None, by: str | None = None, **more: Any) -> Shown:
    return pm.begin(task.id, name, by=by or task.owner or "", epoch=task.epoch, kind=kind, request=request, **more)


def refused(call: Any, *args: Any, **given: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        call(*args, **given)
    return caught.value


def test_an_intent_is_an_entry_and_so_is_its_outcome(pm: Pointsman, task: Task) -> None:
    begun = begin(pm, task, "load order", "repeatable", {"order": "A-1"})
    assert (begun.standing, begun.known, begun.operation.attempt) == ("started", False, 1)
    done = pm.finish(begun.operation.id, "succeeded", {"lines": [1, 2]}, by="worker-1", epoch=task.epoch)
    assert (done.standing, done.operation.result) == ("succeeded", {"lines": [1, 2]})
    assert [(entry.kind, entry.version) for entry in pm.history(task.id)[-2:]] == [("begin", 3), ("settle", 4)]
    assert pm.get(task.id).begun == ()


def test_the_same_step_is_not_run_again_but_answered(pm: Pointsman, task: Task) -> None:
    begun = begin(pm, task, "load order", "repeatable")
    assert begin(pm, task, "load order", "repeatable").standing == "started"
    pm.finish(begun.operation.id, "succeeded", 7, by="worker-1", epoch=task.epoch)
    version = pm.get(task.id).version
    again = begin(pm, task, "load order", "repeatable")
    assert (again.standing, again.known, again.operation.result, again.operation.id) == ("succeeded", True, 7, begun.operation.id)
    assert pm.finish(begun.operation.id, "succeeded", 7, by="worker-1", epoch=task.epoch).known
    assert pm.get(task.id).version == version


def test_a_name_stands_for_one_request(pm: Pointsman, task: Task) -> None:
    begun = begin(pm, task, "load order", "repeatable", {"order": "A-1"})
    no = refused(begin, pm, task, "load order", "repeatable", {"order": "A-2"})
    assert (no.code, no.refusal.extra["operation"]) == ("idempotency_conflict", begun.operation.id)
    assert refused(begin, pm, task, "load order", "keyed", {"order": "A-1"}).code == "idempotency_conflict"


def test_what_is_remembered_is_begun_and_finished_in_one_entry(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    given: dict[str, Any] = {"by": "worker-1", "epoch": task.epoch, "request": ["A-1"]}
    first = pm.remember(task.id, "load", {"lines": 2}, **given)
    assert (first.standing, first.known, first.operation.kind, first.operation.attempt) == ("succeeded", False, "repeatable", 1)
    assert first.task == pm.get(task.id)
    again = pm.remember(task.id, "load", "something else", **given)
    assert (again.known, again.operation) == (True, first.operation)
    assert [(entry.kind, entry.version) for entry in pm.history(task.id)[-2:]] == [("acquire", 2), ("remember", 3)]
    assert refused(pm.remember, task.id, "load", 1, **{**given, "request": ["A-2"]}).code == "idempotency_conflict"
    begin(pm, task, "save", "repeatable", ["A-1"])
    assert pm.remember(task.id, "save", 7, **given).operation.attempt == 2
    assert pm.get(task.id).begun == ()
    for wrong, path in (({"result": float("nan")}, "result"), ({"request": float("nan")}, "request"), ({"name": ""}, "name")):
        asked: dict[str, Any] = {"id": task.id, "name": "load", **given, **wrong}
        assert refused(pm.remember, **asked).failed[0]["path"] == path
    replaced(pm, clock)
    assert refused(pm.remember, task.id, "more", 1, **given).code == "lease_lost"


def test_whoever_gives_a_task_back_says_when_it_is_to_be_taken(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    back = pm.release(task.id, by="worker-1", epoch=task.epoch, counts=False, rest_s=60)
    assert back.run_at == back.updated_at + seconds(60)
    clock.advance(seconds(59))
    assert pm.claim("refunds", by="worker-1") is None
    clock.advance(seconds(2))
    task = taken(pm, "worker-1")
    until = clock.now + minutes(5)
    assert pm.release(task.id, by="worker-1", epoch=task.epoch, run_at=iso(until)).run_at == until
    clock.advance(minutes(6))
    task = taken(pm, "worker-1")
    for how, path in (({"rest_s": -1}, "rest_s"), ({"run_at": "soon"}, "run_at"), ({"run_at": until, "rest_s": 1}, "rest_s")):
        assert refused(pm.release, task.id, by="worker-1", epoch=task.epoch, **how).failed[0]["path"] == path


def test_a_person_who_answers_puts_the_task_back_into_work(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    begun = begin(pm, task, "mail", effect="mail").operation
    pm.release(task.id, by="worker-1", epoch=task.epoch, counts=False, rest_s=86_400)
    assert pm.claim("refunds", by="worker-2") is None
    pm.finish(begun.id, "not_done", by=OPERATOR)
    assert pm.get(task.id).run_at is None
    assert taken(pm, "worker-2").id == task.id


def test_an_outcome_once_said_is_said(pm: Pointsman, task: Task) -> None:
    begun = begin(pm, task, "load order", "repeatable")
    pm.finish(begun.operation.id, "failed", "no such order", by="worker-1", epoch=task.epoch)
    no = refused(pm.finish, begun.operation.id, "succeeded", by="worker-1", epoch=task.epoch)
    assert (no.code, no.recorded) == ("wrong_state", False)


def test_what_was_not_done_is_begun_again_under_the_same_id(pm: Pointsman, task: Task) -> None:
    first = begin(pm, task, "refund", effect="refund")
    pm.finish(first.operation.id, "not_done", by="worker-1", epoch=task.epoch)
    again = begin(pm, task, "refund", effect="refund")
    assert (again.standing, again.known, again.operation.id, again.operation.attempt) == ("started", False, first.operation.id, 2)


def test_the_request_of_a_declared_effect_is_built_from_the_task(pm: Pointsman, task: Task) -> None:
    begun = begin(pm, task, "refund", effect="refund").operation
    assert (begun.request, begun.kind, begun.effect) == ({"order": "A-1", "amount": 12}, "lookup", "refund")
    assert begun.settles_at - begun.deadline == minutes(10)
    same = begin(pm, task, "refund", "lookup", {"amount": 12, "order": "A-1"}, effect="refund")
    assert same.standing == "started"


def test_another_request_than_the_declared_one_is_refused(pm: Pointsman, task: Task) -> None:
    no = refused(begin, pm, task, "refund", "keyed", {"order": "A-1", "amount": 1200}, effect="refund")
    assert (no.code, [item["path"] for item in no.failed]) == ("invalid", ["kind", "request"])
    assert refused(begin, pm, task, "refund", effect="gift").failed[0]["path"] == "effect"
    assert refused(begin, pm, task, "refund").failed[0]["path"] == "kind"
    assert pm.get(task.id).version == task.version


def test_a_task_is_not_completed_over_an_operation_that_is_not_finished(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    begun = begin(pm, task, "refund", effect="refund")
    no = refused(pm.propose, task.id, "complete", {"receipt": "r"}, by="worker-1", epoch=task.epoch)
    assert no.code == "operation_in_doubt"
    assert [*no.failed] == [{"operation": begun.operation.id, "name": "refund", "status": "started"}]
    later = replaced(pm, clock)
    no = refused(pm.propose, task.id, "complete", {"receipt": "r"}, by="worker-2", epoch=later.epoch)
    assert no.failed[0]["status"] == "in_doubt"
    assert pm.propose(task.id, "drop", by="worker-2", epoch=later.epoch).state == "dropped", "it may be given up"


def test_a_failed_check_does_not_complete_it_either(pm: Pointsman) -> None:
    pm.create("screens", {}, by="ann")
    task = pm.claim("screens", by="worker-1")
    assert task is not None
    begun = begin(pm, task, "load", "keyed")
    no = refused(pm.propose, task.id, "submit", {"text": "bad"}, by="worker-1", epoch=task.epoch)
    assert (no.code, no.failed[0]["operation"]) == ("operation_in_doubt", begun.operation.id)
    assert pm.get(task.id).state == "work"
    pm.finish(begun.operation.id, "succeeded", by="worker-1", epoch=task.epoch)
    assert refused(pm.propose, task.id, "submit", {"text": "bad"}, by="worker-1", epoch=task.epoch).code == "evidence_failed"
    assert pm.get(task.id).state == "filed"


@pytest.mark.parametrize("kind", ["repeatable", "keyed"])
def test_a_new_owner_begins_again_what_may_be_done_twice(pm: Pointsman, clock: FakeClock, task: Task, kind: Any) -> None:
    first = begin(pm, task, "charge", kind, {"cents": 5})
    later = replaced(pm, clock)
    told = begin(pm, later, "charge", kind, {"cents": 5})
    assert (told.standing, told.known, told.operation.id) == ("in_doubt", True, first.operation.id)
    assert (told.operation.attempt, told.operation.epoch, told.operation.begun_by) == (2, later.epoch, "worker-2")
    assert begin(pm, later, "charge", kind, {"cents": 5}).standing == "started"
    assert pm.finish(first.operation.id, "succeeded", by="worker-2", epoch=later.epoch).standing == "succeeded"


def test_a_lookup_is_believed_only_once_nothing_can_arrive_any_more(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "refund", effect="refund", timeout_s=3600)
    later = replaced(pm, clock)
    assert begin(pm, later, "refund", effect="refund").standing == "in_doubt"
    assert pm.get(task.id).version == later.version, "asking writes nothing"
    no = refused(pm.finish, first.operation.id, "not_done", by="worker-2", epoch=later.epoch)
    assert (no.code, no.refusal.extra["retry_after_s"]) == (
        "operation_in_doubt",
        (first.operation.settles_at - clock.now) // seconds(1) + 1,
    )
    assert iso(first.operation.settles_at) in no.detail
    clock.advance(hours(1))
    last = taken(pm, "worker-3")
    assert pm.finish(first.operation.id, "not_done", by="worker-3", epoch=last.epoch).standing == "not_done"
    again = begin(pm, last, "refund", effect="refund")
    assert (again.standing, again.operation.id, again.operation.attempt) == ("started", first.operation.id, 2)


def test_what_a_lookup_found_is_the_outcome(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "refund", effect="refund")
    later = replaced(pm, clock)
    assert pm.finish(first.operation.id, "succeeded", {"ref": 9}, by="worker-2", epoch=later.epoch).operation.result == {"ref": 9}
    assert pm.propose(task.id, "complete", {"receipt": "9"}, by="worker-2", epoch=later.epoch).state == "done"


def test_what_to_ask_for_waits_for_a_person_who_is_an_operator(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = begin(pm, task, "mail", effect="mail")
    assert refused(pm.finish, first.operation.id, "succeeded", by=OPERATOR).code == "not_owner", "it is under way"
    later = replaced(pm, clock)
    assert begin(pm, later, "mail", effect="mail").standing == "in_doubt"
    for status in ("succeeded", "failed", "not_done"):
        assert refused(pm.finish, first.operation.id, status, by="worker-2", epoch=later.epoch).code == "operation_in_doubt"
    assert refused(pm.finish, first.operation.id, "succeeded", by=AGENT_OPERATOR).code == "not_owner"
    lease = pm.get(task.id).lease
    said = pm.finish(first.operation.id, "not_done", note="the mailbox has none", by=OPERATOR)
    assert (said.standing, said.operation.settled_by, said.operation.note) == ("not_done", "olga", "the mailbox has none")
    assert pm.get(task.id).lease == lease, "only an owner's call renews"


def test_what_a_replaced_owner_says_is_kept_beside_it(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    begun = begin(pm, task, "refund", effect="refund")
    later = replaced(pm, clock)
    no = refused(pm.finish, begun.operation.id, "succeeded", {"ref": 9}, by="worker-1", epoch=task.epoch, note="it went through")
    assert (no.code, no.recorded) == ("lease_lost", False)
    refused(pm.finish, begun.operation.id, "failed", by="stranger", epoch=task.epoch)
    (shown,) = pm.operations(task.id)
    assert shown.standing == "in_doubt"
    assert [(said.by, said.epoch, said.status, said.result, said.note) for said in shown.testimony] == [
        ("worker-1", task.epoch, "succeeded", {"ref": 9}, "it went through")
    ]
    assert pm.get(task.id).version == later.version


def test_every_verb_of_an_owner_asks_for_its_epoch(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    begun = begin(pm, task, "load", "repeatable")
    later = replaced(pm, clock)
    for epoch, code in ((task.epoch, "lease_lost"), (None, "invalid"), (later.epoch + 1, "lease_lost")):
        assert refused(pm.begin, task.id, "more", by="worker-2", epoch=epoch, kind="keyed").code == code
        assert refused(pm.finish, begun.operation.id, "failed", by="worker-2", epoch=epoch).code == code
        assert refused(pm.checkpoint, task.id, {}, by="worker-2", epoch=epoch).code == code
    assert refused(pm.begin, task.id, "more", by="worker-1", epoch=later.epoch, kind="keyed").code == "not_owner"
    assert pm.get(task.id).version == later.version


def test_a_checkpoint_is_numbered_fenced_and_no_entry(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    first = pm.checkpoint(task.id, {"page": 1}, by="worker-1", epoch=task.epoch)
    second = pm.checkpoint(task.id, {"page": 2}, by="worker-1", epoch=task.epoch, expect=1)
    assert (first.number, second.number, second.version, second.epoch) == (1, 2, task.version, task.epoch)
    no = refused(pm.checkpoint, task.id, {"page": 9}, by="worker-1", epoch=task.epoch, expect=1)
    assert no.code == "stale_version"
    later = replaced(pm, clock)
    kept = pm.resume(task.id).checkpoint
    assert kept is not None
    assert (kept.number, kept.data, kept.epoch) == (2, {"page": 2}, task.epoch)
    assert pm.checkpoint(task.id, {"page": 3}, by="worker-2", epoch=later.epoch).number == 3
    assert pm.get(task.id).version == later.version


def test_a_checkpoint_holds_the_task_for_longer(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    clock.advance(minutes(9))
    pm.checkpoint(task.id, None, by="worker-1", epoch=task.epoch)
    clock.advance(minutes(9))
    lease = pm.get(task.id).lease
    assert lease is not None
    assert lease.live


def test_whoever_resumes_gets_the_durable_facts(pm: Pointsman, clock: FakeClock, task: Task) -> None:
    loaded = begin(pm, task, "load", "repeatable").operation
    pm.finish(loaded.id, "succeeded", {"lines": 2}, by="worker-1", epoch=task.epoch)
    refund = begin(pm, task, "refund", effect="refund").operation
    tried = begin(pm, task, "notify", "keyed").operation
    pm.finish(tried.id, "not_done", by="worker-1", epoch=task.epoch)
    pm.checkpoint(task.id, {"at": "paid"}, by="worker-1", epoch=task.epoch, plan=[{"name": "load"}, {"name": "archive", "kind": "keyed"}])
    later = replaced(pm, clock)
    facts = pm.resume(task.id, by="worker-2")
    assert [(item.name, item.result) for item in facts.finished] == [("load", {"lines": 2})]
    assert [(item.id, standing) for item, standing in facts.in_doubt] == [(refund.id, "in_doubt")]
    assert [(item.name, item.kind, item.why) for item in facts.pending] == [
        ("notify", "keyed", "not_done"),
        ("mail", "ask", "declared"),
        ("archive", "keyed", "planned"),
    ]
    assert facts.checkpoint is not None
    assert facts.checkpoint.data == {"at": "paid"}
    assert (facts.task.epoch, facts.task.allowed) == (later.epoch, ("complete", "drop"))
    assert facts.notes == {"reason": None}
    assert set(facts.deadlines) == {"lease", "operation refund"}


def test_operations_are_read_page_by_page(pm: Pointsman, task: Task) -> None:
    names = [f"step {number}" for number in range(5)]
    for name in names:
        begin(pm, task, name, "repeatable")
    first = pm.operations(task.id, limit=3)
    rest = pm.operations(task.id, limit=3, after=first[-1].operation.id)
    assert (len(first), len(rest)) == (3, 2)
    assert sorted(shown.operation.name for shown in (*first, *rest)) == names


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"name": ""}, "name"),
        ({"name": "a", "kind": "hope"}, "kind"),
        ({"name": "a", "kind": 5}, "kind"),
        ({"name": "a", "kind": "keyed", "timeout_s": 0}, "timeout_s"),
        ({"name": "a", "kind": "keyed", "timeout_s": 86_401}, "timeout_s"),
        ({"name": "a", "kind": "keyed", "settle_s": -1}, "settle_s"),
        ({"name": "a", "kind": "keyed", "request": float("nan")}, "request"),
        ({"name": "a", "kind": "keyed", "request": {"x": "\ud800"}}, "request.x"),
        ({"name": "a", "kind": "keyed", "compensates": "no id"}, "compensates"),
    ],
)
def test_a_wrong_intent_is_said_so_with_its_path(pm: Pointsman, task: Task, given: dict[str, Any], path: str) -> None:
    no = refused(pm.begin, task.id, by="worker-1", epoch=task.epoch, **given)
    assert (no.code, no.failed[0]["path"]) == ("invalid", path)
    assert pm.get(task.id).version == task.version


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"data": float("inf")}, "data"),
        ({"data": 1, "plan": "x"}, "plan"),
        ({"data": 1, "plan": [{"name": "a", "kind": "hope"}]}, "plan[0].kind"),
        ({"data": 1, "plan": [{}]}, "plan[0].name"),
        ({"data": 1, "plan": [{"name": "a", "when": 1}]}, "plan[0].when"),
        ({"data": 1, "plan": [3]}, "plan[0]"),
        ({"data": 1, "plan": [{"name": "a"}] * 1001}, "plan"),
        ({"data": 1, "plan": [{"name": "a"}, {"name": "a", "kind": "keyed"}]}, "plan"),
        ({"data": 1, "plan": [{"name": "a", "\ud800" * 5_000: 1}]}, "plan[0].(key)"),
        ({"data": 1, "expect": -0.5}, "expect"),
    ],
)
def test_a_wrong_checkpoint_is_said_so_with_its_path(pm: Pointsman, task: Task, given: dict[str, Any], path: str) -> None:
    no = refused(pm.checkpoint, task.id, by="worker-1", epoch=task.epoch, **given)
    assert (no.code, no.failed[0]["path"]) == ("invalid", path)
    assert pm.resume(task.id).checkpoint is None


def test_nothing_is_begun_on_a_task_that_is_over_or_parked(pm: Pointsman, task: Task) -> None:
    pm.propose(task.id, "drop", by="worker-1", epoch=task.epoch)
    assert refused(begin, pm, task, "load", "repeatable").code == "wrong_state"
    assert refused(pm.checkpoint, task.id, 1, by="worker-1", epoch=task.epoch).code == "wrong_state"


def test_an_unknown_operation_is_said_so(pm: Pointsman) -> None:
    no = refused(pm.finish, "01900000-0000-7000-8000-000000000000", "failed", by="worker-1", epoch=1)
    assert no.code == "unknown_operation"


def test_so_many_may_be_under_way_at_once(pm: Pointsman, task: Task) -> None:
    for number in range(100):
        begin(pm, task, f"step {number}", "keyed")
    no = refused(begin, pm, task, "one more", "keyed")
    assert (no.code, len(no.failed)) == ("operation_in_doubt", 100)
