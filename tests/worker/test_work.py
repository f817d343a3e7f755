"""What a handler can do: steps that are remembered, effects by the rule of their kind, checkpoints, and ends as values."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from pointsman import (
    AsyncWork,
    Cancel,
    Defer,
    Done,
    EffectFailed,
    Fail,
    Found,
    NotFound,
    NotSent,
    Outcome,
    Pointsman,
    Principal,
    Refused,
    Task,
    Unknown,
    Work,
    Worker,
)
from pointsman.errors import StoreError
from pointsman.testing import FakeClock
from pointsman.types import minutes, seconds
from pointsman.worker.effects import slack_s
from pointsman.worker.outcomes import End, Lost, Waits
from pointsman.worker.owned import POINTS
from pointsman.worker.worker import Ended
from worker.jobs import Seconds
from worker.payments import Payments, Remote

ME, OTHER = "worker-a", "worker-b"
OLGA = Principal("olga", kind="person")


@dataclass
class World:
    """One task, and a worker whose handler is given anew for every attempt."""

    pm: Pointsman
    clock: FakeClock
    remote: Remote = field(default_factory=Remote)
    passed: list[str] = field(default_factory=list[str])
    handler: Callable[[Work], object] = lambda work: None

    def __post_init__(self) -> None:
        self.worker = Worker(self.pm, clock=Seconds(self.clock), probe=self.passed.append)
        self.worker.on("payments")(lambda work: self.handler(work))
        self.ends: list[Ended] = []
        self.worker.told = self.ends.append
        self.id = self.pm.create("payments", {"order": "A-1", "amount": 12}, by="ann").id

    def attempt(self, handler: Callable[[Work], object]) -> End:
        """What comes of calling a handler with the task, which somebody must be able to claim now."""
        self.handler = handler
        assert self.worker.run_once(ME), "the task cannot be claimed now"
        return self.ends[-1].end

    def rests(self) -> None:
        assert not self.worker.run_once(ME)

    def pay(self, name: str, **how: Any) -> Callable[[Work], Outcome]:
        def handler(work: Work) -> Outcome:
            receipt = work.effect(name, self.remote.send, find=self.remote.find, **how)
            return work.propose("complete", {"receipt": receipt})

        return handler

    @property
    def task(self) -> Task:
        return self.pm.get(self.id)

    @property
    def counted(self) -> tuple[int, int, int]:
        attempts = self.task.attempts
        return attempts.lost, attempts.error, attempts.deferred


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def world(url: str, clock: FakeClock) -> Iterator[World]:
    with Pointsman(url, [Payments], clock=clock) as pm:
        yield World(pm, clock)
        assert pm.verify().ok


# ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_step_is_answered_and_not_run(world: World) -> None:
    runs: list[int] = []

    def load(order: str) -> dict[str, Any]:
        runs.append(1)
        return {"order": order, "lines": [1, 2.5, None]}

    def handler(work: Work) -> Fail:
        assert work.step("load", load, "A-1") == work.step("load", load, "A-1") == {"order": "A-1", "lines": [1, 2.5, None]}
        return Fail("not yet")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    world.attempt(handler)
    assert runs == [1], "nor under the next owner"
    assert [entry.kind for entry in world.pm.history(world.id)] == ["create", "acquire", "remember", "release", "acquire", "release"]


def test_a_step_that_raised_is_run_again(world: World) -> None:
    answers: list[Any] = []

    def handler(work: Work) -> None:
        with pytest.raises(ZeroDivisionError):
            work.step("divide", lambda: 1 // 0)
        answers.append(work.step("divide", lambda: 7))

    world.attempt(handler)
    assert answers == [7]


def test_a_name_stands_for_one_request_whoever_knows_the_answer(world: World) -> None:
    def handler(work: Work) -> Fail:
        work.step("add", lambda n: n + 1, 1)
        with pytest.raises(Refused, match="begun with another request") as no:
            work.step("add", lambda n: n + 1, 2)
        assert no.value.code == "idempotency_conflict"
        work.effect("send", world.remote.send, kind="keyed", request={"n": 1})
        for _ in range(2):
            with pytest.raises(Refused, match="begun with another request"):
                work.step("send", lambda: 3)
        return Fail("not yet")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    world.attempt(handler)
    assert world.counted == (0, 2, 0)


@pytest.mark.parametrize(("args", "answer"), [((object(),), 1), ((), object()), ((float("nan"),), 1)])
def test_what_a_step_is_asked_and_what_it_answers_is_json(world: World, args: tuple[Any, ...], answer: Any) -> None:
    def handler(work: Work) -> None:
        with pytest.raises(Refused) as no:
            work.step("load", lambda *_: answer, *args)
        assert no.value.code == "invalid"

    world.attempt(handler)
    assert world.pm.operations(world.id) == []


def test_what_somebody_else_began_is_remembered_once_it_is_done(world: World) -> None:
    """A step that was begun by the ledger's own verbs, and whose owner died."""

    def begins(work: Work) -> Fail:
        world.pm.begin(work.task.id, "load", kind="repeatable", request=[], by=ME, epoch=work.task.epoch)
        return Fail("died")

    world.attempt(begins)
    world.clock.advance(minutes(60))
    answers: list[Any] = []
    world.attempt(lambda work: answers.append(work.step("load", lambda: 7)))
    operation = world.pm.operations(world.id)[0].operation
    assert (answers, operation.status, operation.attempt) == ([7], "succeeded", 2)
    assert world.task.begun == ()


