"""pgqueuer: jobs of one entrypoint, by its own manager over asyncpg."""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

import asyncpg
from driver import rate, say, start
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.domain.types import QueueExecutionMode
from pgqueuer.queries import Queries


async def _opened(url: str) -> PgQueuer:
    return PgQueuer(AsyncpgDriver(await asyncpg.connect(url)))


async def setup(url: str) -> None:
    await Queries(AsyncpgDriver(await asyncpg.connect(url))).install()


async def enqueue(url: str, count: int) -> None:
    queue = Queries(AsyncpgDriver(await asyncpg.connect(url)))
    began = time.perf_counter()
    for size in _groups(count):
        await queue.enqueue(["elsewhere"] * size, [None] * size, [0] * size)
    rate(count, began)


def _groups(count: int) -> list[int]:
    return [min(1_000, count - begun) for begun in range(0, count, 1_000)]


async def jobs(url: str, batch: int, count: int) -> None:
    queuer = await _opened(url)

    @queuer.entrypoint("noop")
    async def noop(_: Any) -> None:
        return None

    for size in _groups(count):
        await queuer.qm.queries.enqueue(["noop"] * size, [None] * size, [0] * size)
    began = time.perf_counter()
    await queuer.qm.run(batch_size=batch, mode=QueueExecutionMode.drain)
    rate(count, began)


async def hang(url: str) -> None:
    queuer = await _opened(url)

    @queuer.entrypoint("stuck")
    async def stuck(_: Any) -> None:
        say(started=True)
        await asyncio.Event().wait()

    await queuer.qm.queries.enqueue("stuck", None)
    await queuer.qm.run()


async def recover(url: str) -> None:
    queuer = await _opened(url)

    @queuer.entrypoint("stuck")
    async def stuck(_: Any) -> None:
        say(again=True)
        queuer.shutdown.set()

    with suppress(asyncio.CancelledError):
        await queuer.qm.run(dequeue_timeout=timedelta(seconds=1))


start(setup=setup, enqueue=enqueue, jobs=jobs, hang=hang, recover=recover)
