"""The feed as server-sent events: order, resuming, heartbeats, resets, and one poller for any number of readers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from edges.v1_world import Board, board, paths, refused
from pointsman import StoreError
from pointsman.engine.pointsman import Aio
from pointsman.http.v1 import feed

PATIENCE_S = 20


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Board]:
    with board(tmp_path) as opened:
        yield opened


class Reader:
    """A client of the feed over ASGI, which takes each chunk when it asks for it and no sooner."""

    def __init__(self, api: Any, query: str, headers: dict[str, str]):
        self.api, self.left = api, asyncio.Event()
        self.chunks: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        self.status, self.headers = 0, dict[bytes, bytes]()
        named = [(b"host", b"127.0.0.1"), *((name.lower().encode(), value.encode()) for name, value in headers.items())]
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": "/v1/feed",
            "raw_path": b"/v1/feed",
            "query_string": query.encode(),
            "root_path": "",
            "headers": named,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        self.text = ""

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
        elif message["body"]:
            await self.chunks.put(message["body"])

    async def event(self) -> dict[str, Any]:
        """The next event or comment."""
        async with asyncio.timeout(PATIENCE_S):
            while "\n\n" not in self.text:
                self.text += (await self.chunks.get()).decode()
        block, _, self.text = self.text.partition("\n\n")
        if block.startswith(":"):
            return {"comment": block[1:].strip()}
        members = dict(line.split(": ", 1) for line in block.split("\n"))
        return {"id": int(members["id"]), "event": members["event"], "data": json.loads(members["data"])}

    async def entries(self, count: int) -> list[dict[str, Any]]:
        """So many events, comments left out."""
        found = list[dict[str, Any]]()
        while len(found) < count:
            if "comment" not in (event := await self.event()):
                found.append(event)
        return found


@asynccontextmanager
async def reading(at: Board, query: str = "", **headers: str) -> AsyncIterator[Reader]:
    reader = Reader(at.api, query, headers)
    task = asyncio.create_task(at.api(reader.scope, reader.receive, reader.send))
    try:
        yield reader
    finally:
        reader.left.set()
        async with asyncio.timeout(PATIENCE_S):
            await task


def run(at: Board, scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    at.runner.run(scenario())


def test_every_entry_comes_in_order_under_its_number(at: Board) -> None:
    id = at.bring("drafting")["id"]

    async def scenario() -> None:
        async with reading(at) as reader:
            events = await reader.entries(3)
            assert (reader.status, reader.headers[b"content-type"]) == (200, b"text/event-stream; charset=utf-8")
            assert reader.headers[b"cache-control"] == b"no-store"
            assert [(event["id"], event["event"], event["data"]["event"]) for event in events] == [
                (1, "entry", "create"),
                (2, "entry", "claim"),
                (3, "entry", "start_draft"),
            ]
            await at.pm.aio.propose(id, "fail", by="bob", epoch=1)
            assert (await reader.entries(1))[0]["data"] == [entry.as_json() for entry in at.pm.history(id)][3]

    run(at, scenario)


def test_a_reader_goes_on_where_it_was(at: Board) -> None:
    at.bring("approved")

    async def scenario() -> None:
        for query, headers, first in (
            ("after=2", {}, 3),
            ("", {"Last-Event-ID": "3"}, 4),
            ("after=1", {"Last-Event-ID": "4"}, 5),
            ("after=0", {}, 1),
        ):
            async with reading(at, query, **headers) as reader:
                assert [event["id"] for event in await reader.entries(6 - first)] == list(range(first, 6))

    run(at, scenario)


def test_who_has_all_hears_only_of_what_is_new(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.02)
    at.create()

    async def scenario() -> None:
        async with reading(at, "after=1") as reader:
            comments = [(await reader.event())["comment"] for _ in range(3)]
            assert comments == ["the feed", "still here", "still here"]
            await at.pm.aio.create("tasks", {"title": "t", "brief": "b"}, by="ann")
            assert [event["id"] for event in await reader.entries(1)] == [2]

    run(at, scenario)


def test_a_place_beyond_the_feed_is_told_to_begin_anew(at: Board) -> None:
    at.create()

    async def scenario() -> None:
        async with reading(at, **{"Last-Event-ID": "99"}) as reader:
            assert await reader.entries(1) == [{"id": 1, "event": "reset", "data": {"seq": 1}}]
            await at.pm.aio.create("tasks", {"title": "t", "brief": "b"}, by="ann")
            assert [event["id"] for event in await reader.entries(1)] == [2]

    run(at, scenario)


def test_a_place_before_what_is_kept_is_told_so(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it will be once the beginning of a feed was pruned."""
    at.bring("drafting")
    whole: Any = Aio.feed

    async def pruned(self: Aio, after: int, limit: int, wait_s: float) -> Any:
        return await self.drive(whole.steps(self, max(after, 2), limit, wait_s=wait_s))

    monkeypatch.setattr(Aio, "feed", pruned)

    async def scenario() -> None:
        async with reading(at, "after=1") as reader:
            reset, entry = await reader.entries(2)
            assert (reset, entry["id"]) == ({"id": 2, "event": "reset", "data": {"seq": 2}}, 3)

    run(at, scenario)