# ── effects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["keyed", "lookup", "ask"])
def test_an_effect_is_sent_once_with_the_fields_that_were_declared(world: World, name: str) -> None:
    end = world.attempt(world.pay(name))
    assert isinstance(end, Done)
    assert world.remote.requests == [{"order": "A-1"} if name == "ask" else {"order": "A-1", "amount": 12}]
    assert (world.task.state, world.task.fields["receipt"], world.remote.looked) == ("paid", "receipt 1", 0)
    assert [entry.kind for entry in world.pm.history(world.id)] == ["create", "acquire", "begin", "settle", "event"]


def test_an_effect_that_is_finished_is_answered_and_not_sent(world: World) -> None:
    def handler(work: Work) -> Fail:
        assert work.effect("keyed", world.remote.send) == "receipt 1"
        return Fail("not yet")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    world.attempt(handler)
    assert len(world.remote.got) == 1


def broken(world: World, name: str, **how: Any) -> None:
    """The remote got it, and nobody heard that."""
    world.remote.broken = ConnectionError("cut")
    assert world.attempt(world.pay(name, **how)) == Fail("the handler raised ConnectionError: cut")
    world.remote.broken = None
    assert world.pm.operations(world.id)[0].standing == "in_doubt"
    world.clock.advance(seconds(30))


def test_what_is_keyed_is_sent_again_under_the_same_id(world: World) -> None:
    broken(world, "keyed")
    world.clock.advance(minutes(1))
    assert isinstance(world.attempt(world.pay("keyed")), Done)
    assert len(world.remote.got) == 2
    assert len(set(world.remote.got)) == 1


def test_what_is_looked_up_and_found_is_not_sent_again(world: World) -> None:
    broken(world, "lookup")
    world.clock.advance(minutes(1))
    world.remote.knows = lambda operation: Found(f"found {operation.request['order']}")  # type: ignore[index]
    assert isinstance(world.attempt(world.pay("lookup")), Done)
    assert (len(world.remote.got), world.task.fields["receipt"]) == (1, "found A-1")


@pytest.mark.parametrize("answer", [NotFound, NotFound()])
def test_not_found_counts_only_once_the_sender_gave_up_and_it_settled(world: World, answer: Any) -> None:
    broken(world, "lookup")
    operation = world.pm.operations(world.id)[0].operation
    assert operation.deadline - operation.begun_at == seconds(60 + slack_s(60))
    world.clock.advance(minutes(1))
    world.remote.knows = lambda _: answer
    end = world.attempt(world.pay("lookup"))
    assert isinstance(end, Defer)
    assert (len(world.remote.got), world.remote.looked, world.counted) == (1, 1, (0, 1, 1))
    world.clock.now = operation.settles_at - 1
    world.rests()
    assert world.remote.looked == 1, "nobody looks before that"
    world.clock.advance(seconds(1))
    assert isinstance(world.attempt(world.pay("lookup")), Done)
    assert len(world.remote.got) == 2
    assert len(set(world.remote.got)) == 1


@pytest.mark.parametrize("answer", [Unknown, Unknown()])
def test_unknown_stays_in_doubt_and_is_looked_at_later(world: World, answer: Any) -> None:
    broken(world, "lookup")
    world.clock.advance(minutes(60))
    world.remote.knows = lambda _: answer
    assert isinstance(world.attempt(world.pay("lookup")), Defer)
    assert world.pm.operations(world.id)[0].standing == "in_doubt"
    world.clock.advance(seconds(59))
    world.rests()
    world.clock.advance(seconds(2))
    world.remote.knows = lambda _: Found("found")
    assert isinstance(world.attempt(world.pay("lookup")), Done)
    assert len(world.remote.got) == 1


