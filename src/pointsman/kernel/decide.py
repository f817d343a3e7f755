"""The decision: a pure function from a task and a proposal to Accept, Refuse or NeedChecks.

    shape → the rules of `order.py` → evidence → accept, with what `change.py` makes of the task

The first rule that speaks wins. Nothing here reads a clock or calls slow code: guards, eager checks and computed
fields are pure, and every other check is answered with NeedChecks, run outside any transaction, and brought back as
`judged`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel import change
from pointsman.kernel.bound import Bound, inputs_digest
from pointsman.kernel.case import Case, Proposal
from pointsman.kernel.definition import Check, Event
from pointsman.kernel.order import ORDER, Rule, unfinished
from pointsman.kernel.refuse import refuse
from pointsman.kernel.rules import Principal
from pointsman.kernel.schema import arguments, initial_fields
from pointsman.kernel.steps import Accept, Decision, Judged, Need, NeedChecks, Refuse
from pointsman.kernel.task import Evidence, Task, changes
from pointsman.kernel.terms import Terms
from pointsman.types import Instant, Json

_USUAL = Terms()


def decide(machine: Bound, task: Task, proposal: Proposal, now: Instant, judged: Judged) -> Decision:
    """Judge a proposal. `judged` holds what checks said of earlier NeedChecks."""
    case = read(machine, task, proposal, now)
    return case if isinstance(case, Refuse) else judge(case, judged)


def read(machine: Bound, task: Task, proposal: Proposal, now: Instant) -> Case | Refuse:
    """The shape of a proposal: the event exists and its arguments fit."""
    definition = machine.definition
    event = definition.event.get(proposal.event)
    if event is None:
        known = ", ".join(definition.event)
        return Refuse(
            refuse(definition, task, proposal.by, "unknown_event", f"machine {definition.name} has no such event; it has {known}")
        )
    values, faults = arguments(definition, event, proposal.args)
    case = Case(machine, task, event, proposal, values, max(now, task.updated_at + 1))
    return Refuse(case.invalid(*faults)) if faults else case


def judge(case: Case, judged: Judged, rules: tuple[Rule, ...] = ORDER) -> Decision:
    """The rules in order, then the evidence."""
    for rule in rules:
        if refusal := rule(case):
            return Refuse(refusal)
    return _on_evidence(case, judged)


def create(machine: Bound, task_id: str, fields: Mapping[str, Any], by: Principal, now: Instant, terms: Terms = _USUAL) -> Accept | Refuse:
    """The first step of a task: version 1, revision 1, eager checks judged."""
    definition = machine.definition
    complete, faults = initial_fields(definition, fields)
    if faults:
        text = "; ".join(f"{path}: {message}" for path, message in faults)
        return Refuse(Refusal("invalid", text, failed=[{"path": path, "message": message} for path, message in faults]))
    span = definition.state[definition.initial].deadline
    blank = Task(
        id=task_id,
        machine=definition.name,
        machine_version=definition.version,
        state=definition.initial,
        version=1,
        revision=1,
        digest="",
        fields=complete,
        created_at=now,
        updated_at=now,
        created_by=by.name,
        since=now,
        deadline=None if span is None else now + span,
        **{item.name: getattr(terms, item.name) for item in dataclasses.fields(terms)},
    )
    task = change.content(machine, blank, complete, now)
    return Accept(task, "create", "create", None, {"changes": changes(None, task)})


def _on_evidence(case: Case, judged: Judged) -> Decision:
    proposed, needs = _weighed(case, change.proposed(case), judged)
    if needs:
        return NeedChecks(needs, case.task.epoch)
    failed = failed_checks(case.machine, case.event, proposed)
    if not failed:
        return _accept(case, proposed)
    if case.event.otherwise is None:
        return Refuse(case.no("evidence_failed", _reasons(failed), failed=failed))
    if refusal := unfinished(case, case.event.otherwise):
        return Refuse(refusal)
    return _otherwise(case, proposed)


def _weighed(case: Case, proposed: Task, judged: Judged) -> tuple[Task, tuple[Need, ...]]:
    """Current evidence counts; else what was judged of exactly these inputs; else the check is needed."""
    evidence, needs = dict(proposed.evidence), list[Need]()
    for name in case.event.requires:
        check = case.machine.definition.check[name]
        inputs = case.machine.inputs(check, proposed.fields)
        if _settled(check, evidence.get(name)) or inputs is None:
            continue
        key = inputs_digest(check, inputs)
        if key in judged:
            evidence[name] = change.evidence_of(judged[key], key, case.now)
        else:
            needs.append(Need(name, inputs, key))
    return (proposed.but(evidence=evidence) if evidence != proposed.evidence else proposed), tuple(needs)


def _settled(check: Check, evidence: Evidence | None) -> bool:
    return evidence is not None and (check.eager or evidence.status in ("pass", "fail"))


def failed_checks(machine: Bound, event: Event, task: Task) -> list[dict[str, Json]]:
    """The required checks that do not pass on this content; what was never judged satisfies nothing."""
    failed = list[dict[str, Json]]()
    for name in event.requires:
        evidence = task.evidence.get(name)
        if evidence is None or machine.inputs(machine.definition.check[name], task.fields) is None:
            failed.append({"check": name, "status": None, "reason": "not judged: content it needs is null"})
        elif evidence.status != "pass":
            failed.append({"check": name, "status": evidence.status, "reason": evidence.reason, "detail": evidence.detail})
    return failed


def recorded_refusal(machine: Bound, event: Event, after: Task, by: Principal) -> Refusal:
    """What a taken `otherwise` branch answers, then and at every replay."""
    failed = failed_checks(machine, event, after)
    return refuse(machine.definition, after, by, "evidence_failed", _reasons(failed), failed=failed, recorded=True)


def _accept(case: Case, proposed: Task) -> Accept:
    target = case.event.target(case.task.state)
    assert target is not None, "in_state has said so"
    after = change.decided(case, change.acquired(case, change.moved(case, proposed, target)))
    return _step(case, after, "acquire" if case.event.acquires else "event", takes=True)


def _otherwise(case: Case, proposed: Task) -> Accept:
    """The declared branch of a failed check: the draft and its evidence are kept, the refusal is on record."""
    assert case.event.otherwise is not None
    after = change.moved(case, proposed, case.event.otherwise)
    return _step(case, after, "otherwise", recorded_refusal(case.machine, case.event, after, case.proposal.by))


def _step(case: Case, after: Task, kind: str, refusal: Refusal | None = None, *, takes: bool = False) -> Accept:
    payload: dict[str, Json] = {"changes": changes(case.task, after)}
    if case.values:
        payload["args"] = dict(case.values)
    if case.event.requires:
        used = {name: after.evidence[name].inputs_digest for name in case.event.requires if name in after.evidence}
        payload["evidence"] = dict(used)
    return Accept(after, kind, case.event.name, case.task.state, payload, refusal, takes)


def _reasons(failed: list[dict[str, Json]]) -> str:
    return "; ".join(f"{item['check']}: {item['reason']}" for item in failed)
