"""P17: a task at version v, read later, is what a reader saw at v; the board as of a past moment never changes."""

import random
from collections.abc import Iterator

import pytest

import support
from pointsman import Pointsman, Refused, Task
from pointsman.store.snapshots import EVERY
from pointsman.testing import FakeClock, seeded
from pointsman.types import iso, seconds

TASKS, STEPS = 5, 260


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="module")
def pm(tmp_path_factory: pytest.TempPathFactory, clock: FakeClock) -> Iterator[Pointsman]:
    path = tmp_path_factory.mktemp("past") / "work.db"
    with Pointsman(f"sqlite:///{path}", clock=clock, chance=seeded(7)) as opened:
        yield opened


class Seen:
    """What readers saw while it was current."""

    def __init__(self) -> None:
        self.versions: dict[tuple[str, int], Task] = {}
        self.boards: dict[int, list[Task]] = {}
        self.times: dict[int, list[Task]] = {}


def _step(pm: Pointsman, chosen: random.Random) -> None:
    """One random proposal by somebody, accepted or not."""
    board = pm.list()
    if len(board) < TASKS:
        support.create(pm, f"Release notes {len(board)}")
        return
    task = chosen.choice(board)
    event = chosen.choice(list(pm.machines["tasks"].event))
    by = chosen.choice([support.OWNER, support.OTHER, support.REVIEWER])
    args = {"draft": chosen.choice([support.GOOD, support.BAD, support.GOOD + str(chosen.random())])} if event == "request_approval" else {}
    try:
        if event == "claim":
            pm.claim("tasks", by=by, id=task.id)
        elif event != "fail" or chosen.random() < 0.02:
            pm.propose(task.id, event, args, by=by, epoch=task.epoch, digest=task.digest if event in ("approve", "reject") else None)
    except Refused:
        return


@pytest.fixture(scope="module")
def seen(pm: Pointsman, clock: FakeClock) -> Seen:
    """A random run, looked at after every step."""
    chosen, seen = random.Random(11), Seen()
    for _ in range(STEPS):
        _step(pm, chosen)
        board = pm.list()
        seen.boards[pm.as_of()] = board
        seen.versions |= {(task.id, task.version): task for task in board}
        seen.times[clock.now] = board
        clock.advance(seconds(1))
    long = support.drafting(pm)
    for _ in range(3 * EVERY):
        task = pm.propose(long.id, "start_draft", by=support.OWNER, epoch=long.epoch)
        seen.versions[task.id, task.version] = task
    return seen


def test_the_run_is_worth_looking_at(seen: Seen) -> None:
    states = {task.state for task in seen.versions.values()}
    assert {"queued", "drafting", "awaiting_approval", "approved"} <= states
    assert len(seen.boards) > 30


def test_every_version_reads_as_it_was_seen(pm: Pointsman, seen: Seen) -> None:
    assert {key: pm.get(key[0], version=key[1]) for key in seen.versions} == seen.versions


def test_the_board_at_every_feed_number_is_the_one_that_was_current(pm: Pointsman, seen: Seen) -> None:
    assert {seq: pm.list(at=f"#{seq}") for seq in seen.boards} == seen.boards


def test_the_board_at_every_time_is_the_one_that_was_current(pm: Pointsman, seen: Seen) -> None:
    assert {at: pm.list(at=iso(at)) for at in seen.times} == seen.times
    assert {at: pm.list(at=at) for at in seen.times} == seen.times


def test_a_filtered_board_of_the_past_is_the_filter_of_that_board(pm: Pointsman, seen: Seen) -> None:
    for seq, board in seen.boards.items():
        assert pm.list(at=f"#{seq}", state="drafting") == [task for task in board if task.state == "drafting"]
        assert pm.list(at=f"#{seq}", open=True) == [task for task in board if task.state not in ("done", "failed")]
        assert pm.list(at=f"#{seq}", owner=support.OWNER, limit=2) == [task for task in board if task.owner == support.OWNER][:2]


def test_pages_of_the_past_join_without_gap_or_repeat(pm: Pointsman, seen: Seen) -> None:
    seq = max(seen.boards)
    pages, after = list[Task](), None
    while page := pm.list(at=f"#{seq}", limit=2, after=after):
        pages += page
        after = page[-1]
    assert pages == seen.boards[seq]


def test_one_task_at_a_moment(pm: Pointsman, seen: Seen) -> None:
    for seq, board in seen.boards.items():
        for task in board:
            assert pm.get(task.id, at=f"#{seq}") == task
    first = next(iter(seen.boards.values()))[0]
    with pytest.raises(Refused, match="unknown_task"):
        pm.get(first.id, at="#0")


def test_the_difference_of_two_versions(pm: Pointsman) -> None:
    task = support.drafting(pm)
    long_draft = "\n".join([support.GOOD] * 5)
    sent = pm.propose(task.id, "request_approval", {"draft": long_draft}, by=support.OWNER, epoch=task.epoch)
    moved = pm.diff(task.id, task.version, sent.version)
    assert moved["state"] == {"from": "drafting", "to": "awaiting_approval"}
    assert list(moved["fields"]) == ["draft"]
    assert moved["fields"]["draft"]["text"].count("+" + support.GOOD) == 5
    assert pm.diff(task.id, task.version, task.version)["fields"] == {}


def test_before_the_first_entry_the_board_is_empty(pm: Pointsman, seen: Seen) -> None:
    assert pm.list(at=-(2**62)) == pm.list(at="#0") == []


NO_MOMENT = ["#-1", "#1.0", "#", "#999999", "yesterday", "2026-01-01T00:00:00", "2999-01-01T00:00:00Z", 2**62, True]


@pytest.mark.parametrize("at", NO_MOMENT)
def test_a_moment_that_is_none_is_refused(pm: Pointsman, seen: Seen, at: str | int) -> None:
    with pytest.raises(Refused, match="invalid"):
        pm.list(at=at)


@pytest.mark.parametrize("version", [0, -1, 10_000])
def test_a_version_that_never_was_is_refused(pm: Pointsman, seen: Seen, version: int) -> None:
    with pytest.raises(Refused, match="unknown_task"):
        pm.get(next(iter(seen.versions))[0], version=version)


def test_everything_verifies_and_an_exported_head_holds(pm: Pointsman, seen: Seen) -> None:
    head = pm.head()
    support.create(pm)
    assert pm.verify(head).ok
    assert (pm.head()["seq"], head["format"]) == (head["seq"] + 1, 1)
