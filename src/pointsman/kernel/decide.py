"""The decision: a pure function from a task and a proposal to Accept, Refuse or NeedChecks.

    shape → rights (with `owner` taken as true) → expected version and digest → already decided
    → state → ownership → guards → evidence → accept

The order is `ORDER`; the first rule that speaks wins. Nothing here reads a clock or calls slow code: guards, eager
checks and computed fields are pure, and every other check is answered with NeedChecks, run outside any
transaction, and brought back as `judged`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pointsman.errors import Refusal
from pointsman.kernel.bound import Bound, Judgement, inputs_digest
from pointsman.kernel.chain import digest, same
from pointsman.kernel.definition import Check, Definition, Event
from pointsman.kernel.refuse import contributed, owns, refuse, rights
from pointsman.kernel.rules import ANONYMOUS, Principal, admits, says
from pointsman.kernel.schema import arguments, initial_fields
from pointsman.kernel.task import Decided, Evidence, Task, changes
from pointsman.types import Fields, Instant, Json, iso


@dataclass(frozen=True, slots=True)
class Proposal:
    """Somebody asking for an event. `strict` doors must name the epoch (owners) and the digest shown (decisions)."""

    event: str
    args: Mapping[str, Any]
    by: Principal
    strict: bool = True
    session: str | None = None
    epoch: int | None = None
    expect_version: int | None = None
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """A check to run on exactly these inputs."""

    check: str
    inputs: Fields
    digest: str


@dataclass(frozen=True, slots=True)
class Accept:
    """The task after the step and what history keeps of it. `refusal` is set when the `otherwise` branch was taken."""

    after: Task
    kind: str
    event: str
    from_state: str | None
    payload: dict[str, Json]
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class NeedChecks:
    """Run these and ask again; `epoch` is the one under which they were asked for."""

    needs: tuple[Need, ...]
    epoch: int


Decision = Accept | Refuse | NeedChecks
Judged = Mapping[str, Judgement]
"""Judgements by the digest of the inputs they judged."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question, with all that its rules look at."""

    machine: Bound
    task: Task
    event: Event
    proposal: Proposal
    values: Fields
    now: Instant

    def no(self, code: str, detail: str, **members: Any) -> Refusal:
        return refuse(self.machine.definition, self.task, self.proposal.by, code, detail, **members)


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
    return Refuse(_invalid(case, *faults)) if faults else case


def judge(case: Case, judged: Judged) -> Decision:
    """The rules in order, then the evidence."""
    for rule in ORDER:
        if refusal := rule(case):
            return Refuse(refusal)
    return _on_evidence(case, judged)


def create(machine: Bound, task_id: str, fields: Mapping[str, Any], by: Principal, now: Instant, priority: int = 0) -> Accept | Refuse:
    """The first step of a task: version 1, revision 1, eager checks judged."""
    definition = machine.definition
    complete, faults = initial_fields(definition, fields)
    if faults:
        text = "; ".join(f"{path}: {message}" for path, message in faults)
        return Refuse(Refusal("invalid", text, failed=[{"path": path, "message": message} for path, message in faults]))
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
        priority=priority,
    )
    task = _content(machine, blank, complete, now)
    return Accept(task, "create", "create", None, {"changes": changes(None, task)})


# ---------------------------------------------------------------- the rules, in order


def complete(case: Case) -> Refusal | None:
    event, proposal = case.event, case.proposal
    if event.decides and proposal.strict and proposal.shown is None:
        return _invalid(case, ("digest", "a decision names the digest of the content it judges, as the task shows it"))
    if proposal.by.name == ANONYMOUS and (event.acquires or (proposal.strict and event.personal)):
        return _invalid(case, ("by", "whoever owns or decides has a name"))
    return None


def may_propose(case: Case) -> Refusal | None:
    by, event = case.proposal.by, case.event
    if rights(event, case.task, by, is_owner=True):
        return None
    if contributed(case.task, by) and admits(event.by, by, is_owner=True, is_contributor=False):
        return case.no("self_approval", f"{by.name} owned or contributed to this content; somebody else must {event.name} it")
    return case.no("role_missing", f"{event.name} needs {says(event.by)}")


