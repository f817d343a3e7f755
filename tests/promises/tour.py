"""A process that uses every verb, and with them every statement of the store, and says on stdout what was acknowledged.

    python tour.py URL CRASH_POINT

It kills itself with SIGKILL when it first passes the crash point; "" lets it live.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from pointsman import Effect, Event, Limit, Machine, Pointsman, Refused, Schedule, State, Task, Tasks, Verdict, check, field, note, owner
from pointsman.engine import backlogs, duties, ends
from pointsman.engine.chance import wall_clock
from pointsman.engine.relaying import TAKEN, Answer, Inline, Relay
from pointsman.engine.timers import Deadlines, Schedules
from pointsman.errors import Refusal
from pointsman.store import clock, news, outbox, proposals, pruning
from pointsman.store import refusals as refusals_kept
from pointsman.store.snapshots import EVERY
from pointsman.testing import FakeClock
from pointsman.types import hours, seconds

TEN_YEARS = hours(24 * 3652)
DRAFT = "Release notes: the scheduler now shares its queue between six agents without double claims."


def is_right(text: str | None) -> Verdict:
    return Verdict(text == "right", "compared")


def published(name: str, *, wordy: bool) -> type[Machine]:
    """Two structures under one number: the second replaces the first while no task of it is open."""

    class Plain(Machine, name=name):
        text: str | None = None
        open = State(initial=True)
        done = State(final=True, outcome="failed")
        right = check(is_right)
        take = Event(open >> open, acquires=True)
        finish = Event(open >> done, by=owner, sets="text", requires=right)

    class Wordy(Machine, name=name):
        text: str | None = None
        word: str | None = note()
        open = State(initial=True)
        done = State(final=True, outcome="failed")
        right = check(is_right)
        take = Event(open >> open, acquires=True, tells="taken")
        finish = Event(open >> done, by=owner, sets="text", requires=right)

    return Wordy if wordy else Plain


def timed(name: str, *, scheduled: bool) -> type[Machine]:
    """Tasks with a deadline, made on a schedule; the second version is made on none."""

    class First(Machine, name=name):
        open = State(initial=True, deadline=seconds(20), on_deadline="remind")
        done = State(final=True, outcome="failed")
        take = Event(open >> open, acquires=True)
        finish = Event(open >> done)
        often = Schedule("* * * * *")

    class Second(Machine, name=name):
        version = 2
        open = State(initial=True)
        done = State(final=True, outcome="failed")
        take = Event(open >> open, acquires=True)
        finish = Event(open >> done)

    return First if scheduled else Second


def is_possible(task: Task) -> bool:
    return task.fields["repo"] != "none"


class Limited(Machine, name="limited"):
    """Much at a time, so that tours of one database do not wait for one another."""

    repo: str
    open = State(initial=True)
    work = State(lease=seconds(30))
    done = State(final=True, outcome="failed")
    slow = Limit("slow", per=seconds(1), max=1_000)
    take = Event(open >> work, acquires=True, when=is_possible, limits=(slow, Limit("repo", key=field.repo, concurrent=1_000)))
    finish = Event(work >> done, by=owner)
    revert = Effect("revert", during=work, request="repo", kind="keyed")
    push = Effect("push", during=work, request="repo", kind="keyed", undo=revert)


def acknowledged(task: Task | None) -> Task:
    assert task is not None
    print(task.id, task.version, task.state, flush=True)
    return task


def the_main_job(pm: Pointsman) -> None:
    acknowledged(pm.create("tasks", {"title": "Release notes", "brief": "the scheduler"}, by="ann"))
    task = acknowledged(pm.claim("tasks", by="w"))
    task = acknowledged(pm.propose(task.id, "start_draft", by="w", epoch=task.epoch))
    with suppress(Refused):
        pm.propose(task.id, "request_approval", {"draft": "short"}, by="w", epoch=task.epoch)
    for _ in range(2):
        task = acknowledged(
            pm.propose(task.id, "request_approval", {"draft": DRAFT}, by="w", epoch=task.epoch, idempotency_key=f"s-{task.id}")
        )
    task = acknowledged(pm.propose(task.id, "approve", by="rita", digest=task.digest))
    acknowledged(pm.propose(task.id, "complete", by="w", epoch=task.epoch))


def a_slow_check(pm: Pointsman, name: str) -> None:
    task = acknowledged(pm.create(name, {}, by="ann"))
    task = acknowledged(pm.claim(name, by="w", id=task.id))
    acknowledged(pm.propose(task.id, "finish", {"text": "right"}, by="w", epoch=task.epoch))


def many(pm: Pointsman) -> None:
    """Made, taken and finished together: long enough for a snapshot, and with one that somebody waits for."""
    mine = f"many{os.getpid()}"
    made = pm.create_many("limited", [{"repo": mine}] * 3, by="ann", tags=[mine])
    acknowledged(pm.create("limited", {"repo": mine}, by="ann", blocked_by=[{"task": made[0].id}]))
    taken = [acknowledged(task) for task in pm.claim_many("limited", 5, by="w", tags=[mine])]
    assert [task.id for task in taken] == [task.id for task in made]
    for answer in pm.finish_many("finish", [(task.id, task.epoch, {}) for task in taken], by="w"):
        assert isinstance(answer, Task)
        acknowledged(answer)


def an_empty_queue(pm: Pointsman, name: str) -> None:
    while pm.claim(name, by="w") is not None:
        pass
    assert pm.claim(name, by="w", states=["open"]) is None


def refusals(pm: Pointsman) -> None:
    """Enough that the log is trimmed here, though others write into it at the same moment."""
    task = acknowledged(pm.create("tasks", {"title": "t", "brief": "b"}, by="ann"))
    with suppress(Refused):
        pm.propose(task.id, "complete", by="w", epoch=0)
    many = range(3 * refusals_kept.TRIM_EVERY)
    pm.engine.db.run(lambda tx: [refusals_kept.log(tx, Refusal("wrong_state", "no"), "complete", "w", "python") for _ in many])
    pm.refusals()


def an_abandoned_check(pm: Pointsman, name: str, later: Pointsman) -> None:
    """A proposal that its process has forgotten is taken over; a newer one supersedes it."""
    task = acknowledged(pm.create(name, {}, by="ann"))
    task = acknowledged(pm.claim(name, by="w", id=task.id))
    for text in ("right", "right "):
        asked = {"by": "w", "epoch": task.epoch, "idempotency_key": f"{task.id}-{len(text)}"}
        steps = Pointsman.propose.steps(pm, task.id, "finish", {"text": text}, **asked)
        pm.engine.db.run(next(steps).unit)
    kept = pm.engine.db.read(lambda tx: proposals.pending(tx, task.id))
    assert kept is not None
    pm.engine.db.run(lambda tx: proposals.keep(tx, kept.id))
    assert not pm.engine.db.read(lambda tx: proposals.is_abandoned(tx, kept.id))
    later.engine.settling.take_over()
    with suppress(Refused):
        pm.propose(task.id, "finish", {"text": "right "}, by="w", epoch=task.epoch, idempotency_key=f"{task.id}-6")
    assert pm.proposal(kept.id).status == "refused"


def a_hold(pm: Pointsman, name: str) -> None:
    """What is held is passed over; what was held is let go."""
    for tags in (["gpu"], ["gpu"], []):
        acknowledged(pm.create(name, {}, by="ann", tags=tags))
    hold = pm.hold({"machine": name, "tag": "gpu"}, by="olga", reason="the provider is down", release_per_s=1_000)
    assert not acknowledged(pm.claim(name, by="w")).tags
    assert pm.claim(name, by="w") is None
    pm.lift(hold.id, by="olga")
    assert acknowledged(pm.claim(name, by="w")).tags
    assert [found.id for found in pm.holds()].count(hold.id) == 1
    spent = pm.hold({"tag": f"nobody-has-it-{os.getpid()}"}, by="olga", reason="for nothing")
    pm.lift(spent.id, by="olga")


def what_is_due(pm: Pointsman, name: str, opened: Callable[..., Pointsman]) -> None:
    """A reminder, and a task made on a schedule, which a newer version declares no more."""
    Schedules(pm.engine).run_once()
    pm.engine.db.run(lambda tx: clock.move(clock.find(tx), 0, tx))
    with opened([timed(name, scheduled=True)], clock=FakeClock(wall_clock() + seconds(120))) as later:
        backlogs.retire(later.engine)
        duty = Deadlines(later.engine)
        while duty.run_once():
            pass
        Schedules(later.engine).run_once()
    tasks = pm.list(machine=name)
    assert any(entry.event == "remind" for task in tasks for entry in pm.history(task.id))
    assert any(task.dedupe_key for task in tasks)
    with opened([timed(name, scheduled=False)]) as newer:
        Schedules(newer.engine).run_once()


def limits_and_lanes(pm: Pointsman, later: Pointsman) -> None:
    """A lane of its own, uses of limits, a lapse that is waited for, and what a server does about all that once a second."""
    mine = f"tour{os.getpid()}"
    for _ in range(2):
        acknowledged(pm.create("limited", {"repo": mine}, by="ann", tags=[mine], needs=["git"], run_at="2026-01-01T00:00:00Z"))
        acknowledged(pm.claim("limited", by="w", tags=[mine], capabilities=["git"]))
    task = acknowledged(later.claim("limited", by="v", tags=[mine], capabilities=["git"]))
    acknowledged(later.propose(task.id, "finish", by="v", epoch=task.epoch))
    assert later.claim("limited", by="v", tags=[mine]) is None
    acknowledged(pm.create("limited", {"repo": "none"}, by="ann", tags=[f"not-{mine}"]))
    with suppress(Refused):
        pm.claim("limited", by="w", tags=[f"not-{mine}"])
    duties.wake(later.engine)


def told_outside(pm: Pointsman, name: str, later: Pointsman) -> None:
    """Messages that are taken, rest, are parked and redriven, and are dropped with their hook."""
    said = [Answer("again", "busy"), Answer("again", "busy"), Answer("gone", "HTTP 410"), TAKEN, TAKEN]
    hook = pm.add_hook("https://example.org/hook", "webhook", ["event:take"], by="olga", machine=name).hook
    relay = Relay(later.engine, lambda found: (lambda *_: said.pop(0)) if found.id == hook.id else None, Inline())
    for _ in range(2):
        task = acknowledged(pm.create(name, {}, by="ann"))
        acknowledged(pm.claim(name, by="w", id=task.id))
    relay.run_once()
    pm.rotate_hook(hook.id, by="olga")
    assert pm.backlogs()[hook.id].waiting == 2
    pm.engine.db.run(lambda tx: outbox.park_all(tx, hook.id, "enough"))
    assert pm.redrive(hook.id, by="olga") == 2
    assert len(pm.dead(hook.id)) == 0
    while said:
        relay.run_once()
        pm.redrive(hook.id, by="olga")
    acknowledged(pm.claim(name, by="w", id=acknowledged(pm.create(name, {}, by="ann")).id))
    pm.doctor()
    assert pm.verify().ok
    pm.remove_hook(hook.id, by="olga")
    relay.stop()


def long_history(pm: Pointsman) -> None:
    """Long enough for a snapshot."""
    task = acknowledged(pm.create("tasks", {"title": "t", "brief": "b"}, by="ann"))
    task = acknowledged(pm.claim("tasks", by="w", id=task.id))
    for _ in range(EVERY):
        task = acknowledged(pm.propose(task.id, "start_draft", by="w", epoch=task.epoch))
    pm.renew(task.id, by="w", epoch=task.epoch)
    acknowledged(pm.release(task.id, by="w", epoch=task.epoch))


def pruned(pm: Pointsman) -> None:
    """Nothing is so old, but a task that nobody was told of loses its payloads."""
    task = pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
    task = pm.claim("tasks", by="w", id=task.id)
    assert task is not None
    pm.propose(task.id, "fail", by="w", epoch=task.epoch)
    assert pm.prunable(TEN_YEARS) == pm.prune(TEN_YEARS, payloads=True)
    assert pm.engine.db.run(lambda tx: pruning.drop(tx, [task.id])) == 1


def a_family(pm: Pointsman, name: str, later: Pointsman) -> None:
    """Tasks that wait for one another, parts of parts, and the end of all."""
    upstream = acknowledged(pm.create(name, {}, by="ann"))
    behind = [{"task": upstream.id, "on_failure": "continue"}]
    for key in (None, f"known {upstream.id}"):
        waits = pm.create(name, {}, by="ann", blocked_by=behind, dedupe_key=f"after {upstream.id}", idempotency_key=key)
        acknowledged(waits)
    with suppress(Refused):
        pm.claim(name, by="w", id=waits.id)
    above = acknowledged(pm.claim(name, by="w", id=acknowledged(pm.create(name, {}, by="ann")).id))
    aside = acknowledged(pm.create(name, {}, by="ann"))
    acknowledged(pm.create(name, {}, by="ann", blocked_by=[{"task": above.id}]))
    beside = [{"fields": {}}, {"fields": {}, "blocked_by": [{"task": aside.id, "on_failure": "cancel"}]}]
    part, _ = pm.create_batch(beside, by="w", machine=name, parent=above.id, epoch=above.epoch, join="all")
    part = acknowledged(pm.claim(name, by="w", id=acknowledged(part).id))
    below = acknowledged(pm.create(name, {}, by="w", parent=part.id, epoch=part.epoch))
    acknowledged(pm.cancel(upstream.id, by="olga", reason="not wanted").task)
    acknowledged(pm.claim(name, by="w", id=waits.id))
    acknowledged(pm.cancel(above.id, by="olga", reason="not wanted", cascade=True).task)
    ends.take_over(later.engine)
    acknowledged(pm.get(below.id))


def a_ledger(pm: Pointsman) -> None:
    """Operations begun, found, repeated and finished, an effect, a checkpoint, and what was said too late."""
    task = acknowledged(pm.claim("limited", by="w", id=acknowledged(pm.create("limited", {"repo": "ledger"}, by="ann")).id))
    mine = {"by": "w", "epoch": task.epoch}
    begun = pm.begin(task.id, "push", effect="push", **mine).operation
    acknowledged(pm.get(task.id))
    for _ in range(2):
        pm.finish(begun.id, "succeeded", 1, **mine)
    acknowledged(pm.get(task.id))
    for number in range(2):
        pm.checkpoint(task.id, {"page": number}, expect=number, **mine)
    with suppress(Refused):
        pm.finish(begun.id, "failed", by="w", epoch=task.epoch + 1)
    undo = pm.begin(task.id, "undo", effect="revert", compensates=begun.id, **mine).operation
    pm.finish(undo.id, "not_done", **mine)
    assert [shown.operation.id for shown in pm.operations(task.id)] == [begun.id, undo.id]
    found = pm.resume(task.id)
    assert found.checkpoint is not None
    assert (found.checkpoint.number, [item.name for item in found.pending]) == (2, ["undo"])


def reading(pm: Pointsman) -> None:
    pm.engine.db.read(lambda tx: (news.since(tx, None), news.since(tx, 0)))
    for order in ("created_at", "updated_at", "priority"):
        for is_open in (True, False):
            pm.list(order=order, open=is_open)
        pm.list(order=order, open=True, owner="w")
    task = pm.list()[0]
    pm.get(task.id, version=1)
    assert pm.get(task.id, at=f"#{pm.as_of()}") == pm.get(task.id)
    pm.list(at="2026-01-01T00:00:00Z")
    pm.list(at="#1")
    pm.history()
    pm.history(task.id, n=1)
    assert pm.verify(pm.head()).ok
    assert pm.feed()[0].seq == 1
    pm.approvals(by="rita")
    pm.published()
    pm.figures()
    pm.doctor()
    pm.check()
    assert pm.verify().ok


def main(url: str, crash_point: str) -> None:
    """Without a crash point, as in production: nobody looks on, and PostgreSQL is told several statements at once."""

    def killing(point: str) -> None:
        if point == crash_point:
            os.kill(os.getpid(), signal.SIGKILL)

    probe = killing if crash_point else None
    name, due = f"own{os.getpid()}", f"due{os.getpid()}"
    Pointsman(url, [published(name, wordy=False)], probe=probe).close()
    machines = [Tasks, Limited, published(name, wordy=True), timed(due, scheduled=True)]
    ahead = FakeClock(wall_clock() + seconds(90))
    with Pointsman(url, machines, probe=probe) as pm, Pointsman(url, machines, clock=ahead, probe=probe) as later:
        the_main_job(pm)
        a_ledger(pm)
        reading(pm)
        an_abandoned_check(pm, name, later)
        a_slow_check(pm, name)
        an_empty_queue(pm, name)
        refusals(pm)
        limits_and_lanes(pm, later)
        many(pm)
        told_outside(pm, name, later)
        long_history(pm)
        pruned(pm)
        a_family(pm, name, later)
        a_hold(pm, due)
        what_is_due(pm, due, partial(Pointsman, url, probe=probe))
        assert pm.verify().ok


if __name__ == "__main__":
    main(*sys.argv[1:])
