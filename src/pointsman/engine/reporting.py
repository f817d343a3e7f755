"""The verbs that sum up: what awaits a decision, what is known of one task, the published machines, figures to watch."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from pointsman.engine.door import principal
from pointsman.engine.past import numbered
from pointsman.engine.queries import entry
from pointsman.engine.reading import Reading, Tasks, decisions_of
from pointsman.engine.steps import Read, Steps, verb
from pointsman.engine.view import By, Id, page_size, task_named, typed
from pointsman.engine.views import decided_json, machine_json, task_json
from pointsman.errors import Refusal, Refused
from pointsman.kernel import effect
from pointsman.kernel.definition import Definition
from pointsman.kernel.rules import Principal, says
from pointsman.kernel.task import Task
from pointsman.store import feed, history, lists, machines, proposals, tasks
from pointsman.store.database import Tx
from pointsman.store.lists import FIRST, Filter, Position, position
from pointsman.types import Json

SCANNED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Figures:
    """What an operator watches: the last feed number, entries without one, proposals that wait for checks, and the
    unowned open tasks as (machine, state, count)."""

    feed: int
    unnumbered: bool
    pending: int
    waiting: list[tuple[str, str, int]]


class Reporting(Reading):
    @verb
    def approvals(
        self, *, by: By, session: str | None = None, limit: int | None = None, after: Task | Position | None = None
    ) -> Steps[Tasks]:
        """Open tasks that this principal may decide now, by last change, the longest waiting first."""
        who, count = principal(by), page_size(limit)
        start = position(after, "updated_at") if isinstance(after, Task) else after or FIRST
        return (yield Read(partial(self._decidable, who, session, count, start)))

    def _decidable(self, who: Principal, session: str | None, count: int, start: Position, tx: Tx) -> Tasks:
        decided_in = {source for item in self._published(tx) for event in item.events if event.decides for source in event.sources}
        wanted, found = Filter(states=sorted(decided_in), open=True), Tasks()
        while page := lists.page(tx, wanted, "updated_at", SCANNED_AT_ONCE, start):
            found += [task for task in (self.seen(tx, task, who, session) for task in page) if self._decides(tx, task)]
            if len(found) >= count or len(page) < SCANNED_AT_ONCE:
                break
            start = position(page[-1], "updated_at")
        return found[:count]

    def _decides(self, tx: Tx, task: Task) -> bool:
        definition = self.engine.registry.definition(tx, task.machine, task.machine_version)
        return any(definition.event[name].decides for name in task.allowed)

    def _published(self, tx: Tx) -> list[Definition]:
        return [self.engine.registry.definition(tx, row.name, row.version) for row in machines.every(tx)]

    @verb
    def report(self, id: Id) -> Steps[dict[str, Json]]:
        """The facts of a task for whoever audits it: as it stands, its whole history, every decision, what is still
        open and who may do it, and the effects that this would let happen."""
        wanted = task_named(id)
        yield from numbered()
        return (yield Read(partial(self._report, wanted)))

    def _report(self, wanted: str, tx: Tx) -> dict[str, Json]:
        decisions = decisions_of(tx, wanted)
        found = tasks.find(tx, wanted)
        assert found is not None, "its decisions were read"
        task = self.seen(tx, found.task, None, None)
        definition = self.engine.registry.definition(tx, task.machine, task.machine_version)
        return {
            "task": task_json(task),
            "as_of": feed.head(tx).seq,
            "created_by": task.created_by,
            "contributors": list(task.contributors),
            "entries": [entry(item).as_json() for item in history.of_task(tx, wanted, 0)],
            "decisions": [decided_json(item) for item in decisions],
            "open": {event.name: says(event.by) for event in definition.events if event.target(task.state) is not None},
            "effects": [item.as_json() for item in effect.allowed(definition, task)],
        }

    @verb
    def published(self, name: str | None = None) -> Steps[list[dict[str, Json]]]:
        """The newest served version of every machine, or of one: its definition, all that is drawn from it, and how
        many tasks each version has in each state."""
        typed(("name", name, str | None))
        if name is not None and name not in self.machines:
            raise Refused(Refusal("unknown_machine", "no such machine is served here"))
        counts = yield Read(lists.counted)
        return [machine_json(item, _by_version(item, counts)) for item in self.machines.values() if name in (None, item.name)]

    @verb
    def figures(self) -> Steps[Figures]:
        """What an operator watches."""
        return (yield Read(_figures))


def _figures(tx: Tx) -> Figures:
    return Figures(feed.head(tx).seq, feed.waits(tx), proposals.count_pending(tx), lists.waiting(tx))


def _by_version(definition: Definition, counts: list[tuple[str, int, str, int]]) -> dict[str, Any]:
    found: dict[str, dict[str, int]] = {str(definition.version): {}}
    for machine, version, state, count in counts:
        if machine == definition.name:
            found.setdefault(str(version), {})[state] = count
    return found
