"""Taking back what was done: each effect by the one that is declared to undo it, the last one first.

Each is an operation of its own, written down before it happens like any other, so that whoever goes on after a crash undoes nothing twice.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from pointsman.engine import operations
from pointsman.engine.steps import Read, Steps, verb
from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel.operation import Happened, Operation
from pointsman.worker.effects import TIMEOUT_S, Effects, Find, Send


class Undoing(Effects):
    @verb
    def undo(
        self, sends: Mapping[str, Send], *, finds: Mapping[str, Find] | None = None, timeout_s: float = TIMEOUT_S
    ) -> Steps[Sequence[Operation]]:
        """Undo the task's effects, the last one first; what cannot be undone is answered, and stays.

        `sends` has what sends each undoing effect, by its name, `finds` what looks one up. An effect that happened and whose `undo` the
        task's state does not allow is refused as everywhere. While one is in doubt nothing is undone: settle it first, by
        calling its effect again."""
        report = yield from self._report()
        if doubtful := [item.name for item in report.in_doubt if item.compensates is None]:
            said = ", ".join(doubtful)
            raise Refused(Refusal("operation_in_doubt", f"nobody knows yet what there is to undo: {said}", task=self.task.id))
        declared = self._keeper.definition(self.task).effect
        undoing = {item.id: declared[item.effect or ""].undo or "" for item in report.undoable}
        if missing := sorted(set(undoing.values()) - sends.keys()):
            raise invalid(*((f"sends.{name}", "is what undoes an effect that has happened") for name in missing))
        for item in reversed(report.undoable):
            name = undoing[item.id]
            given = {"find": (finds or {}).get(name), "timeout_s": timeout_s, "compensates": item.id}
            yield from Effects.effect.steps(self, name, sends[name], **given)
        return report.not_undoable

    def _report(self) -> Steps[Happened]:
        self._goes_on()
        return (yield Read(partial(operations.happened, self.pm.engine.registry, self.task)))
