"""P8: a message is written with its change and delivered at least once under a stable id; first deliveries are in order per task and
receiver; one that cannot be delivered is parked with its lane, visible and redrivable, never lost."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from acceptance.board import until
from pausing import PATIENCE_S, Pausing
from pointsman import Pointsman, Task
from pointsman.engine import relaying as engine
from pointsman.engine.relaying import AT_ONCE, HELD, POOL_SIZE, RETRY, TAKEN, Answer, Inline, Relay, Sink
from pointsman.errors import StoreError
from pointsman.kernel.hook import Hook
from pointsman.kernel.message import Message
from pointsman.store.outbox import Lane
from pointsman.testing import FakeClock
from pointsman.types import Instant, hours, seconds
from promises import relaying
from promises.relaying import START, Talk
from sinks.receiver import Receiver as Webhooks

Got = list[tuple[str, int, str]]
"""What a receiver took, in order: task, version, id of the message."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Talk], clock=clock) as opened:
        yield opened


class Receiver:
    """Takes everything but what `poison` names or while it is `down`."""

    def __init__(self) -> None:
        self.got: Got = []
        self.down = False
        self.poison: set[str] = set()
        self.tried = Counter[str]()

    def __call__(self, hook: Hook, message: Message, now: Instant) -> Answer:
        self.tried[message.task] += 1
        if self.down or message.task in self.poison:
            return Answer("again", "HTTP 500")
        self.got.append((message.task, message.version, message.id))
        return TAKEN


def listening(pm: Pointsman) -> str:
    return pm.add_hook("call:receiver", "call", ["event:say"], by="olga").hook.id


def say(pm: Pointsman, task: Task) -> None:
    pm.propose(task.id, "say", by="ann")


def relay(pm: Pointsman, sink: Sink) -> Relay:
    return Relay(pm.engine, lambda hook: sink, Inline())


def all_due(round_: Relay) -> None:
    while round_.run_once():
        pass


def as_said(pm: Pointsman) -> list[tuple[str, int]]:
    """What was to be told, as history has it."""
    found, after = [], 0
    while page := pm.feed(after=after):
        found += [(item.task, item.version) for item in page if item.event == "say"]
        after = page[-1].seq
    return found


def faults(got: Got, wanted: list[tuple[str, int]]) -> list[str]:
    """What is wrong with what a receiver got: something lost or invented, an id that changed, first deliveries out of order."""
    first = list(dict.fromkeys((task, version) for task, version, _ in got))
    found = [f"lost {item}" for item in wanted if item not in set(first)] + [
        f"invented {item}" for item in first if item not in set(wanted)
    ]
    ids: dict[tuple[str, int], set[str]] = defaultdict(set)
    for task, version, id in got:
        ids[task, version].add(id)
    found += [f"several ids for {item}" for item, named in ids.items() if len(named) > 1]
    if len({id for named in ids.values() for id in named}) < len(ids):
        found.append("one id for several messages")
    versions: dict[str, list[int]] = defaultdict(list)
    for task, version in first:
        versions[task].append(version)
    return found + [f"out of order: {task}" for task, seen in versions.items() if seen != sorted(seen)]


def test_faults_are_found() -> None:
    wanted = [("a", 2), ("a", 3), ("b", 2)]
    whole = [("a", 2, "x"), ("b", 2, "y"), ("a", 3, "z"), ("a", 2, "x")]
    assert faults(whole, wanted) == []
    assert faults(whole[:2], wanted) == ["lost ('a', 3)"]
    assert faults([*whole, ("c", 2, "u")], wanted) == ["invented ('c', 2)"]
    assert faults([*whole, ("a", 2, "u")], wanted) == ["several ids for ('a', 2)"]
    assert faults([("a", 2, "x"), ("a", 3, "x"), ("b", 2, "y")], wanted) == ["one id for several messages"]
    assert faults([("a", 3, "z"), ("a", 2, "x"), ("b", 2, "y")], wanted) == ["out of order: a"]


