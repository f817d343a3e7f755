"""What must hold after a fleet's run, judged from its whole feed and from what was told to those who worked."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from faults.fleet_work import PLACES, RATE, REST_S, TRIES
from pointsman import Pointsman, seconds
from pointsman.engine.queries import Entry
from pointsman.kernel.task import Task, apply
from pointsman.types import Instant, instant

SECOND = seconds(1)
FINAL = ("done", "failed", "dropped")
Line = dict[str, Any]


def feed(pm: Pointsman) -> list[Entry]:
    found: list[Entry] = []
    while page := pm.feed(found[-1].seq if found else 0, 1000):
        found += page
    assert [entry.seq for entry in found] == list(range(1, len(found) + 1))
    return found


def by_task(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    found = defaultdict[str, list[Entry]](list)
    for entry in entries:
        found[entry.task].append(entry)
    return found


def one_owner_per_epoch(histories: dict[str, list[Entry]]) -> None:
    """P1 and P3: epochs never fall, each has one owner, and only that one acts as an owner under it."""
    for id, entries in histories.items():
        epochs = [entry.epoch for entry in entries]
        assert epochs == sorted(epochs), id
        taken = [(entry.epoch, entry.by) for entry in entries if entry.kind == "acquire"]
        owners = dict(taken)
        assert len(owners) == len(taken), (id, taken)
        acts = {(entry.epoch, entry.by) for entry in entries if entry.kind in ("event", "release", "wait")}
        assert acts <= owners.items(), (id, acts, owners)


def time_goes_on(histories: dict[str, list[Entry]]) -> None:
    """P15, and no entry is missing."""
    for id, entries in histories.items():
        assert [entry.version for entry in entries] == list(range(1, len(entries) + 1)), id
        assert all(one.at < next.at for one, next in pairwise(entries)), id


def acknowledged(histories: dict[str, list[Entry]], told: Sequence[Line]) -> None:
    """P2: whatever somebody was told is in history, as it was told."""
    for line in told:
        if line["what"] == "done":
            entries = histories.get(line["task"], [])
            assert line["version"] <= len(entries), line
            entry = entries[line["version"] - 1]
            assert (entry.event, entry.by, entry.epoch) == (line["event"], line["by"], line["epoch"]), (line, entry)


def replaced_owners_are_refused(histories: dict[str, list[Entry]], told: Sequence[Line]) -> int:
    """P3: whoever is told that the lease is lost was replaced; how many late words were refused."""
    late = 0
    for line in told:
        if line["what"] == "no":
            replaced = any(entry.epoch > line["epoch"] for entry in histories[line["task"]])
            assert replaced or line["code"] != "lease_lost", line
            late += replaced
    return late


def timers_fired_once(histories: dict[str, list[Entry]]) -> int:
    """P14: each stay in a state with a deadline ended by it, once, and not before its time; how many there were."""
    stays = 0
    for id, entries in histories.items():
        entered = [entry for entry in entries if entry.to_state == "resting" and entry.from_state != "resting"]
        fired = [entry for entry in entries if entry.kind == "deadline"]
        assert len(fired) == len(entered), (id, [(entry.kind, entry.at) for entry in entries])
        assert all(late.at >= early.at + REST_S * SECOND for early, late in zip(entered, fired, strict=True)), id
        stays += len(entered)
    return stays


def schedules_fired_once(tasks: Sequence[Task]) -> None:
    """P14: one task for a due moment, and none before it."""
    moments = Counter(task.dedupe_key for task in tasks if task.fields["shelf"] == "schedule")
    assert all(times == 1 for times in moments.values()), moments
    for task in tasks:
        if task.fields["shelf"] == "schedule":
            assert task.dedupe_key is not None
            assert instant(task.dedupe_key.split(":", 2)[2]) <= task.created_at, task


def attempts_are_bounded(histories: dict[str, list[Entry]]) -> None:
    """P13: nothing was tried more often than it may be, and what was parked was tried as often as that."""
    for id, entries in histories.items():
        task, taken = None, 0
        for entry in entries:
            task = apply(task, id, entry.version, entry.at, entry.changes)
            taken = 0 if entry.kind == "unpark" else taken + (entry.kind == "acquire")
            assert taken - task.attempts.deferred <= TRIES, (id, taken, task.attempts)
            assert entry.kind != "park" or task.attempts.counted == TRIES, (id, task.attempts)


def all_is_over(tasks: Sequence[Task], poisoned: str) -> None:
    """P12, P13: what kills its workers is parked, and all else has come to its end."""
    left = [task for task in tasks if task.state not in FINAL]
    assert [(task.id, task.parked is not None, task.attempts.lost) for task in left] == [(poisoned, True, TRIES)], left


# ── the board at every feed number ───────────────────────────────────────────────────────────────────────────────────


@dataclass
class Board:
    """Folded entry by entry. `places` are the owners of each shelf, `takes` when jobs were taken."""

    tasks: dict[str, Task] = field(default_factory=dict)
    places: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    takes: list[Instant] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        task = apply(self.tasks.get(entry.task), entry.task, entry.version, entry.at, entry.changes)
        self.tasks[entry.task] = task
        held = self.places[str(task.fields["shelf"])]
        if task.owner is not None and task.parked is None and task.state not in FINAL:
            held.add(task.id)
        else:
            held.discard(task.id)
        if entry.kind == "acquire":
            self.takes.append(entry.at)


def limits_hold(entries: Sequence[Entry]) -> int:
    """At every feed number; how many jobs ever worked on one shelf at once, at most."""
    board, most = Board(), 0
    for entry in entries:
        board.add(entry)
        most = max(most, *(len(held) for held in board.places.values()))
        assert all(len(held) <= PLACES for held in board.places.values()), (entry.seq, board.places)
    takes = sorted(board.takes)
    for first, beyond in zip(takes, takes[RATE:], strict=False):
        assert beyond - first >= SECOND, (first, beyond)
    return most


def nobody_was_turned_away(entries: Sequence[Entry], told: Sequence[Line]) -> int:
    """P1: while something eligible waits nobody is told there is nothing. Judged for each answer from the heads of the feed
    before it was asked for and after it was heard: what was eligible at the first and has no entry until the second was
    eligible all the time. How many answers there were for which some task had to be looked at."""
    asked = sorted((line for line in told if line["what"] == "nothing"), key=lambda line: line["before"])
    board, passed, looked = Board(), 0, 0
    for line in asked:
        while passed < line["before"]:
            board.add(entries[passed])
            passed += 1
        meanwhile = entries[line["before"] : line["after"]]
        waiting = [task for task in board.tasks.values() if task.owner is None and task.state == "todo"]
        looked += bool(waiting)
        found = list(_eligible(board, waiting, meanwhile, line))
        assert not found, (line, found, meanwhile)
    return looked


def _eligible(board: Board, waiting: Iterable[Task], meanwhile: Sequence[Entry], line: Line) -> Iterator[Task]:
    moved = {entry.task for entry in meanwhile}
    taken = [entry for entry in meanwhile if entry.kind == "acquire"]
    recent = sum(at > line["at"] - SECOND for at in board.takes) + len(taken)
    if recent >= RATE:
        return
    for task in waiting:
        shelf = str(task.fields["shelf"])
        coming = sum(board.tasks[entry.task].fields["shelf"] == shelf for entry in taken if entry.task in board.tasks)
        if (
            task.id not in moved
            and task.parked is None
            and not task.blocked_by  # when it was told of their ends is no entry
            and (task.run_at is None or task.run_at <= line["at"])
            and set(task.needs) <= set(line["capabilities"])
            and set(line["tags"]) <= set(task.tags)
            and len(board.places[shelf]) + coming < PLACES
        ):
            yield task
