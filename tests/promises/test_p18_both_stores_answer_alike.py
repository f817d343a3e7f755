"""P18: the same calls, under the same clock and chance, get the same answers, codes and hashes from both stores."""

import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import support
from databases import PostgresServer
from pointsman import Effect, Event, Limit, Machine, Pointsman, Refused, Schedule, State, Task, Tasks, Verdict, check, field, owner
from pointsman.engine import duties, ends
from pointsman.engine.timers import Deadlines, Schedules
from pointsman.kernel.deadline import KIND
from pointsman.testing import FakeClock, seeded
from pointsman.types import iso, minutes, seconds

STEPS = 500
SEEDS = range(3)
TEXTS = ["é\U0001f600 İı", "a", "B", "ä", "Z", "%_\\", "''\"", "x" * 300, "zeta\u0301", support.GOOD, support.GOOD + " More.", support.BAD]
NAMES = ["worker-a", "worker-b", "Worker-A", "rita", "saul"]
AHEAD = {
    "claimed": ("start_draft", ()),
    "drafting": ("request_approval", ("draft",)),
    "approved": ("complete", ()),
    "Open": ("write", ("text",)),
}
Answer = tuple[str, Any]


def is_right(text: str) -> Verdict:
    return Verdict("right" in text, "compared")


class Judged(Machine, name="judged"):
    text: str = ""
    number: float | None = None
    Open = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    right = check(is_right)
    take = Event(Open >> Open, acquires=True, limits=Limit("hands", concurrent=1))
    write = Event(Open >> Open, sets=("text", "number"), limits=Limit("writes", per=minutes(6000), max=1))
    finish = Event(Open >> done, by=owner, requires=right)
    drop = Event(Open >> failed)


class Timed(Machine, name="timed"):
    """Tasks come on a schedule, are to be claimed at no more than two an hour, and have a deadline wherever they stand."""

    size: int = 1
    waiting = State(initial=True, deadline=minutes(45), on_deadline="remind")
    work = State(lease=minutes(10), deadline=minutes(60), on_deadline="late")
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    take = Event(waiting >> work, acquires=True, limits=Limit("pace", per=minutes(60), max=2))
    fetch = Effect("fetch", during=work, request="size", kind="keyed")
    send = Effect("send", during=work, request="size", kind="lookup", settle=minutes(5), undo=fetch)
    finish = Event(work >> done, by=owner, limits=Limit("sizes", per=minutes(600), sum=field.size, max=9))
    late = Event(work >> failed)
    drop = Event((waiting | work) >> failed)
    often = Schedule("*/20 * * * *", fields={"size": 3})
    night = Schedule("30 2 * * *", tz="Europe/Berlin", misfire="skip")


