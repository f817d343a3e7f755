"""A stdio process whose client closes the connection gives back what it held."""

import asyncio
from pathlib import Path

from acceptance.spoken import over_stdio
from pointsman import Pointsman, Tasks


def test_a_closed_connection_gives_back_what_it_held(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/pointsman.db", [Tasks]) as pm:
        held, kept = (pm.create("tasks", {"title": "t", "brief": "b"}, by="ann").id for _ in range(2))
        pm.claim("tasks", by="worker-a", id=kept)
        asyncio.run(_taken(tmp_path, held))
        assert [(entry.kind, entry.by) for entry in pm.history(held)][-2:] == [("acquire", "worker-a"), ("release", "worker-a")]
        assert (pm.get(held).state, pm.get(held).owner, pm.get(kept).owner) == ("queued", None, "worker-a")


async def _taken(folder: Path, task_id: str) -> None:
    async with over_stdio("--as", "worker-a", folder=folder) as worker:
        task = await worker.call("claim_task", task_id=task_id)
        renewed = await worker.call("renew_lease", task_id=task_id)
        assert (task["owner"], renewed["version"]) == ("worker-a", task["version"])
