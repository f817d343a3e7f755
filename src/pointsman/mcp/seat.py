"""Where a call comes from: who its connection says it is, and what the connection remembers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel import ingest
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.kernel.task import Task
from pointsman.worker.keeper import Keeper, Kept

Key: TypeAlias = tuple[str, str]


class Held:
    """What a connection acquired, by owner and task: the epochs, so that a model need not send them, and with a keeper
    the leases, so that it need not renew them."""

    def __init__(self, keeper: Keeper | None = None):
        self.epochs = dict[Key, int]()
        self._keeper = keeper
        self._kept = dict[Key, Kept]()

    def note(self, task: Task, by: Principal, asked_at: float, *, acquired: bool = False, lease_s: float | None = None) -> None:
        """Remember what an accepted call says that was made at `asked_at`. A task that a second connection of the same
        name holds is not ours."""
        key = by.name, task.id
        if acquired:
            self.epochs[key] = task.epoch
        elif task.owner != by.name or task.epoch != self.epochs.get(key):
            self.epochs.pop(key, None)
        if self._keeper is not None:
            self._keep(self._keeper, key, task, by, asked_at, lease_s)

    def _keep(self, keeper: Keeper, key: Key, task: Task, by: Principal, asked_at: float, lease_s: float | None) -> None:
        """Every accepted call begins the keeping anew: it may follow a loss that only the clock saw. The last wish about
        the lease's length stands."""
        before = self._kept.pop(key, None)
        if before is not None:
            keeper.let_go(before)
        if key in self.epochs:
            wanted = before.lease_s if before is not None and lease_s is None else lease_s
            self._kept[key] = keeper.keep(task, by, asked_at, lease_s=wanted)


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
