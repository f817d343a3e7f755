"""The taxonomy of "no": every code that any door can answer, with its HTTP status, exit code and meaning.

The table is the single home; doors look codes up and docs/errors.md is drawn from it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

OK, FAILED, USAGE, REFUSED, NOT_FOUND, UNAVAILABLE = range(6)


@dataclass(frozen=True, slots=True)
class Code:
    """A stable code. `http` is the status on `/v1`, `exit` the exit status of the command line."""

    http: int
    exit: int
    meaning: str


CODES: Mapping[str, Code] = {
    "malformed": Code(400, USAGE, "the request is not one JSON object with unique keys and finite numbers"),
    "unauthenticated": Code(401, REFUSED, "no valid credential came with the request"),
    "too_large": Code(413, USAGE, "the request or one of its parts is over a size limit"),
    "unsupported_media": Code(415, USAGE, "the body is not plain application/json"),
    "invalid": Code(422, USAGE, "one or more values do not fit; every fault is listed with its path"),
    "pruned": Code(410, NOT_FOUND, "this version's payload was pruned"),
    "rate_limited": Code(429, REFUSED, "too many requests from this caller"),
    "unknown_task": Code(404, NOT_FOUND, "no task has this id"),
    "unknown_event": Code(404, NOT_FOUND, "the machine declares no such event"),
    "unknown_machine": Code(404, NOT_FOUND, "no such machine is served here"),
    "unknown_proposal": Code(404, NOT_FOUND, "no proposal has this id"),
    "unknown_hold": Code(404, NOT_FOUND, "no hold has this id"),
    "unknown_hook": Code(404, NOT_FOUND, "no hook has this id, or it was removed"),
    "unknown_operation": Code(404, NOT_FOUND, "no operation has this id"),
    "idempotency_conflict": Code(422, REFUSED, "the idempotency key was used with another request"),
    "dedupe_conflict": Code(422, REFUSED, "the dedupe_key is known with other content"),
    "identity_mismatch": Code(403, REFUSED, "the name given is not the credential's"),
    "role_missing": Code(403, REFUSED, "this principal lacks a role the event asks for"),
    "self_approval": Code(403, REFUSED, "this principal owned or contributed to what is to be judged"),
    "stale_version": Code(409, REFUSED, "the task is no longer at the expected version"),
    "stale_content": Code(409, REFUSED, "the content is no longer what was shown or judged"),
    "already_decided": Code(409, REFUSED, "somebody decided this before"),
    "wrong_state": Code(409, REFUSED, "the event is not open in the task's state"),
    "not_owner": Code(409, REFUSED, "somebody else, or nobody, owns the task"),
    "lease_lost": Code(409, REFUSED, "the epoch is not the current one: somebody took the task over"),
    "already_claimed": Code(409, REFUSED, "somebody holds the task"),
    "nothing_to_claim": Code(409, REFUSED, "no eligible task waits"),
    "parked": Code(409, REFUSED, "the task was taken out of work until an operator unparks it"),
    "held": Code(409, REFUSED, "an operator's hold stops this"),
    "limit_reached": Code(409, REFUSED, "a declared limit is used up"),
    "blocked": Code(409, REFUSED, "the task waits for another task"),
    "machine_unavailable": Code(409, REFUSED, "this process lacks a function that the task's machine version needs"),
    "guard_failed": Code(409, REFUSED, "a guard said no"),
    "evidence_failed": Code(409, REFUSED, "a required check did not pass"),
    "evidence_pending": Code(409, REFUSED, "a required check has not been judged yet"),
    "approvals_missing": Code(409, REFUSED, "more approvals are needed"),
    "operation_in_doubt": Code(409, REFUSED, "an operation was started and its outcome is unknown"),
    "store_busy": Code(503, UNAVAILABLE, "the store did not answer in time"),
    "store_unavailable": Code(503, UNAVAILABLE, "the store cannot be used"),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, and what now. `failed` lists guards, checks, rules or faults with their values; `allowed` the
    events open to this caller now; `unblock` who or what can change the answer. `recorded` is true only when a
    declared `otherwise` branch was taken, and then `version` is the new one."""

    code: str
    detail: str
    task: str | None = None
    state: str | None = None
    version: int | None = None
    failed: Sequence[Mapping[str, Any]] = ()
    allowed: Sequence[str] = ()
    unblock: Sequence[str] = ()
    recorded: bool = False
    outcome: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        members = {
            "code": self.code,
            "detail": self.detail,
            "task": self.task,
            "state": self.state,
            "version": self.version,
            "failed": [dict(item) for item in self.failed],
            "allowed": list(self.allowed),
            "unblock": list(self.unblock),
            "recorded": self.recorded,
        }
        return members | ({"outcome": self.outcome} if self.outcome else {}) | dict(self.extra)


def refusal_from(form: Mapping[str, Any]) -> Refusal:
    """Read back what `Refusal.as_json` wrote."""
    own = {name: value for name, value in form.items() if name in Refusal.__slots__}
    return Refusal(**own, extra={name: value for name, value in form.items() if name not in Refusal.__slots__})


class Refused(Exception):
    """A proposal or request was answered with no. Carries the members of its `Refusal` as attributes; `replayed` when
    this is an earlier answer to the same request."""

    def __init__(self, refusal: Refusal, *, replayed: bool = False):
        super().__init__(f"{refusal.code}: {refusal.detail}")
        self.refusal = refusal
        self.replayed = replayed

    @property
    def code(self) -> str:
        return self.refusal.code

    @property
    def detail(self) -> str:
        return self.refusal.detail

    @property
    def task(self) -> str | None:
        return self.refusal.task

    @property
    def state(self) -> str | None:
        return self.refusal.state

    @property
    def version(self) -> int | None:
        return self.refusal.version

    @property
    def failed(self) -> Sequence[Mapping[str, Any]]:
        return self.refusal.failed

    @property
    def allowed(self) -> Sequence[str]:
        return self.refusal.allowed

    @property
    def unblock(self) -> Sequence[str]:
        return self.refusal.unblock

    @property
    def recorded(self) -> bool:
        return self.refusal.recorded


class StoreError(Refused):
    """The store failed. `outcome` is "not_done" when nothing was written, "unknown" when a commit may have been."""

    def __init__(self, code: str, detail: str, outcome: str = "not_done"):
        super().__init__(Refusal(code, detail, outcome=outcome))

    @property
    def outcome(self) -> str:
        return self.refusal.outcome or "not_done"


def invalid(*faults: tuple[str, str], detail: str | None = None) -> Refused:
    """Faults as (path, message), all at once. The message never echoes the input."""
    listed = [{"path": path, "message": message} for path, message in faults]
    return Refused(
        Refusal("invalid", detail or "; ".join(f"{path}: {message}" if path else message for path, message in faults), failed=listed)
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a machine's definition, with the line it was declared on (0 when unknown)."""

    code: str
    message: str
    place: str
    line: int = 0
    warning: bool = False

    def __str__(self) -> str:
        where = f"{self.place}, line {self.line}" if self.line else self.place
        return f"{where}: {self.message} [{self.code}]"


class DefinitionError(Exception):
    """Every fault of a machine at once."""

    def __init__(self, machine: str, faults: Sequence[Fault]):
        super().__init__(f"machine {machine!r} has {len(faults)} fault(s):\n" + "\n".join(f"  {fault}" for fault in faults))
        self.machine = machine
        self.faults = tuple(faults)