class Calls:
    """Random calls, chosen from what the board looked like before each; the same seed makes the same calls."""

    def __init__(self, pm: Pointsman, clock: FakeClock, seed: int):
        self.pm, self.clock, self.chosen = pm, clock, random.Random(seed)

    def next(self) -> Answer:
        self.clock.advance(self.chosen.choice([0, 1, seconds(1), seconds(60), minutes(20)]))
        likely = (self.forward, self.forward, self.forward, self.propose, self.propose)
        call = self.chosen.choice(
            [
                *(self.create, self.claim, *likely, self.decide, self.lease, self.lists, self.past, self.graph, self.graph, self.cancel),
                *(self.hold, self.lift, self.fire, self.fire, self.timed, self.many, self.ledger, self.ledger, self.checkpoint),
            ]
        )
        try:
            return call.__name__, told(call())
        except Refused as refused:
            return call.__name__, refused.refusal.as_json()

    def pick(self, some: list[Any]) -> Any:
        return self.chosen.choice(some)

    def create(self) -> Any:
        fields = {"title": self.pick(TEXTS), "brief": self.pick([*TEXTS, " ", 5])} if self.chosen.random() < 0.7 else {}
        machine = "tasks" if fields else self.pick(["judged", "nonsense"])
        key = self.pick([None, None, f"k{self.chosen.randrange(8)}"])
        terms = {"tags": self.pick([None, ["red"], ["red", "Blue"]]), "needs": self.pick([None, None, ["gpu"]])}
        run_at = self.pick([None, None, self.clock.now + minutes(15), iso(self.clock.now - minutes(15))])
        priority = self.pick([0, 0, 5, -3])
        return self.pm.create(machine, fields, by=self.pick(NAMES), priority=priority, run_at=run_at, idempotency_key=key, **terms)

    def graph(self) -> Any:
        """A task or a batch that waits for others, or is a part of one that its owner holds."""
        board = self.pm.list(limit=1000)
        waits = [{"task": self.pick(board).id, "on_failure": self.pick(["block", "cancel", "continue"])} for _ in board[:2]]
        waits = waits if len({item["task"] for item in waits}) == len(waits) else waits[:1]
        held = [task for task in board if task.owner is not None]
        above = self.pick(held) if held and self.chosen.random() < 0.6 else None
        owner = {} if above is None else {"parent": above.id, "epoch": self.pick([above.epoch, above.epoch, 7])}
        by = self.pick(NAMES) if above is None else self.pick([above.owner, above.owner, "rita"])
        key = self.pick([None, None, f"g{self.chosen.randrange(8)}"])
        if self.chosen.random() < 0.5:
            fields, known = {"text": self.pick(TEXTS)}, self.pick([None, "d1", "d2"])
            return self.pm.create("judged", fields, by=by, blocked_by=waits, dedupe_key=known, idempotency_key=key, **owner)
        item = {"ref": "a", "fields": {}, "blocked_by": waits}
        rest = [{"fields": {}, "blocked_by": [{"task": self.pick(["#a", "#b"])}]}, {"fields": {}, "dedupe_key": self.pick(["d3", None])}]
        join = self.pick([None, "all", "any", 2]) if above else None
        return self.pm.create_batch([*rest, item], by=by, machine="judged", join=join, idempotency_key=key, **owner)

    def cancel(self) -> Any:
        task = self.task()
        if task is None:
            return None
        by, cascade, key = self.pick(NAMES), self.chosen.random() < 0.5, self.pick([None, f"x{self.chosen.randrange(5)}"])
        return self.pm.cancel(
            task.id, by=by, reason=self.pick(["no", " "]), cascade=cascade, epoch=self.pick([None, task.epoch]), idempotency_key=key
        )

    def claim(self) -> Any:
        machine, by = self.pick(["tasks", "tasks", "judged", "timed"]), self.pick(NAMES)
        waiting = [task for task in self.pm.list(open=True, limit=1000) if task.blocked_by]
        wanted = self.pick([None, None, None, self.task(), *waiting[:1]])
        machine = wanted.machine if wanted and self.chosen.random() < 0.8 else machine
        key = self.pick([None, None, f"c{self.chosen.randrange(8)}"])
        asked = {"tags": self.pick([None, None, ["red"]]), "capabilities": self.pick([None, ["gpu"]])}
        return self.pm.claim(machine, by=by, id=wanted and wanted.id, idempotency_key=key, **asked)

    def many(self) -> Any:
        """Some made, taken or moved on together."""
        machine, by, tags = self.pick(["tasks", "judged"]), self.pick(NAMES), self.pick([None, None, ["red"]])
        if self.chosen.random() < 0.3:
            fields = [{"title": self.pick(TEXTS), "brief": self.pick(TEXTS)} if machine == "tasks" else {} for _ in range(3)]
            key = self.pick([None, None, f"m{self.chosen.randrange(5)}"])
            return self.pm.create_many(machine, fields, by=by, tags=tags, priority=self.pick([0, 4]), idempotency_key=key)
        if self.chosen.random() < 0.5:
            return self.pm.claim_many(machine, self.pick([1, 3, 20]), by=by, tags=tags, capabilities=self.pick([None, ["gpu"]]))
        board = self.pm.list(limit=1000)
        parts = [(task.id, self.pick([task.epoch, task.epoch, None, 7]), {}) for task in self.chosen.sample(board, min(5, len(board)))]
        event = self.pick(["drop", "finish", "start_draft", "take", "claim", "write"])
        return self.pm.finish_many(event, parts, by=by) if parts else None

    def task(self) -> Task | None:
        board = self.pm.list(limit=1000)
        return self.pick(board) if board else None

    def propose(self) -> Any:
        task = self.task()
        if task is None:
            return None
        event = self.pick(list(self.pm.machines[task.machine].event))
        args = {
            "request_approval": {"draft": self.pick(TEXTS)},
            "write": {"text": self.pick([*TEXTS, "right"]), "number": self.pick([1.5, 1e300, None])},
        }
        by = self.pick([task.owner or "worker-a", self.pick(NAMES)])
        given = {"epoch": self.pick([task.epoch, task.epoch, None, 7]), "expect_version": self.pick([None, None, task.version, 1])}
        key = self.pick([None, None, f"p{self.chosen.randrange(20)}"])
        return self.pm.propose(task.id, event, args.get(event, {}), by=by, idempotency_key=key, dry_run=self.chosen.random() < 0.1, **given)

    def forward(self) -> Any:
        """An owner's next step, as it should be."""
        held = [task for task in self.pm.list(open=True, limit=1000) if task.owner is not None and task.state in AHEAD]
        if not held:
            return self.claim()
        task = self.pick(held)
        event, fields = AHEAD[task.state]
        args = {name: self.pick(TEXTS) for name in fields}
        return self.pm.propose(task.id, event, args, by=task.owner, epoch=task.epoch)

    def lease(self) -> Any:
        """Renew or give back, by the owner or somebody else, in time or too late."""
        task = self.task()
        if task is None:
            return None
        by, epoch = self.pick([task.owner or "rita", *NAMES]), self.pick([task.epoch, task.epoch, 7])
        if self.chosen.random() < 0.5:
            return self.pm.renew(task.id, by=by, epoch=epoch)
        return self.pm.release(task.id, by=by, epoch=epoch, reason=self.pick([None, "tired"]), idempotency_key=self.pick([None, "r1"]))

    def decide(self) -> Any:
        waiting = self.pm.list(state="awaiting_approval")
        if not waiting:
            return None
        task = self.pick(waiting)
        digest = self.pick([task.digest, task.digest, "0" * 64])
        return self.pm.propose(task.id, self.pick(["approve", "reject"]), {"note": self.pick(TEXTS)}, by=self.pick(NAMES), digest=digest)

    def lists(self) -> Any:
        order = self.pick(["created_at", "updated_at", "priority"])
        state = self.pick([None, "queued", ["queued", "drafting"], ["Open"], ["open"], []])
        page = self.pm.list(
            order=order, state=state, open=self.pick([None, True]), owner=self.pick([None, *NAMES]), limit=self.pick([1, 5, None])
        )
        inbox = self.pm.list(machine="tasks", inbox=self.pick(NAMES))
        words = self.pm.list(q=self.pick(["É", "release SCHEDULER", "%", "ı"]))
        return page, inbox, words, self.pm.list(order=order, after=page[-1], limit=3) if page else []

    def hold(self) -> Any:
        """A stop on something, for a while; now and then by somebody, or with a reason, that will not do."""
        match = self.pick([{"tag": "red"}, {"machine": "timed", "event": "take"}, {"state": "work"}, {"event": "approve"}, {}])
        start = self.pick([None, None, self.clock.now + minutes(5), self.clock.now - minutes(5)])
        until = self.pick([None, self.clock.now + minutes(10), self.clock.now + minutes(30)])
        reason, rate = self.pick(["provider down", "no", " "]), self.pick([None, 1, 5])
        return self.pm.hold(match, by=self.pick(["olga", "rita"]), reason=reason, start=start, until=until, release_per_s=rate)

    def lift(self) -> Any:
        placed = self.pm.holds()
        lifted = [self.pm.lift(hold.id, by="olga") for hold in placed if self.chosen.random() < 0.6]
        return lifted, self.pm.holds(limit=2)

    def fire(self) -> Any:
        """What a server does beside answering, as far as it is due."""
        while duties.wake(self.pm.engine):
            pass
        ends.take_over(self.pm.engine)
        Deadlines(self.pm.engine).run_once()
        Schedules(self.pm.engine).run_once()
        return self.pm.list(machine="timed", limit=5), self.pm.history(n=5)

    def timed(self) -> Any:
        """The way of a task of `Timed`, as its limits, holds and deadlines let it."""
        held = [task for task in self.pm.list(machine="timed", state="work", limit=1000) if task.owner is not None]
        if held and self.chosen.random() < 0.5:
            task = self.pick(held)
            return self.pm.propose(task.id, "finish", by=task.owner, epoch=task.epoch)
        waits = self.pm.list(machine="timed", state="waiting", limit=1000)
        wanted = self.pick(waits).id if waits and self.chosen.random() < 0.6 else None
        return self.pm.claim("timed", by=self.pick(NAMES), id=wanted)

    def ledger(self) -> Any:
        """An operation begun, found again or finished, by its owner or somebody else; now and then one that will not do."""
        held = [task for task in self.pm.list(open=True, limit=1000) if task.owner is not None]
        if not held:
            return None
        task = self.pick(held)
        mine = {"by": self.pick([task.owner, task.owner, "rita"]), "epoch": self.pick([task.epoch, task.epoch, task.epoch, 7])}
        key, known = self.pick([None, None, f"o{self.chosen.randrange(8)}"]), self.pm.operations(task.id)
        if task.begun and task.machine == "timed" and self.chosen.random() < 0.3:
            return self.pm.propose(task.id, "finish", **mine)
        if known and self.chosen.random() < 0.6:
            status, result = self.pick(["succeeded", "failed", "not_done"]), self.pick([None, 1.5, {"of": self.pick(TEXTS)}])
            said = self.pick(known).operation.id
            return self.pm.finish(said, status, result, note=self.pick([None, *TEXTS]), idempotency_key=key, **mine)
        if task.machine == "timed" and self.chosen.random() < 0.5:
            effect, name = self.pick([("send", "send"), ("send", "more"), ("send", "more"), ("fetch", "fetch")])
            undone = self.pick([None, None, *(shown.operation.id for shown in known if shown.operation.effect)])
            return self.pm.begin(task.id, name, effect=effect, compensates=undone, idempotency_key=key, **mine)
        kind, name = self.pick(["repeatable", "keyed", "lookup", "ask", None]), self.pick(["load", "store", "tell"])
        undone = self.pick([None, None, *(shown.operation.id for shown in known)])
        request, wait = self.pick([None, {"of": "a"}, 5]), self.pick([None, 30, 0.5])
        return self.pm.begin(task.id, name, kind=kind, request=request, timeout_s=wait, compensates=undone, idempotency_key=key, **mine)

    def checkpoint(self) -> Any:
        task = self.task()
        if task is None:
            return None
        by, expect = self.pick([task.owner or "rita", "rita"]), self.pick([None, None, 0, 1])
        plan = self.pick([(), [{"name": "tidy", "kind": "keyed"}], [{"name": " "}]])
        if self.chosen.random() < 0.4:
            return self.pm.resume(task.id, by=by), self.pm.operations(task.id, limit=2)
        return self.pm.checkpoint(task.id, self.pick(TEXTS), by=by, epoch=task.epoch, plan=plan, progress=0.5, expect=expect)

    def past(self) -> Any:
        seq = self.pm.as_of()
        at = self.pick([f"#{self.chosen.randint(0, seq)}", iso(self.clock.now - seconds(self.chosen.randrange(3000)))])
        audit = self.pm.audit(actor=self.pick([None, *NAMES]), event=self.pick([None, "claim"]), limit=5)
        return self.pm.list(at=at), self.pm.history(n=7), self.pm.feed(self.chosen.randint(0, seq), 5), audit, self.pm.head()