def as_expected(case: Case) -> Refusal | None:
    task, proposal = case.task, case.proposal
    if proposal.expect_version is not None and proposal.expect_version != task.version:
        return case.no("stale_version", f"the task is at version {task.version}, not {proposal.expect_version}")
    if proposal.shown is not None and proposal.shown != task.digest:
        return case.no("stale_content", "the content changed since it was shown; read it again", shown=proposal.shown, digest=task.digest)
    return None


def undecided(case: Case) -> Refusal | None:
    task, event = case.task, case.event
    if not event.decides or event.target(task.state) is not None or not task.decisions:
        return None
    last = task.decisions[-1]
    return case.no(
        "already_decided", f"{last.by} decided {last.event} before", decided={"event": last.event, "by": last.by, "at": iso(last.at)}
    )


def in_state(case: Case) -> Refusal | None:
    task, event = case.task, case.event
    if event.acquires and task.owner is not None:
        return case.no("already_claimed", f"{task.owner} holds the task")
    if event.target(task.state) is None:
        return case.no("wrong_state", f"{event.name} is open in {', '.join(event.sources)}; the task is {task.state}")
    return None


def owned(case: Case) -> Refusal | None:
    task, proposal, event = case.task, case.proposal, case.event
    if proposal.epoch is not None and proposal.epoch != task.epoch:
        return case.no("lease_lost", f"the task is in epoch {task.epoch}, not {proposal.epoch}", epoch=task.epoch)
    if rights(event, task, proposal.by, is_owner=False):
        return None
    if not owns(task, proposal.by, proposal.session):
        return case.no("not_owner", f"the owner is {task.owner or 'nobody'}")
    if proposal.strict and proposal.epoch is None:
        return _invalid(case, ("epoch", "an owner names the epoch that its claim returned"))
    return None


def guarded(case: Case) -> Refusal | None:
    if not case.event.when:
        return None
    proposal = replace(case.proposal, args=case.values)
    sees = {"task": case.task, "proposal": proposal, "principal": proposal.by, "now": case.now, "decisions": case.task.decisions}
    answers = [(function.name, case.machine.guard(function, sees)) for function in case.event.when]
    failed = [{"guard": name, "reason": answer.reason} for name, answer in answers if not answer.ok]
    return case.no("guard_failed", "; ".join(item["reason"] for item in failed), failed=failed) if failed else None


ORDER: tuple[Callable[[Case], Refusal | None], ...] = (complete, may_propose, as_expected, undecided, in_state, owned, guarded)


def _invalid(case: Case, *faults: tuple[str, str]) -> Refusal:
    listed = [{"path": path, "message": message} for path, message in faults]
    return case.no("invalid", "; ".join(f"{path}: {message}" for path, message in faults), failed=listed)


# ---------------------------------------------------------------- evidence, then the step itself


def _on_evidence(case: Case, judged: Judged) -> Decision:
    proposed, needs = _weighed(case, _proposed(case), judged)
    if needs:
        return NeedChecks(needs, case.task.epoch)
    failed = failed_checks(case.machine, case.event, proposed)
    if not failed:
        return _accept(case, proposed)
    if case.event.otherwise is None:
        return Refuse(case.no("evidence_failed", _reasons(failed), failed=failed))
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
            evidence[name] = _evidence(judged[key], key, case.now)
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
    after = _decided(case, _acquired(case, _moved(case, proposed, target)))
    return _step(case, after, "acquire" if case.event.acquires else "event")


def _otherwise(case: Case, proposed: Task) -> Accept:
    """The declared branch of a failed check: the draft and its evidence are kept, the refusal is on record."""
    assert case.event.otherwise is not None
    after = _moved(case, proposed, case.event.otherwise)
    return _step(case, after, "otherwise", recorded_refusal(case.machine, case.event, after, case.proposal.by))


