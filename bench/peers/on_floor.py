"""The floor under all figures: a guarded UPDATE and one history INSERT in one statement, by asyncpg, on sixteen connections."""

import asyncio
import time
import uuid

import asyncpg
from driver import rate, start

TABLES = """
CREATE TABLE floor_task (id uuid PRIMARY KEY, state text NOT NULL, version bigint NOT NULL);
CREATE TABLE floor_history (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, task uuid NOT NULL, version bigint NOT NULL, what text);
"""
STEP = """
WITH moved AS (UPDATE floor_task SET version = version + 1 WHERE id = $1 AND state = 'open' AND version = $2 RETURNING id, version)
INSERT INTO floor_history (task, version, what) SELECT id, version, 'step' FROM moved RETURNING version
"""


async def setup(url: str) -> None:
    session = await asyncpg.connect(url)
    await session.execute(TABLES)
    await session.close()


async def steps(url: str, callers: int, count: int) -> None:
    sessions = [await asyncpg.connect(url) for _ in range(callers)]
    tasks = [uuid.uuid4() for _ in sessions]
    for session, task in zip(sessions, tasks, strict=True):
        await session.execute("INSERT INTO floor_task VALUES ($1, 'open', 1)", task)
    began = time.perf_counter()
    await asyncio.gather(*(_steps(session, task, count // callers) for session, task in zip(sessions, tasks, strict=True)))
    rate(count // callers * callers, began)
    for session in sessions:
        await session.close()


async def _steps(session: "asyncpg.Connection", task: uuid.UUID, count: int) -> None:
    for version in range(1, count + 1):
        assert await session.fetchval(STEP, task, version) == version + 1


start(setup=setup, steps=steps)