def told(value: Any) -> Any:
    """An answer as plain values, ids and hashes included."""
    if isinstance(value, list | tuple):
        return [told(item) for item in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value


def run(url: str, seed: int) -> tuple[list[Answer], list[Any]]:
    """What every call was answered, and the whole record at the end; the log of refusals is written beside, in its own time."""
    clock = FakeClock()
    with Pointsman(url, [Tasks, Judged, Timed], clock=clock, chance=seeded(seed)) as pm:
        calls = Calls(pm, clock, seed)
        answers = [calls.next() for _ in range(STEPS)]
        assert pm.verify().ok
        return answers, [list(pm.export()), pm.head(), pm.published(), told(pm.figures()), told(pm.verify())]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generated_sequence_of_calls(postgres: PostgresServer, tmp_path: Path, seed: int) -> None:
    answers, record = run(f"sqlite:///{tmp_path}/work.db", seed)
    others, other_record = run(postgres.empty(), seed)
    for step, (one, other) in enumerate(zip(answers, others, strict=True)):
        assert one == other, f"call {step}"
    assert record == other_record


def _codes(answer: Any) -> list[str]:
    """Of a refusal, or of those among the answers to many."""
    told = answer if isinstance(answer, list) else [answer]
    return [item["code"] for item in told if isinstance(item, dict) and "code" in item]


def test_the_sequences_are_worth_comparing(tmp_path: Path) -> None:
    runs = [run(f"sqlite:///{tmp_path}/{seed}.db", seed) for seed in SEEDS]
    codes = {code for answers, _ in runs for _, answer in answers for code in _codes(answer)}
    entries = [line["entry"] for _, record in runs for line in record[0] if "entry" in line]
    events, kinds = {entry["event"] for entry in entries}, {entry["kind"] for entry in entries}
    assert len(entries) > 100 * len(SEEDS)
    assert {"invalid", "wrong_state", "not_owner", "stale_version", "evidence_failed", "unknown_machine", "idempotency_conflict"} <= codes
    assert {"blocked", "dedupe_conflict", "lease_lost", "held", "limit_reached", "operation_in_doubt"} <= codes
    assert {"begin", "settle"} <= kinds
    assert {"cancel", "wait", "late", "remind", "take", "finish"} <= events
    assert KIND in kinds
    assert any(entry["by"] == "scheduler" for entry in entries)


BAD: list[Callable[[Pointsman, Task], object]] = [
    lambda pm, task: pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", dedupe_key="a\0b"),
    lambda pm, task: pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", blocked_by=[{"task": "\ud800"}]),
    lambda pm, task: pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", parent=task.id, epoch=2**63),
    lambda pm, task: pm.create_batch([{"fields": {"title": "\ud800", "brief": "b"}}], by="ann", machine="tasks"),
    lambda pm, task: pm.create_batch([{"fields": {"title": "t", "brief": float("nan")}}], by="ann", machine="tasks"),
    lambda pm, task: pm.cancel(task.id, by="ann", reason="a\0b"),
    lambda pm, task: pm.cancel(task.id, by="ann", reason="x", expect_version=2**63),
    lambda pm, task: pm.create("tasks", {"title": "a\0b", "brief": "b"}, by="ann"),
    lambda pm, task: pm.create("tasks", {"title": "\ud800", "brief": "b"}, by="ann"),
    lambda pm, task: pm.create("tasks", {"title": "t", "brief": "b"}, by="ann", priority=2**63),
    lambda pm, task: pm.get(task.id, version=2**63),
    lambda pm, task: pm.get(task.id, at=2**70),
    lambda pm, task: pm.list(owner="a\0b"),
    lambda pm, task: pm.list(state="a\0b"),
    lambda pm, task: pm.list(at=-(2**70)),
    lambda pm, task: pm.propose(task.id, "fail", by="a" * 1000),
    lambda pm, task: pm.propose(task.id, "fail", {"note": "\0"}, by="ann"),
    lambda pm, task: pm.propose(task.id, "start_draft", by=support.OWNER, expect_version=2**63),
    lambda pm, task: pm.audit(actor="\0"),
    lambda pm, task: pm.audit(start=2**63),
    lambda pm, task: pm.history(before=2**63),
    lambda pm, task: pm.feed(after=2**63),
    lambda pm, task: pm.claim("tasks", by="ann", session="\0"),
    lambda pm, task: pm.list(q="\0"),
    lambda pm, task: pm.list(after=(0, "\0")),
    lambda pm, task: pm.begin(task.id, "a\0b", by=support.OWNER, epoch=task.epoch, kind="keyed"),
    lambda pm, task: pm.begin(task.id, "a", by=support.OWNER, epoch=task.epoch, kind="keyed", request="\ud800"),
    lambda pm, task: pm.begin(task.id, "a", by=support.OWNER, epoch=2**63, kind="keyed"),
    lambda pm, task: pm.begin(task.id, "a", by=support.OWNER, epoch=task.epoch, kind="keyed", timeout_s=float("nan")),
    lambda pm, task: pm.finish(task.id, "failed", by=support.OWNER, epoch=task.epoch, note="a\0b"),
    lambda pm, task: pm.checkpoint(task.id, {"a": "\0"}, by=support.OWNER, epoch=task.epoch),
    lambda pm, task: pm.checkpoint(task.id, 1, by=support.OWNER, epoch=task.epoch, expect=2**63),
    lambda pm, task: pm.checkpoint(task.id, 1, by=support.OWNER, epoch=task.epoch, plan={"name": "a"}),
    lambda pm, task: pm.operations(task.id, after="a\0b"),
]


@pytest.mark.parametrize("call", range(len(BAD)))
def test_bad_values_are_answered_alike(postgres: PostgresServer, tmp_path: Path, call: int) -> None:
    ends = list[Any]()
    for url in (f"sqlite:///{tmp_path}/work.db", postgres.empty()):
        with Pointsman(url, clock=FakeClock(), chance=seeded(1)) as pm:
            task = support.drafting(pm)
            try:
                ends.append(told(BAD[call](pm, task)))
            except Refused as refused:
                ends.append(refused.refusal.as_json())
            except (OverflowError, UnicodeEncodeError, ValueError) as error:
                ends.append(type(error))
    assert ends[0] == ends[1]