def _step(case: Case, after: Task, kind: str, refusal: Refusal | None = None) -> Accept:
    payload: dict[str, Json] = {"changes": changes(case.task, after)}
    if case.values:
        payload["args"] = dict(case.values)
    if case.event.requires:
        used = {name: after.evidence[name].inputs_digest for name in case.event.requires if name in after.evidence}
        payload["evidence"] = dict(used)
    return Accept(after, kind, case.event.name, case.task.state, payload, refusal)


def _reasons(failed: list[dict[str, Json]]) -> str:
    return "; ".join(f"{item['check']}: {item['reason']}" for item in failed)


# ---------------------------------------------------------------- what a step changes


def _proposed(case: Case) -> Task:
    """The task as it would be with the event's values, content rejudged when it changed."""
    task, values = case.task, case.values
    moved = [name for name, value in values.items() if not same(task.fields[name], value)]
    if not moved:
        return task
    fields = {**task.fields, **values}
    if all(case.machine.definition.field[name].kind != "content" for name in moved):
        return task.but(fields=fields)
    contributors = _with(task, case.proposal.by)
    revised = task.but(revision=task.revision + 1, decisions=(), contributors=contributors)
    return _content(case.machine, revised, fields, case.now)


def _content(machine: Bound, task: Task, fields: Fields, now: Instant) -> Task:
    """Bring everything that follows from content in line with it: computed fields, digest, evidence."""
    definition = machine.definition
    whole = {**fields, **machine.compute(fields)} if definition.computed else fields
    evidence = {check.name: _rejudged(machine, check, whole, task.evidence.get(check.name), now) for check in definition.checks}
    kept = {name: item for name, item in evidence.items() if item is not None}
    return task.but(fields=whole, digest=content_digest(definition, whole), evidence=kept)


def _rejudged(machine: Bound, check: Check, fields: Fields, before: Evidence | None, now: Instant) -> Evidence | None:
    """An eager check is judged anew; any other keeps its evidence, stale when its inputs moved."""
    if not check.eager and before is None:
        return None
    inputs = machine.inputs(check, fields)
    key = "" if inputs is None else inputs_digest(check, inputs)
    if before is not None and before.inputs_digest == key and before.status != "stale":
        return before
    if not check.eager:
        return replace(before, status="stale") if before is not None else None
    return None if inputs is None else _evidence(machine.judge(check, inputs), key, now)


def content_digest(definition: Definition, fields: Mapping[str, Json]) -> str:
    """The digest that approvals bind to: every content field by name."""
    return digest("content", {name: fields[name] for name in definition.content})


def _evidence(judgement: Judgement, key: str, now: Instant) -> Evidence:
    return Evidence(judgement.status, judgement.reason, key, "pointsman", now, judgement.detail)


def _acquired(case: Case, task: Task) -> Task:
    if not case.event.acquires:
        return task
    by = case.proposal.by
    return task.but(
        owner=by.name,
        owner_root=by.root_key,
        session=case.proposal.session,
        epoch=task.epoch + 1,
        contributors=_with(task, by),
    )


def _decided(case: Case, task: Task) -> Task:
    if not case.event.decides:
        return task
    by, definition = case.proposal.by, case.machine.definition
    notes = (case.values[setting.field] for setting in case.event.sets if definition.field[setting.field].kind == "note")
    note = next((str(text) for text in notes if text is not None), None)
    made = Decided(
        event=case.event.name,
        by=by.name,
        root=by.root_key,
        at=case.now,
        revision=case.task.revision,
        digest=case.task.digest,
        shown=case.proposal.shown,
        machine_version=task.machine_version,
        note=note,
    )
    return task.but(decisions=(*task.decisions, made))


def _with(task: Task, by: Principal) -> tuple[str, ...]:
    if by.name == ANONYMOUS or by.root_key in task.contributors:
        return task.contributors
    return (*task.contributors, by.root_key)


def _moved(case: Case, proposed: Task, state: str) -> Task:
    return proposed.but(state=state, version=case.task.version + 1, updated_at=case.now)
