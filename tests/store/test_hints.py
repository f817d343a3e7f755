"""Who is told what: everybody who waits for a topic, and of those in one line one at a time."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pointsman import Pointsman
from pointsman.store import news
from pointsman.store.hints import FEED, OUTBOX, Hints, of_queue, of_task
from support import claimed, create

LINE = "those who want the same"


@pytest.fixture
def hints() -> Hints:
    return Hints(lambda: None)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as entered:
        yield entered


def test_everybody_who_waits_for_a_topic_is_told(hints: Hints, stack: ExitStack) -> None:
    places = [stack.enter_context(hints.waiting(topic)) for topic in ("a", "a", "b")]
    told = [place.listen() for place in places]
    hints.tell({"a", "c"})
    assert [hint.done() for hint in told] == [True, True, False]
    hints.tell(None)
    assert told[2].done()


def test_what_is_told_during_a_look_is_heard_after_it(hints: Hints, stack: ExitStack) -> None:
    place = stack.enter_context(hints.waiting("a"))
    hint = place.listen()
    hints.tell(["a"])
    hints.tell(["a"])
    assert hint.done()
    assert not place.listen().done()


def test_a_line_is_told_one_at_a_time_from_its_first(hints: Hints, stack: ExitStack) -> None:
    places = [stack.enter_context(hints.waiting("a", LINE)) for _ in range(3)]
    told = [place.listen() for place in places]
    for count in (1, 2, 3, 3):
        hints.tell(["a"])
        assert [hint.done() for hint in told] == [number < count for number in range(3)]


def test_who_leaves_tells_the_next(hints: Hints, stack: ExitStack) -> None:
    with hints.waiting("a", LINE) as first:
        places = [stack.enter_context(hints.waiting("a", line)) for line in (LINE, LINE, "another")]
        told = [place.listen() for place in places]
        assert [place.first for place in (first, *places)] == [True, False, False, True]
    assert [hint.done() for hint in told] == [True, False, False]
    assert [place.first for place in places] == [True, False, True]


def test_nobody_is_left_behind(hints: Hints) -> None:
    with hints.waiting("a"), hints.waiting("a", LINE), hints.waiting("b", LINE):
        assert hints.anybody()
    assert not hints.anybody()


def test_begun_is_called_for_each_who_waits() -> None:
    begun: list[bool] = []
    hints = Hints(lambda: begun.append(hints.anybody()))
    with hints.waiting("a"), hints.waiting("a"):
        assert begun == [True, True]


def test_what_is_told_of_an_entry(url: str) -> None:
    """Work is told of where there is some: a task that nobody owns, or one that has come to its end."""
    with Pointsman(url) as pm:
        first, taken = create(pm), claimed(pm)
        read = pm.engine.db.read
        last, everything = read(lambda tx: news.since(tx, None))
        assert everything is None
        pm.propose(taken.id, "start_draft", by="worker-a", epoch=1)
        last, told = read(lambda tx: news.since(tx, last))
        assert told == {FEED, OUTBOX, of_task(taken.id)}
        pm.propose(taken.id, "fail", by="worker-a", epoch=1)
        last, told = read(lambda tx: news.since(tx, last))
        assert told == {FEED, OUTBOX, of_task(taken.id), of_queue("tasks")}
        pm.create("tasks", {"title": "t", "brief": "b"}, by="ann")
        pm.claim("tasks", by="w", id=first.id)
        newest, told = read(lambda tx: news.since(tx, last))
        assert told is not None
        assert {of_queue("tasks"), of_task(first.id)} < told
        assert read(lambda tx: news.since(tx, newest)) == (newest, set())


def test_of_very_many_entries_everybody_is_told(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(news, "MOST", 3)
    with Pointsman(url) as pm:
        for _ in range(3):
            create(pm)
        last, told = pm.engine.db.read(lambda tx: news.since(tx, 0))
        assert told is None
        assert pm.engine.db.read(lambda tx: news.since(tx, last)) == (last, set())
