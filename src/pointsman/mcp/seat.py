"""Where a call comes from: who its connection says it is, and what the connection remembers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel import ingest
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.task import Task


@dataclass(slots=True)
class Held:
    """The epochs of the tasks that this connection acquired, by owner and task, so that a model need not send them."""

    epochs: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def note(self, task: Task, by: Principal, *, acquired: bool) -> None:
        """Remember what an accepted call says. A task that a second connection of the same name holds is not ours."""
        key = by.name, task.id
        if acquired:
            self.epochs[key] = task.epoch
        elif task.owner != by.name or task.epoch != self.epochs.get(key):
            self.epochs.pop(key, None)


@dataclass(frozen=True, slots=True)
class Seat:
    """`names` are those the connection gave: one is who calls, none leaves it to the argument `as`, two that differ
    are refused. `auth` says how the name is known. `held` is None where every request stands alone."""

    names: Sequence[str] = ()
    auth: str = "open"
    held: Held | None = None
    session: str | None = None

    @property
    def named(self) -> bool:
        return bool(self.names)

    def principal(self, args: Mapping[str, Any]) -> Principal | None:
        """Who calls; None for a reader that gives no name. An agent, in open mode with every role."""
        names = {*self.names, *([args["as"]] if args.get("as") is not None else [])}
        if len(names) > 1:
            raise Refused(Refusal("identity_mismatch", "the request names its caller in two ways"))
        if not names:
            return None
        name, path = names.pop(), "Pointsman-As" if self.named else "as"
        if found := ingest.identifier(name, path):
            raise invalid(*found)
        if name.casefold() == ANONYMOUS:
            raise invalid((path, "is reserved for callers without a name"))
        return Principal(name, auth=self.auth)