def test_what_find_answers_otherwise_is_an_error_and_sends_nothing(world: World) -> None:
    broken(world, "lookup")
    world.clock.advance(minutes(60))
    world.remote.knows = lambda _: None  # type: ignore[assignment,return-value]
    end = world.attempt(world.pay("lookup"))
    assert isinstance(end, Fail)
    assert "find answers Found(result), NotFound or Unknown" in end.reason
    assert len(world.remote.got) == 1


def test_what_only_a_person_knows_waits_for_one(world: World) -> None:
    broken(world, "ask")
    world.clock.advance(minutes(1))
    end = world.attempt(world.pay("ask"))
    assert isinstance(end, Waits)
    assert (world.counted, world.task.owner) == ((0, 1, 1), None)
    assert world.pm.history(world.id)[-1].reason == "operation ask is in doubt: a person with role operator says what happened"
    world.clock.advance(minutes(60))
    world.rests()
    world.pm.finish(end.operation.id, "succeeded", "by hand", by=OLGA)
    assert isinstance(world.attempt(world.pay("ask")), Done)
    assert (len(world.remote.got), world.task.fields["receipt"]) == (1, "by hand")


def test_what_a_person_says_was_not_done_is_sent(world: World) -> None:
    broken(world, "ask")
    world.clock.advance(minutes(1))
    end = world.attempt(world.pay("ask"))
    assert isinstance(end, Waits)
    world.pm.finish(end.operation.id, "not_done", by=OLGA)
    assert isinstance(world.attempt(world.pay("ask")), Done)
    assert len(world.remote.got) == 2


def again(work: Work, world: World, name: str) -> Any:
    """The same effect once more, in the same hands, behind a send that was cut."""
    world.remote.broken = ConnectionError("cut")
    with pytest.raises(ConnectionError):
        work.effect(name, world.remote.send, find=world.remote.find)
    world.remote.broken = None
    return work.effect(name, world.remote.send, find=world.remote.find)


def test_what_the_same_owner_began_is_in_doubt_too(world: World) -> None:
    assert world.attempt(lambda work: again(work, world, "lookup")) == Defer("operation lookup may still arrive", 667.0)
    world.clock.advance(minutes(12))
    world.remote.knows = lambda _: Found("found")
    assert world.attempt(lambda work: work.effect("lookup", world.remote.send, find=world.remote.find)) is None
    assert len(world.remote.got) == 1
    world.clock.advance(minutes(60))
    assert world.attempt(lambda work: again(work, world, "keyed")) is None
    assert len(world.remote.got) == 3
    world.clock.advance(minutes(60))
    assert isinstance(world.attempt(lambda work: again(work, world, "ask")), Waits)
    assert len(world.remote.got) == 4


def test_what_was_not_sent_is_not_in_doubt(world: World) -> None:
    world.remote.broken = NotSent("no route", rest_s=90)
    assert world.attempt(world.pay("lookup")) == Defer("nothing was sent: no route", 90)
    assert (world.pm.operations(world.id)[0].standing, world.counted) == ("not_done", (0, 0, 1))
    world.clock.advance(seconds(89))
    world.rests()
    world.clock.advance(seconds(2))
    world.remote.broken = None
    assert isinstance(world.attempt(world.pay("lookup")), Done)
    assert world.remote.looked == 0


def test_that_nothing_was_sent_now_says_nothing_of_an_earlier_attempt(world: World) -> None:
    broken(world, "keyed")
    world.clock.advance(minutes(1))
    world.remote.broken = NotSent("no route")
    assert isinstance(world.attempt(world.pay("keyed")), Defer)
    assert world.pm.operations(world.id)[0].standing == "in_doubt"


def test_what_the_remote_refused_for_good_is_never_sent_again(world: World) -> None:
    world.remote.broken = EffectFailed({"code": "card_declined"})
    said: list[Any] = []

    def handler(work: Work) -> Fail:
        for _ in range(2):
            with pytest.raises(EffectFailed) as no:
                work.effect("lookup", world.remote.send, find=world.remote.find)
            said.append(no.value.result)
        return Fail("declined")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    world.attempt(handler)
    assert (said, len(world.remote.got)) == ([{"code": "card_declined"}] * 4, 1)


