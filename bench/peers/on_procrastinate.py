"""procrastinate: jobs of one task, by its own worker over psycopg."""

import asyncio
import logging
import time

from driver import rate, say, start
from procrastinate import App, PsycopgConnector

logging.disable(logging.CRITICAL)


def _app(url: str) -> App:
    return App(connector=PsycopgConnector(conninfo=url))


async def setup(url: str) -> None:
    app = _app(url)
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(url: str, count: int) -> None:
    app = _app(url)

    @app.task(name="elsewhere", queue="elsewhere")
    async def elsewhere() -> None:
        return None

    async with app.open_async():
        began = time.perf_counter()
        for begun in range(0, count, 1_000):
            await elsewhere.batch_defer_async(*({} for _ in range(min(1_000, count - begun))))
        rate(count, began)


async def jobs(url: str, batch: int, count: int) -> None:
    app = _app(url)

    @app.task(name="noop", queue="noop")
    async def noop() -> None:
        return None

    async with app.open_async():
        for begun in range(0, count, 1_000):
            await noop.batch_defer_async(*({} for _ in range(min(1_000, count - begun))))
        began = time.perf_counter()
        await app.run_worker_async(queues=["noop"], concurrency=batch, wait=False, install_signal_handlers=False)
        rate(count, began)


async def hang(url: str) -> None:
    app = _app(url)

    @app.task(name="stuck", queue="stuck")
    async def stuck() -> None:
        say(started=True)
        await asyncio.Event().wait()

    async with app.open_async():
        await stuck.defer_async()
        await app.run_worker_async(queues=["stuck"], install_signal_handlers=False)


async def recover(url: str) -> None:
    app = _app(url)

    @app.task(name="stuck", queue="stuck")
    async def stuck() -> None:
        say(again=True)

    async with app.open_async():
        await app.run_worker_async(queues=["stuck"], install_signal_handlers=False)


start(setup=setup, enqueue=enqueue, jobs=jobs, hang=hang, recover=recover)