# ── a process dies ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_relays_killed_at_each_point_and_two_that_come_after(url: str, tmp_path: Path) -> None:
    Pointsman(url, [Talk], clock=FakeClock(START)).close()
    file = tmp_path / "received"
    command = [sys.executable, "-m", relaying.__name__, url, str(file)]
    env = {**os.environ, "PYTHONPATH": ":".join(path for path in sys.path if path)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    passed = done.stdout.splitlines()
    assert {"before:claim_message_lane", "sending", "sent", "before:drop_message", "commit.after"} <= set(passed)
    got = [(task, int(version), id) for task, version, id in (line.split() for line in file.read_text().splitlines())]
    with Pointsman(url, [Talk], clock=FakeClock(START + hours(48))) as pm:
        wanted = as_said(pm)
        assert len(wanted) == (len(passed) + 1) * relaying.TASKS * relaying.SAYINGS
        assert faults(got, wanted) == []
        assert len(got) > len(wanted), "some relay died between sending and writing it down"
        assert pm.backlogs() == {}
        assert pm.verify().ok


# ── a message is written with its change ─────────────────────────────────────────────────────────────────────────────


class Failing:
    """A probe that fails a unit once at a point."""

    def __init__(self) -> None:
        self.point: str | None = None

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.point = None
            raise StoreError("store_unavailable", "planned")


SERVES = """
import pathlib
import sys

from pointsman.cli import main
from pointsman.engine import relaying
from pointsman.types import seconds

relaying.HELD = seconds(1)
folder = pathlib.Path(sys.argv[1])
(folder / "work.py").write_text("from promises.relaying import Talk\\n\\nmachines = [Talk]\\n")
sys.argv[1:] = ["serve", str(folder / "work.py"), "--db", sys.argv[2], "--port", "0", "--json"]
main()
"""
"""A server that holds a lane for no longer than a test can wait."""


def test_a_server_that_is_killed_while_it_relays_loses_nothing(url: str, tmp_path: Path) -> None:
    """A whole server with a webhook, killed again and again while its receiver is being told, every second time before
    that has answered; another comes at once."""
    receiver = Webhooks()
    with Pointsman(url, [Talk]) as pm:
        pm.add_hook(receiver.url(), "webhook", ["event:say"], by="olga", allow_private=True)
        tasks = [pm.create("talk", {}, by="ann") for _ in range(4)]
        for round_ in range(6):
            told, receiver.stuck = len(receiver.posts), round_ % 2 == 1
            with served(url, tmp_path) as server:
                for task in tasks * 5:
                    say(pm, task)
                until("some are told", lambda told=told: len(receiver.posts) > told)
                server.kill()
            receiver.let_go()
        with served(url, tmp_path):
            until("all are told", lambda: not pm.backlogs())
        receiver.close()
        assert len(receiver.posts) > len(as_said(pm)), "some server died before it had its answer"
        bodies = [(json.loads(post.body)["data"], post.headers["Webhook-Id"]) for post in receiver.posts]
        assert faults([(data["task"], data["version"], id) for data, id in bodies], as_said(pm)) == []
        assert pm.verify().ok


@contextmanager
def served(url: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    process = subprocess.Popen([sys.executable, "-c", SERVES, str(folder), url], stdout=subprocess.PIPE, text=True, env=env)
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), "it is ready"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("point", ["before:open_lanes", "before:add_messages", "after:add_messages"])
def test_neither_is_there_without_the_other(url: str, clock: FakeClock, point: str) -> None:
    probe = Failing()
    with Pointsman(url, [Talk], clock=clock, probe=probe) as pm:
        listening(pm)
        task = pm.create("talk", {}, by="ann")
        probe.point = point
        with pytest.raises(StoreError):
            say(pm, task)
        assert pm.get(task.id).version == 1
        assert pm.backlogs() == {}
        say(pm, task)
        (backlog,) = pm.backlogs().values()
        assert backlog.waiting == 1
        receiver = Receiver()
        all_due(relay(pm, receiver))
        assert faults(receiver.got, as_said(pm)) == []


def test_each_receiver_that_listens_is_told_and_no_other(pm: Pointsman) -> None:
    heard = {pm.add_hook(f"call:{name}", "call", ["event:say", "parked"], by="olga").hook.id for name in ("one", "two")}
    pm.add_hook("call:three", "call", ["parked"], by="olga")
    task = pm.create("talk", {}, by="ann")
    say(pm, task)
    assert {hook: backlog.waiting for hook, backlog in pm.backlogs().items()} == dict.fromkeys(heard, 1)
    late = listening(pm)
    say(pm, task)
    assert {hook: backlog.waiting for hook, backlog in pm.backlogs().items()} == {**dict.fromkeys(heard, 2), late: 1}


def test_steps_that_are_written_together_tell_as_one_alone_does(pm: Pointsman) -> None:
    listening(pm)
    receiver = Receiver()
    tasks = pm.create_many("talk", [{}] * 3, by="ann")
    pm.finish_many("say", [(task.id, None, {}) for task in tasks], by="ann")
    all_due(relay(pm, receiver))
    assert len(as_said(pm)) == 3
    assert faults(receiver.got, as_said(pm)) == []


# ── a receiver that is down, and a lane that is poisoned ─────────────────────────────────────────────────────────────


def _spoken(pm: Pointsman, tasks: int, messages: int) -> list[Task]:
    made = pm.create_many("talk", [{}] * tasks, by="ann")
    for _ in range(messages // tasks):
        pm.finish_many("say", [(task.id, None, {}) for task in made], by="ann")
    return made


def _a_poisoned_lane_keeps_nobody(pm: Pointsman, clock: FakeClock, messages: int) -> None:
    hook, receiver, each = listening(pm), Receiver(), 20
    tasks = _spoken(pm, each, messages)
    poisoned = tasks[0].id
    receiver.poison, receiver.down = {poisoned}, True
    round_ = relay(pm, receiver)
    for _ in range(3):
        all_due(round_)
        clock.advance(hours(1))
    assert receiver.got == []
    assert set(receiver.tried) == {task.id for task in tasks}
    receiver.down = False
    for _ in range(RETRY.tries):
        clock.advance(RETRY.cap)
        all_due(round_)
    wanted = as_said(pm)
    rest = [item for item in wanted if item[0] != poisoned]
    assert len(wanted) == messages
    assert faults(receiver.got, rest) == []
    (dead,) = pm.dead(hook)
    assert (dead.task, dead.waiting, dead.tries, dead.error) == (poisoned, messages // each, RETRY.tries, "HTTP 500")
    assert receiver.tried[poisoned] == RETRY.tries
    assert pm.doctor() == [f"hook {hook} has messages that could not be delivered, such as those about task {poisoned}"]
    receiver.poison.clear()
    say(pm, tasks[0])
    all_due(round_)
    assert receiver.tried[poisoned] == RETRY.tries, "what comes later waits behind it"
    assert pm.redrive(hook, by="olga") == 1
    all_due(round_)
    assert faults(receiver.got, as_said(pm)) == []
    assert len(receiver.got) == messages + 1
    assert (pm.dead(hook), pm.backlogs(), pm.verify().ok) == ([], {}, True)


def test_a_poisoned_lane_keeps_nobody(pm: Pointsman, clock: FakeClock) -> None:
    _a_poisoned_lane_keeps_nobody(pm, clock, 500)


@pytest.mark.long
def test_a_poisoned_lane_keeps_nobody_among_ten_thousand(pm: Pointsman, clock: FakeClock) -> None:
    _a_poisoned_lane_keeps_nobody(pm, clock, 10_000)


def test_a_receiver_says_when_to_come_again(pm: Pointsman, clock: FakeClock) -> None:
    listening(pm)
    say(pm, pm.create("talk", {}, by="ann"))
    answers = [Answer("again", "HTTP 503", seconds(600)), TAKEN]
    round_ = relay(pm, lambda *_: answers.pop(0))
    all_due(round_)
    clock.advance(seconds(599))
    all_due(round_)
    assert len(answers) == 1
    clock.advance(seconds(1))
    all_due(round_)
    assert answers == []
    assert pm.backlogs() == {}


def test_a_receiver_that_is_gone_is_told_nothing_until_somebody_says_so(pm: Pointsman) -> None:
    hook, receiver = listening(pm), Receiver()
    tasks = _spoken(pm, 3, 6)
    all_due(relay(pm, lambda *_: Answer("gone", "HTTP 410")))
    say(pm, tasks[0])
    say(pm, new := pm.create("talk", {}, by="ann"))
    round_ = relay(pm, receiver)
    all_due(round_)
    assert receiver.tried == Counter()
    assert {lane.task: lane.waiting for lane in pm.dead(hook)} == {tasks[0].id: 3, tasks[1].id: 2, tasks[2].id: 2, new.id: 1}
    assert "disabled" in pm.doctor()[0]
    assert pm.redrive(hook, by="olga") == 4
    all_due(round_)
    assert faults(receiver.got, as_said(pm)) == []
    assert pm.doctor() == []


def test_a_sink_that_raises_took_nothing(pm: Pointsman, clock: FakeClock) -> None:
    hook = listening(pm)
    say(pm, pm.create("talk", {}, by="ann"))

    def broken(*_: object) -> Answer:
        raise KeyError("its own words are not repeated")

    round_ = relay(pm, broken)
    for _ in range(RETRY.tries):
        all_due(round_)
        clock.advance(RETRY.cap)
    (dead,) = pm.dead(hook)
    assert dead.error == "KeyError"


# ── several at the same moment ───────────────────────────────────────────────────────────────────────────────────────


def test_a_message_that_comes_while_its_lane_is_closed_is_not_left_behind(url: str, clock: FakeClock) -> None:
    """The relay has seen that nothing is left; whoever commits then waits for it, or is waited for."""
    probe = Pausing("before:close_message_lane")
    with Pointsman(url, [Talk], clock=clock, probe=probe) as pm, Pointsman(url, [Talk], clock=clock) as other:
        listening(pm)
        say(pm, task := pm.create("talk", {}, by="ann"))
        receiver, done = Receiver(), threading.Event()
        round_ = relay(pm, receiver)
        probe.arm()
        with ThreadPoolExecutor(2) as pool:
            closing = pool.submit(all_due, round_)
            assert probe.passed.wait(PATIENCE_S)
            saying = pool.submit(lambda: (say(other, task), done.set()))
            assert not done.wait(0.05), "it has to wait for the lane"
            probe.leave.set()
            closing.result(PATIENCE_S)
            saying.result(PATIENCE_S)
        all_due(round_)
        assert len(receiver.got) == 2
        assert faults(receiver.got, as_said(pm)) == []
        assert pm.backlogs() == {}
        assert pm.verify().ok


def test_whoever_was_replaced_while_it_sent_changes_nothing(url: str, pm: Pointsman, clock: FakeClock) -> None:
    listening(pm)
    task = pm.create("talk", {}, by="ann")
    for _ in range(3):
        say(pm, task)
    receiver = Receiver()
    with Pointsman(url, [Talk], clock=clock) as other:

        def slow(hook: Hook, message: Message, now: Instant) -> Answer:
            """Its claim ends while it sends, and another relay sends all there is, with something new behind it."""
            clock.advance(HELD + 1)
            all_due(relay(other, receiver))
            say(other, task)
            return receiver(hook, message, now)

        relay(pm, slow).run_once()
        assert len(receiver.got) == 4
        all_due(relay(pm, receiver))
    assert len(receiver.got) == 5
    assert faults(receiver.got, as_said(pm)) == []
    assert pm.backlogs() == {}


def test_two_relays_share_the_work_and_send_nothing_twice(url: str, pm: Pointsman, clock: FakeClock) -> None:
    listening(pm)
    _spoken(pm, 12, 60)
    receiver = Receiver()
    with Pointsman(url, [Talk], clock=clock) as other, ThreadPoolExecutor(2) as pool:
        for ended in [pool.submit(all_due, relay(each, receiver)) for each in (pm, other)]:
            ended.result(PATIENCE_S)
    assert len(receiver.got) == 60
    assert faults(receiver.got, as_said(pm)) == []


class Full(Executor):
    """All of its threads are busy for ever."""

    def __init__(self) -> None:
        self.lanes: list[tuple[str, str]] = []

    def submit(self, fn: object, /, *args: object, **kwargs: object) -> "Future[object]":  # type: ignore[override]
        lane = next(part for part in args if isinstance(part, Lane))
        self.lanes.append((lane.hook, lane.task))
        return Future()


def test_no_lane_is_held_that_no_thread_is_there_for(pm: Pointsman, clock: FakeClock) -> None:
    """It would be held for nothing, and sent a second time by whoever comes when that is over."""
    for _ in range(POOL_SIZE // AT_ONCE + 2):
        listening(pm)
    _spoken(pm, AT_ONCE, AT_ONCE)
    full, receiver = Full(), Receiver()
    busy = Relay(pm.engine, lambda hook: receiver, full)
    all_due(busy)
    assert len(set(full.lanes)) == len(full.lanes) == POOL_SIZE
    other = relay(pm, receiver)
    all_due(other)
    assert len(receiver.got) == 2 * AT_ONCE, "what is not held goes out by another"


def test_each_hook_is_the_first_in_its_turn(pm: Pointsman) -> None:
    """The one before the others might take all threads every time."""
    hooks, task = {listening(pm) for _ in range(3)}, pm.create("talk", {}, by="ann")
    told: list[str] = []

    def take(hook: Hook, message: Message, now: Instant) -> Answer:
        told.append(hook.id)
        return TAKEN

    round_ = relay(pm, take)
    for _ in hooks:
        say(pm, task)
        round_.run_once()
    assert {*told[:: len(hooks)]} == hooks


def test_a_removed_hook_is_told_nothing_more(pm: Pointsman) -> None:
    hook, receiver = listening(pm), Receiver()
    say(pm, task := pm.create("talk", {}, by="ann"))
    pm.remove_hook(hook, by="olga")
    say(pm, task)
    all_due(relay(pm, receiver))
    assert receiver.tried == Counter()
    assert (pm.hooks(), pm.backlogs(), pm.verify().ok) == ([], {}, True)


# ── at once ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["the same process", "another process"])
def test_a_running_relay_hears_of_a_commit(url: str, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """No poll comes to the aid of a lost wake-up: the next round would be an hour away."""
    taken = threading.Semaphore(0)

    def take(*_: object) -> Answer:
        taken.release()
        return TAKEN

    with Pointsman(url, [Talk]) as pm:
        listening(pm)
        say(pm, task := pm.create("talk", {}, by="ann"))
        monkeypatch.setattr(engine, "PERIOD_S", 3_600.0)
        with Pointsman(url, [Talk], duties=True, outlet=lambda hook: take) as server:
            assert taken.acquire(timeout=PATIENCE_S)
            for _ in range(3):
                say(server if where == "the same process" else pm, task)
                assert taken.acquire(timeout=PATIENCE_S)
        assert pm.verify().ok


def test_a_lost_wake_up_costs_one_poll(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = threading.Semaphore(0)

    def take(*_: object) -> Answer:
        taken.release()
        return TAKEN

    monkeypatch.setattr(engine, "PERIOD_S", 0.05)
    with Pointsman(url, [Talk], duties=True, outlet=lambda hook: take) as server:
        monkeypatch.setattr(server.engine.db.hints, "tell", lambda topics: None)
        listening(server)
        say(server, server.create("talk", {}, by="ann"))
        assert taken.acquire(timeout=PATIENCE_S)


def test_a_board_without_hooks_waits_for_nothing(pm: Pointsman) -> None:
    round_ = relay(pm, Receiver())
    round_.run_once()
    assert not pm.engine.db.hints.anybody()
    hook = listening(pm)
    round_.run_once()
    assert pm.engine.db.hints.anybody()
    pm.remove_hook(hook, by="olga")
    round_.run_once()
    assert not pm.engine.db.hints.anybody()