def test_a_result_that_cannot_be_kept_leaves_nothing_in_doubt(world: World) -> None:
    def handler(work: Work) -> object:
        return work.effect("keyed", lambda _: {1, 2})

    end = world.attempt(handler)
    (shown,) = world.pm.operations(world.id)
    assert isinstance(end, Fail)
    assert (shown.standing, shown.operation.result) == ("succeeded", None)
    assert "could not be kept" in world.pm.history(world.id)[-2].as_json()["changes"]["operation"]["note"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"name": None}, "name"),
        ({"timeout_s": "long"}, "timeout_s"),
        ({"timeout_s": 0.5}, "timeout_s"),
        ({"timeout_s": float("nan")}, "timeout_s"),
        ({"timeout_s": 86_400}, "timeout_s"),
        ({"send": None}, "send"),
    ],
)
def test_what_no_effect_takes_is_told_before_anything_is_begun(world: World, given: dict[str, Any], path: str) -> None:
    said: list[Any] = []

    def handler(work: Work) -> None:
        with pytest.raises(Refused) as no:
            work.effect(**{"name": "keyed", "send": world.remote.send, **given})
        said.extend(no.value.failed)

    world.attempt(handler)
    assert ([fault["path"] for fault in said], world.pm.operations(world.id)) == ([path], [])


def test_a_lookup_effect_needs_somebody_to_ask(world: World) -> None:
    def handler(work: Work) -> None:
        for given in ({"name": "lookup"}, {"name": "other", "kind": "lookup", "request": 1}):
            with pytest.raises(Refused, match="give find="):
                work.effect(send=world.remote.send, **given)  # type: ignore[arg-type]
        with pytest.raises(Refused, match="declares no such effect"):
            work.effect("other", world.remote.send)

    world.attempt(handler)
    assert (world.remote.got, world.pm.operations(world.id)) == ([], [])


# ── leases ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_lease_that_is_too_short_is_renewed_before_anything_is_sent_and_for_as_long_at_every_renewal(world: World) -> None:
    lefts: list[float] = []

    def left() -> None:
        lease = world.task.lease
        assert lease is not None
        lefts.append((lease.expires_at - world.clock.now) / seconds(1))

    def send(_: object) -> str:
        left()
        world.clock.advance(seconds(5))
        assert world.worker.keeper is not None
        world.worker.keeper.renew_once()
        left()
        return "sent"

    def handler(work: Work) -> Outcome:
        work.propose("hurry")
        receipt = work.effect("keyed", send, timeout_s=20)
        left()
        return work.propose("complete", {"receipt": receipt})

    assert isinstance(world.attempt(handler), Done)
    assert lefts == [25, 25, 10]


def test_what_no_lease_outlasts_is_not_sent(world: World) -> None:
    def handler(work: Work) -> object:
        work.propose("hurry")
        return work.effect("keyed", world.remote.send, timeout_s=60)

    end = world.attempt(handler)
    assert end == Fail("operation keyed was not sent: the lease does not outlast its 60 seconds")
    assert (world.remote.got, world.pm.operations(world.id)[0].standing) == ([], "not_done")


def test_what_is_held_without_a_lease_cannot_be_lost(world: World) -> None:
    def handler(work: Work) -> None:
        work.propose("wait")
        work.effect("keyed", world.remote.send, timeout_s=600)

    world.attempt(handler)
    assert len(world.remote.got) == 1


def test_a_sender_that_was_held_up_behind_its_intent_does_not_send(world: World) -> None:
    """Its deadline would be later than the one that was written down."""
    world.worker._probe = lambda point: world.clock.advance(seconds(8)) if point == "intent.after" else None  # pyright: ignore[reportPrivateUsage]
    end = world.attempt(world.pay("lookup"))
    assert isinstance(end, Fail)
    assert (world.remote.got, world.pm.operations(world.id)[0].standing) == ([], "not_done")


