"""The unit of work behind `finish_many`: one event of many tasks, each judged by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pointsman.engine.claim import offered
from pointsman.engine.decision import Deciding, Done
from pointsman.errors import Refusal
from pointsman.kernel.case import Proposal
from pointsman.store import tasks
from pointsman.store.database import Tx
from pointsman.store.tasks import Stored

Finished = Done | Refusal


@dataclass(frozen=True, slots=True)
class Part:
    """What is asked of one task."""

    task: str
    epoch: int | None
    args: Mapping[str, Any]


def many(asking: Deciding, about: Proposal, parts: Sequence[Part], tx: Tx, look: bool) -> list[Finished]:
    """What each comes to, in the order of `parts`. They are locked, and judged, in the order of their ids."""
    deciding = asking.gathering()
    found = tasks.find_all(tx, [part.task for part in parts])
    answers = dict[str, Finished]()
    for number, part in sorted(enumerate(parts), key=lambda item: item[1].task):
        proposal = replace(about, epoch=part.epoch, args=part.args)
        answers[part.task] = _one(deciding.part(number), tx, part.task, found.get(part.task), proposal, look)
    deciding.write_gathered(tx)
    return [answers[part.task] for part in parts]


def _one(deciding: Deciding, tx: Tx, task_id: str, found: Stored | None, proposal: Proposal, look: bool) -> Finished:
    if found is None:
        return Refusal("unknown_task", "no task has this id", task=task_id)
    return deciding.replayed(tx, look) or offered(deciding, tx, found, proposal)
