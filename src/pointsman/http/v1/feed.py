"""The feed as server-sent events: every entry of history, in feed order, to any number of readers.

One poller waits for new entries for all readers of a process and keeps the last of them. A reader goes at its own pace:
it takes from what is kept, or reads the store where it has fallen behind, so a slow one holds nobody up and nothing is
queued for it. The id of an event is its feed number, and a reader who comes back with it goes on behind it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from itertools import islice

from starlette.responses import Response, StreamingResponse
from starlette.types import Send

from pointsman.engine.pointsman import Aio
from pointsman.engine.queries import Entry
from pointsman.errors import Refused
from pointsman.http.answer import encode
from pointsman.http.v1.operation import Asked

log = logging.getLogger("pointsman")

LISTEN_S = 25.0
GATHER_S = 0.05
HEARTBEAT_S = 15.0
PAGE = 200
KEPT = 1_000
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
HEARTBEAT = b": still here\n\n"

Event = tuple[int, bytes]


class Feed:
    """What the readers of one process share. `close` ends every stream."""

    def __init__(self, aio: Aio):
        self.aio = aio
        self.kept: deque[Event] = deque(maxlen=KEPT)
        self.readers = 0
        self.news = asyncio.Event()
        self.closed = False
        self.poller: asyncio.Task[None] | None = None

    def close(self) -> None:
        self.closed = True
        self._wake()

    async def stream(self, after: int, first: bytes, last: int) -> AsyncGenerator[bytes, None]:
        """Events beyond a feed number until the reader goes or the server stops; `last` is the last number there is."""
        yield first
        with self._reading(last):
            while not self.closed:
                news = self.news  # before looking: what comes meanwhile sets this one
                if events := await self._beyond(after):
                    if events[0][0] != after + 1:
                        yield reset(events[0][0] - 1)
                    yield b"".join(text for _, text in events)
                    after = events[-1][0]
                elif not await _heard(news):
                    yield HEARTBEAT

    async def _beyond(self, after: int) -> list[Event]:
        if self.kept and self.kept[0][0] <= after + 1:
            return list(islice(self.kept, after + 1 - self.kept[0][0], None))
        return await self._read(after)

    async def _read(self, after: int, wait_s: float = 0) -> list[Event]:
        """A page of the store's; none while the store is away, which readers outlast."""
        try:
            return [event(entry) for entry in await self.aio.feed(after=after, limit=PAGE, wait_s=wait_s)]
        except Refused as error:
            log.warning("feed: %s", error)
            return []

    @contextmanager
    def _reading(self, last: int) -> Iterator[None]:
        """The poller runs while anybody reads."""
        self.readers += 1
        if self.poller is None:
            self.poller = asyncio.create_task(self._poll(last))
        try:
            yield
        finally:
            self.readers -= 1
            if self.readers == 0 and self.poller is not None:
                self.poller.cancel()
                self.poller = None
                self.kept.clear()

    async def _poll(self, last: int) -> None:
        """Entries are told as they come, those of a moment together."""
        while True:
            events = await self._read(last, LISTEN_S)
            if events:
                self.kept.extend(events)
                last = events[-1][0]
                self._wake()
            if len(events) < PAGE:
                await asyncio.sleep(GATHER_S)

    def _wake(self) -> None:
        heard, self.news = self.news, asyncio.Event()
        heard.set()


async def _heard(news: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(HEARTBEAT_S):
            await news.wait()
    except TimeoutError:
        return False
    return True


def event(entry: Entry) -> Event:
    assert entry.seq is not None, "what the feed shows has a number"
    return entry.seq, b"id: %d\nevent: entry\ndata: %s\n\n" % (entry.seq, encode(entry.as_json()))


def reset(seq: int) -> bytes:
    """The reader's place is not in the feed: what it knows is not a beginning of what follows `seq`."""
    return b'id: %d\nevent: reset\ndata: {"seq":%d}\n\n' % (seq, seq)


async def read(asked: Asked) -> Response:
    """The stream, behind the last number that the reader says it has."""
    last = await asked.pm.as_of()
    wanted = asked.given["after"] if asked.given["Last-Event-ID"] is None else asked.given["Last-Event-ID"]
    known = wanted <= last
    events = asked.feed.stream(wanted if known else last, b": the feed\n\n" if known else reset(last), last)
    return Stream(events, HEADERS, "text/event-stream")


class Stream(StreamingResponse):
    """Closes its events with the connection, so that a reader who went away is one no longer."""

    def __init__(self, events: AsyncGenerator[bytes, None], headers: Mapping[str, str], media_type: str):
        super().__init__(events, headers=headers, media_type=media_type)
        self.events = events

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.events):
            await super().stream_response(send)