CALLS: dict[str, Callable[[Work], object]] = {
    "propose": lambda work: work.propose("complete", {"receipt": "x"}),
    "step": lambda work: work.step("load", lambda: 1),
    "effect": lambda work: work.effect("keyed", lambda _: pytest.fail("sent")),
    "checkpoint": lambda work: work.checkpoint({"page": 1}),
    "progress": lambda work: work.progress({"page": 1}),
    "resume": lambda work: work.resume(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_handler_whose_lease_is_lost_goes_no_further(world: World, call: str) -> None:
    after: list[str] = []

    def handler(work: Work) -> None:
        world.clock.advance(minutes(6))
        assert world.pm.claim("payments", by=OTHER, id=work.task.id) is not None
        assert world.worker.keeper is not None
        world.worker.keeper.run_once()
        try:
            CALLS[call](work)
        except Exception:  # noqa: BLE001 - a handler that catches whatever goes wrong
            after.append("caught")
        after.append("went on")

    end = world.attempt(handler)
    assert isinstance(end, Lost)
    assert (end.refusal.code, after) == ("lease_lost", [])
    task = world.task
    assert (task.owner, task.state, task.version) == (OTHER, "paying", 4)


def test_a_worker_stops_by_its_own_clock_before_its_lease_ends(world: World) -> None:
    """The store owes an answer, so nobody knows whether the lease was renewed. It comes back, and that is too late."""
    ran: list[str] = []

    def handler(work: Work) -> None:
        assert world.worker.keeper is not None
        work.step("load", lambda: ran.append("load"))
        lease = world.task.lease
        for _ in range(299):
            world.clock.advance(seconds(1))
            world.worker.keeper.watch_once()
        assert work.lost is not None
        assert lease is not None
        assert lease.expires_at > world.clock.now
        work.step("more", lambda: ran.append("more"))

    end = world.attempt(handler)
    assert isinstance(end, Lost)
    assert ("does not answer" in end.reason, ran, world.task.version) == (True, ["load"], 3)


def test_one_that_is_not_told_yet_learns_it_from_the_store(world: World) -> None:
    for call in ("propose", "step", "effect", "checkpoint"):

        def handler(work: Work, call: str = call) -> None:
            world.clock.advance(minutes(6))
            taken = world.pm.claim("payments", by=OTHER, id=work.task.id)
            assert taken is not None
            try:
                CALLS[call](work)
            finally:
                assert world.pm.get(work.task.id).version == taken.version
                world.pm.release(taken.id, by=OTHER, epoch=taken.epoch, counts=False)

        assert isinstance(world.attempt(handler), Lost)


@pytest.mark.parametrize("told", [True, False], ids=["told before", "not told yet"])
def test_what_comes_of_a_send_after_its_owner_was_replaced_is_testimony(world: World, told: bool) -> None:
    def send(_: object) -> str:
        world.clock.advance(minutes(6))
        assert world.pm.claim("payments", by=OTHER, id=world.id) is not None
        assert world.worker.keeper is not None
        if told:
            world.worker.keeper.run_once()
        return "late"

    assert isinstance(world.attempt(lambda work: work.effect("keyed", send)), Lost)
    shown = world.pm.operations(world.id)[0]
    assert (shown.standing, [said.result for said in shown.testimony]) == ("in_doubt", ["late"])


# ── checkpoints ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_checkpoint_is_there_for_the_next_owner_with_what_is_finished(world: World) -> None:
    def handler(work: Work) -> Fail:
        work.progress({"done": 0})
        assert work.checkpoint({"page": 2}, plan=[{"name": "archive", "kind": "keyed"}]).number == 2
        work.step("load", lambda: 7)
        assert work.progress({"done": 50}).number == 3
        return Fail("died")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    seen: list[Any] = []

    def resumes(work: Work) -> None:
        work.progress({"done": 51})
        found = work.resume()
        assert found.checkpoint is not None
        seen.append((found.checkpoint.data, found.checkpoint.progress, [item.name for item in found.finished]))
        seen.append([item.name for item in found.pending if item.why == "planned"])
        assert "complete" in found.task.allowed

    world.attempt(resumes)
    assert seen == [({"page": 2}, {"done": 51}, ["load"]), ["archive"]]


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_handler_that_puts_its_task_off_costs_no_attempt(world: World, clock: FakeClock) -> None:
    world.attempt(lambda work: work.defer("the provider is down", seconds=60))
    assert (world.counted, world.pm.history(world.id)[-1].reason) == ((0, 0, 1), "the provider is down")
    clock.advance(seconds(59))
    world.rests()
    clock.advance(seconds(2))
    until = clock.now + minutes(5)
    world.attempt(lambda work: work.defer("it opens then", until=until))
    assert world.task.run_at == until
    clock.now = until - 1
    world.rests()
    clock.now = until
    world.attempt(lambda work: None)


@pytest.mark.parametrize(("rest_s", "until"), [(-1.0, None), (None, "tomorrow"), (1.0, 5), (1e9, None), ("soon", None)])
def test_a_time_that_cannot_be_read_is_an_error_of_the_handler(world: World, rest_s: Any, until: Any) -> None:
    world.attempt(lambda work: Defer("later", rest_s, until))
    assert world.counted == (0, 1, 0)


@pytest.mark.parametrize("outcome", [Defer(None), Defer(5), Fail(None), Fail("")])  # type: ignore[arg-type]
def test_a_reason_that_is_none_holds_no_task(world: World, outcome: Outcome) -> None:
    world.attempt(lambda work: outcome)
    assert world.task.owner is None
    assert world.pm.history(world.id)[-1].reason


@pytest.mark.parametrize("reason", ["", " ", None, 5])
def test_a_cancellation_without_words_is_one(world: World, reason: Any) -> None:
    world.attempt(lambda work: Cancel(reason))
    assert (world.task.state, bool(world.pm.history(world.id)[-1].reason)) == ("dropped", True)


def test_a_handler_that_cancels_ends_the_task(world: World) -> None:
    world.attempt(lambda work: Cancel("nobody wants it"))
    assert (world.task.state, world.pm.history(world.id)[-1].reason) == ("dropped", "nobody wants it")


def test_an_end_of_what_is_not_held_any_more_changes_nothing(world: World) -> None:
    def handler(outcome: Outcome) -> Callable[[Work], Outcome]:
        def ends(work: Work) -> Outcome:
            work.propose("complete", {"receipt": "x"})
            return outcome

        return ends

    for outcome in (Fail("x"), Defer("x", 5), Cancel("x")):
        world.attempt(handler(outcome))
        assert (world.task.state, world.pm.history(world.id)[-1].event) == ("paid", "complete")
        world.id = world.pm.create("payments", {"order": "A-1", "amount": 12}, by="ann").id


def test_a_store_that_is_away_behind_a_send_leaves_it_in_doubt(world: World) -> None:
    def probe(point: str) -> None:
        if point == "outcome.before":
            raise StoreError("store_unavailable", "away")

    world.worker._probe = probe  # pyright: ignore[reportPrivateUsage]
    assert isinstance(world.attempt(world.pay("lookup")), Fail)
    assert (len(world.remote.got), world.pm.operations(world.id)[0].standing) == (1, "in_doubt")


def test_every_point_is_passed(world: World) -> None:
    def handler(work: Work) -> Fail:
        work.effect("keyed", lambda _: work.step("load", lambda: 1))
        return Fail("not yet")

    world.attempt(handler)
    world.clock.advance(minutes(60))
    world.remote.broken = ConnectionError("cut")
    world.attempt(world.pay("lookup"))
    world.clock.advance(minutes(60))
    world.remote.knows = lambda _: Found("found")
    world.attempt(world.pay("lookup"))
    assert set(world.passed) == set(POINTS)


# ── async ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_async_handler_awaits_the_same(world: World) -> None:
    async def load(order: str) -> str:
        return f"loaded {order}"

    async def send(operation: Any) -> str:
        return world.remote.send(operation)

    loaded: list[str] = []
    worker = Worker(world.pm, clock=Seconds(world.clock))

    @worker.on("payments")
    async def pay(work: AsyncWork) -> Outcome:
        loaded.append(await work.step("load", load, "A-1"))
        loaded.append(await work.step("plain", lambda: "plain"))
        await work.checkpoint({"at": 1})
        receipt = await work.effect("keyed", send)
        return await work.propose("complete", {"receipt": receipt})

    assert worker.run_once(ME)
    assert (loaded, world.task.state, len(world.remote.got)) == (["loaded A-1", "plain"], "paid", 1)


def test_an_async_handler_is_ended_too(world: World) -> None:
    worker, after = Worker(world.pm, clock=Seconds(world.clock)), list[str]()

    @worker.on("payments")
    async def pay(work: AsyncWork) -> None:
        world.clock.advance(minutes(6))
        assert world.pm.claim("payments", by=OTHER, id=work.task.id) is not None
        try:
            await work.step("load", lambda: 1)
        except Exception:  # noqa: BLE001 - a handler that catches whatever goes wrong
            after.append("caught")

    assert worker.run_once(ME)
    assert (after, world.task.owner) == ([], OTHER)


def test_a_plain_handler_runs_no_async_function(world: World) -> None:
    async def load() -> int:
        return 1

    for handler in (lambda work: work.step("load", load), lambda work: work.effect("keyed", lambda _: load())):
        end = world.attempt(handler)
        assert isinstance(end, Fail)
        assert "async handler" in end.reason
        world.clock.advance(minutes(60))
    assert [shown.standing for shown in world.pm.operations(world.id)] == ["not_done"], "nothing of it was run"
