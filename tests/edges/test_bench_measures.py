"""The benchmark measures everything it says it does, here on the smallest sizes: its figures mean nothing, its lines do."""

import re
from pathlib import Path

from bench import load
from bench.__main__ import measure
from bench.python_api import drafting
from bench.table import HEAD, Effort, render
from pointsman import Pointsman

SMALLEST = Effort(seconds=0.05, rounds=1, rivals_s=0.2, looks=3, past=(60, 90), queued=(20, 30))


def test_every_figure_is_measured_and_printed(tmp_path: Path) -> None:
    lines = measure(tmp_path, SMALLEST)
    table = render(lines).splitlines()
    assert len(table) == len(lines) + 2
    assert [cell.strip() for cell in table[0].strip("|").split("|")] == list(HEAD)
    assert [line.name for line in lines if not re.search(r"\d", line.measured)] == []
    grown = [line for line in lines if line.aim.startswith("growth")]
    assert len(grown) == 16
    assert all(float(line.ratio) > 0 for line in grown)


def test_a_large_board_is_made_of_what_calls_would_write(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        task = drafting(pm)
        load.queue(pm, 5)
        load.move(pm, task, 40)
        assert len(pm.list(state="queued")) == 5
        assert pm.get(task.id).version == task.version + 40
        assert pm.verify().ok


def test_a_filled_queue_can_be_claimed_in_order(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/work.db") as pm:
        load.fill(pm, 3)
        load.fill(pm, 2, needs=["gpu"])
        claimed = [pm.claim("tasks", by="w") for _ in range(4)]
        assert [task is not None for task in claimed] == [True, True, True, False]
        assert len({task.id for task in claimed if task}) == 3
