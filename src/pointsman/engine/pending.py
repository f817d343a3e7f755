"""Proposals that wait for their checks: durable before the check begins, settled by whichever process is alive.

    begin → (the checks run, in any process) → settle

`settle` decides again from the start, rights included, on the task as it is then. A verdict counts when the check's
inputs and the epoch are what they were; else the proposal ends in `stale_content`.
"""

from dataclasses import asdict, replace
from typing import Any

from pointsman.engine import holding
from pointsman.engine.asking import as_free, case_of, freed
from pointsman.engine.decision import Asked, Deciding, Done, Pending, answered, find, weighed
from pointsman.engine.door import Call, Door
from pointsman.engine.record import Chance
from pointsman.engine.registry import Registry
from pointsman.errors import Refusal, Refused, StoreError, refusal_from
from pointsman.kernel import decide as kernel
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.chain import canonical
from pointsman.kernel.decide import Accept, NeedChecks, Refuse
from pointsman.kernel.refuse import owns
from pointsman.kernel.rules import Principal
from pointsman.store import holds, proposals, tasks
from pointsman.store.database import Tx
from pointsman.store.proposals import Kept
from pointsman.store.requests import Request
from pointsman.store.tasks import Stored
from pointsman.types import uuid7


def begin(tx: Tx, deciding: Deciding, case: Case, asked: Asked) -> Pending:
    """Make a proposal durable; it supersedes the one that was pending for the task."""
    task, call = case.task, deciding.call
    if older := proposals.pending(tx, task.id):
        proposals.settle(tx, older, "superseded", tx.now)
    row = Kept(
        id=uuid7(tx.now, deciding.chance(74)),
        task=task.id,
        event=case.proposal.event,
        asked=canonical(_kept_call(call, case.proposal, task.epoch)),
        principal=call.by.name,
        request_key=call.request.key,
        request_digest=call.request.digest,
        created_at=tx.now,
    )
    proposals.add(tx, row)
    if owns(task, call.by, call.session):
        tasks.prolong(tx, task.id, tx.now + proposals.HELD)
    return Pending(row.id, task.id, asked)


def requested(tx: Tx, deciding: Deciding, look: bool) -> Pending | Done | None:
    """The proposal made before under this idempotency key: its outcome, or that it is still pending."""
    if not (look or deciding.call.given):
        return None
    kept = proposals.requested(tx, deciding.call.by.name, deciding.call.request.key)
    if kept is None:
        return None
    deciding.same_request(kept.request_digest, kept.task)
    if kept.status == "pending":
        return Pending(kept.id, kept.task)
    return replace(outcome(tx, deciding.registry, kept, replayed=not look), replayed=not look)


def outcome(tx: Tx, registry: Registry, kept: Kept, *, replayed: bool = False) -> Done:
    """What a settled proposal came to; a refusal is raised."""
    by = _call(kept).by
    if kept.version is not None:
        return answered(tx, registry, by, kept.task, kept.version)
    if kept.refused is not None:
        raise Refused(refusal_from(kept.refused), replayed=replayed)
    raise Refused(Refusal("stale_content", "a newer proposal for this task superseded this one", task=kept.task), replayed=replayed)


def settled(registry: Registry, proposal_id: str, tx: Tx) -> Done | None:
    """The outcome of a proposal, None while it is pending."""
    kept = found_proposal(tx, proposal_id)
    return None if kept.status == "pending" else outcome(tx, registry, kept)


def examine(tx: Tx, registry: Registry, proposal_id: str) -> Pending | None:
    """What a pending proposal needs now, for a process that takes it over; None when it was settled meanwhile."""
    kept = proposals.find(tx, proposal_id)
    if kept is None or kept.status != "pending":
        return None
    found = find(tx, kept.task)
    case = _asked(tx, registry, kept, found)
    decision = _weighed(tx, _free(tx, registry, found, case), {}, deciding=False)
    checks = decision if isinstance(decision, NeedChecks) else NeedChecks((), case.task.epoch)
    return Pending(kept.id, kept.task, Asked(case.machine, checks))


def settle(tx: Tx, registry: Registry, chance: Chance, proposal_id: str, judged: kernel.Judged, ended: set[str]) -> Done:
    """Decide a pending proposal, now that its checks have spoken, and write its outcome with the step; `ended` comes to hold
    the task if its end is to be told. Twice is once: the proposal is read again once its task is locked, since somebody may
    just have settled it."""
    find(tx, found_proposal(tx, proposal_id).task)
    kept = found_proposal(tx, proposal_id)
    if kept.status != "pending":
        return outcome(tx, registry, kept)
    deciding, found = Deciding(_call(kept), registry, chance, ended), find(tx, kept.task)
    case = _asked(tx, registry, kept, found)
    if kept.call["epoch_seen"] != case.task.epoch:
        return _refused(tx, kept, case, case.no("stale_content", "the task was taken over while its check ran; propose again"))
    free = _free(tx, registry, found, case)
    match _weighed(tx, free, judged):
        case Accept() as accept:
            holding.paced(tx, free)
            done = deciding.record(tx, case.machine, freed(deciding, tx, found, case), accept)
            proposals.settle(tx, kept, "accepted", done.task.updated_at, version=done.task.version)
            return done
        case Refuse(refusal):
            return _refused(tx, kept, case, refusal)
        case NeedChecks():
            return _refused(tx, kept, case, case.no("stale_content", "the content that the check judged changed meanwhile; propose again"))


def _weighed(tx: Tx, case: Case, judged: kernel.Judged, *, deciding: bool = True) -> kernel.Decision:
    """The decision; what refuses in the middle of it (a computed field that fails) is an answer like any other."""
    try:
        return weighed(tx, case, judged, deciding=deciding)
    except StoreError:
        raise
    except Refused as refused:
        return Refuse(refused.refusal)


def _refused(tx: Tx, kept: Kept, case: Case, refusal: Refusal) -> Done:
    proposals.settle(tx, kept, "refused", tx.now, refusal=refusal.as_json())
    return Done(case.task, refusal)


def found_proposal(tx: Tx, proposal_id: str) -> Kept:
    kept = proposals.find(tx, proposal_id)
    if kept is None:
        raise Refused(Refusal("unknown_proposal", "no proposal has this id"))
    return kept


def _asked(tx: Tx, registry: Registry, kept: Kept, found: Stored) -> Case:
    """The question again."""
    guards = {name: kept.call[name] for name in _GUARDS}
    return case_of(registry, tx, found, Proposal(kept.event, kept.call["args"], _call(kept).by, **guards))


def _free(tx: Tx, registry: Registry, found: Stored, case: Case) -> Case:
    return holding.borne(tx, as_free(registry, tx, found, case), found.task, holds.in_use(tx))


_GUARDS = ("strict", "session", "epoch", "expect_version", "shown")


def _kept_call(call: Call, proposal: Proposal, epoch_seen: int) -> dict[str, Any]:
    """All that is needed to decide again, as JSON."""
    by = asdict(call.by) | {"roles": None if call.by.roles is None else sorted(call.by.roles)}
    asked = {name: getattr(proposal, name) for name in _GUARDS}
    return {"args": dict(proposal.args), "by": by, "door": asdict(call.door), "given": call.given, "epoch_seen": epoch_seen, **asked}


def _call(kept: Kept) -> Call:
    form = kept.call
    roles = None if form["by"]["roles"] is None else frozenset(form["by"]["roles"])
    who: dict[str, Any] = {**form["by"], "roles": roles}
    request = Request(kept.principal, kept.request_key, kept.request_digest)
    return Call(Principal(**who), Door(**form["door"]), form["session"], request, form["given"])