@pytest.mark.parametrize(("query", "headers", "path"), [
    ("after=-1", {}, "query.after"),
    ("after=x", {}, "query.after"),
    ("after=1&after=2", {}, "query.after"),
    ("since=1", {}, "query"),
    ("", {"Last-Event-ID": ""}, "header.Last-Event-ID"),
    ("", {"Last-Event-ID": "1.5"}, "header.Last-Event-ID"),
    ("", {"Last-Event-ID": "9" * 30}, "header.Last-Event-ID"),
])  # fmt: skip
def test_a_place_that_is_none(at: Board, query: str, headers: dict[str, str], path: str) -> None:
    assert paths(refused(at.send("GET", f"/v1/feed?{query}", headers=headers), 422, "invalid")) == [path]


def test_one_poller_serves_all_readers_and_ends_with_the_last(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    at.create()
    asked = list[int]()
    whole: Any = Aio.feed

    async def counted(self: Aio, after: int, limit: int, wait_s: float) -> Any:
        asked.append(after)
        return await self.drive(whole.steps(self, after, limit, wait_s=wait_s))

    monkeypatch.setattr(Aio, "feed", counted)
    monkeypatch.setattr(feed, "GATHER_S", 0.01)

    async def scenario() -> None:
        shared = at.api.feed
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(_two_entries(at))
            while shared.readers < 8:
                await asyncio.sleep(0)
            await at.pm.aio.create("tasks", {"title": "t", "brief": "b"}, by="ann")
        assert asked.count(0) == 8, "what came before the poller each reads for itself"
        assert (shared.readers, shared.poller, len(shared.kept)) == (0, None, 0)

    run(at, scenario)


async def _two_entries(at: Board) -> None:
    async with reading(at) as reader:
        assert [event["id"] for event in await reader.entries(2)] == [1, 2]


def test_a_reader_who_takes_nothing_holds_nobody_up(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """It falls behind all that is kept, and still gets every entry once it reads."""
    monkeypatch.setattr(feed, "KEPT", 4)
    monkeypatch.setattr(feed, "PAGE", 3)
    at.api.feed.kept = feed.deque(maxlen=4)

    async def scenario() -> None:
        async with reading(at) as slow, reading(at) as quick:
            for number in range(1, 21):
                await at.pm.aio.create("tasks", {"title": "t", "brief": "b"}, by="ann")
                assert [event["id"] for event in await quick.entries(1)] == [number]
            assert [event["id"] for event in await slow.entries(20)] == list(range(1, 21))

    run(at, scenario)


def test_the_store_may_be_away_for_a_while(at: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: Any = Aio.feed
    failures = iter([True] * 5)

    async def failing(self: Aio, after: int, limit: int, wait_s: float) -> Any:
        if after == 1 and next(failures, False):
            raise StoreError("store_busy", "busy")
        return await self.drive(whole.steps(self, after, limit, wait_s=wait_s))

    at.create()
    monkeypatch.setattr(Aio, "feed", failing)
    monkeypatch.setattr(feed, "GATHER_S", 0.01)
    monkeypatch.setattr(feed, "HEARTBEAT_S", 0.02)

    async def scenario() -> None:
        async with reading(at) as reader:
            assert [event["id"] for event in await reader.entries(1)] == [1]
            await at.pm.aio.create("tasks", {"title": "t", "brief": "b"}, by="ann")
            assert [event["id"] for event in await reader.entries(1)] == [2]

    run(at, scenario)


def test_closing_the_feed_ends_every_stream(at: Board) -> None:
    async def scenario() -> None:
        reader = Reader(at.api, "", {})
        task = asyncio.create_task(at.api(reader.scope, reader.receive, reader.send))
        assert await reader.event() == {"comment": "the feed"}
        at.api.feed.close()
        async with asyncio.timeout(PATIENCE_S):
            await task

    run(at, scenario)
