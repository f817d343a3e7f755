"""oban: jobs of one worker on one queue, by its own instance over psycopg."""

import asyncio
import logging
import time
from typing import Any

from driver import rate, say, start
from oban import Oban, worker
from oban.schema import install
from psycopg_pool import AsyncConnectionPool

logging.disable(logging.CRITICAL)
left = [0]
done = asyncio.Event()
hangs = True


@worker(queue="noop")
class Noop:
    async def process(self, _: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            done.set()


@worker(queue="elsewhere")
class Elsewhere:
    async def process(self, _: Any) -> None:
        return None


@worker(queue="stuck")
class Stuck:
    async def process(self, _: Any) -> None:
        if hangs:
            say(started=True)
            await asyncio.Event().wait()
        say(again=True)


def _pool(url: str) -> AsyncConnectionPool[Any]:
    return AsyncConnectionPool(url, min_size=4, max_size=16, open=False)


async def setup(url: str) -> None:
    async with _pool(url) as pool:
        await install(pool)


async def enqueue(url: str, count: int) -> None:
    async with _pool(url) as pool, Oban(pool=pool) as client:
        began = time.perf_counter()
        await _put(client, Elsewhere, count)
        rate(count, began)


async def _put(client: Oban, kind: Any, count: int) -> None:
    for begun in range(0, count, 1_000):
        await client.enqueue_many(*(kind.new() for _ in range(min(1_000, count - begun))))


async def jobs(url: str, batch: int, count: int) -> None:
    """Done when the last one has run and no row says otherwise."""
    async with _pool(url) as pool:
        async with Oban(pool=pool) as client:
            await _put(client, Noop, count)
        left[0] = count
        began = time.perf_counter()
        async with Oban(pool=pool, queues={"noop": batch}):
            await done.wait()
            while await _unfinished(pool):
                await asyncio.sleep(0.005)
            rate(count, began)


async def _unfinished(pool: AsyncConnectionPool[Any]) -> bool:
    async with pool.connection() as session:
        found = await session.execute("SELECT EXISTS (SELECT 1 FROM oban_jobs WHERE queue = 'noop' AND state <> 'completed')")
        row = await found.fetchone()
        return row is not None and row[0]


async def hang(url: str) -> None:
    async with _pool(url) as pool, Oban(pool=pool, queues={"stuck": 1}) as client:
        await client.enqueue(Stuck.new())
        await asyncio.Event().wait()


async def recover(url: str) -> None:
    global hangs
    hangs = False
    async with _pool(url) as pool, Oban(pool=pool, queues={"stuck": 1}):
        await asyncio.Event().wait()


start(setup=setup, enqueue=enqueue, jobs=jobs, hang=hang, recover=recover)
