"""The decision as a table: every state × event × caller of the built-in machine, then each rule on its own."""

from dataclasses import replace

import pytest

from kernel.world import BOUND, GOOD, PATH, W, X, after, ask, at, new, outcome
from pointsman import Event, Machine, Principal, Refused, State, Task, Tasks, Verdict, check, computed, guard, note, optional, owner
from pointsman.kernel.bound import Bound, Judgement
from pointsman.kernel.case import Proposal
from pointsman.kernel.decide import Accept, NeedChecks, Refuse, create, decide
from pointsman.kernel.refuse import allowed
from pointsman.kernel.rules import ANONYMOUS
from pointsman.kernel.task import apply

# For each event and state: what the owner `w` gets, what the stranger `x` gets. Both hold every role, as in open mode.
EXPECTED = """
                  queued                    claimed                           drafting                          awaiting_approval                 approved                          done                              failed
claim             claimed,claimed           already_claimed,already_claimed   already_claimed,already_claimed   already_claimed,already_claimed   already_claimed,already_claimed   already_claimed,already_claimed   already_claimed,already_claimed
start_draft       wrong_state,wrong_state   drafting,not_owner                drafting,not_owner                wrong_state,wrong_state           wrong_state,wrong_state           wrong_state,wrong_state           wrong_state,wrong_state
request_approval  wrong_state,wrong_state   wrong_state,wrong_state           awaiting_approval,not_owner       wrong_state,wrong_state           wrong_state,wrong_state           wrong_state,wrong_state           wrong_state,wrong_state
approve           wrong_state,wrong_state   self_approval,wrong_state         self_approval,wrong_state         self_approval,approved            self_approval,already_decided     self_approval,already_decided     self_approval,wrong_state
reject            wrong_state,wrong_state   self_approval,wrong_state         self_approval,wrong_state         self_approval,drafting            self_approval,already_decided     self_approval,already_decided     self_approval,wrong_state
complete          wrong_state,wrong_state   wrong_state,wrong_state           wrong_state,wrong_state           wrong_state,wrong_state           done,not_owner                    wrong_state,wrong_state           wrong_state,wrong_state
fail              wrong_state,wrong_state   failed,failed                     failed,failed                     failed,failed                     failed,failed                     wrong_state,wrong_state           wrong_state,wrong_state
"""  # noqa: E501 - a table is read across


def _rows() -> list[tuple[str, str, str, str]]:
    head, *lines = [line.split() for line in EXPECTED.strip().splitlines()]
    return [(line[0], state, *cell.split(",")) for line in lines for state, cell in zip(head, line[1:], strict=True)]


def test_the_table_is_whole() -> None:
    pairs = {(event, state) for event, state, _, _ in _rows()}
    assert pairs == {(event, state) for event in Tasks.definition.event for state in Tasks.definition.state}


@pytest.mark.parametrize(("event", "state", "owner_gets", "stranger_gets"), _rows())
def test_every_state_and_event(event: str, state: str, owner_gets: str, stranger_gets: str) -> None:
    task = at(state)
    assert (outcome(ask(task, event, W)), outcome(ask(task, event, X))) == (owner_gets, stranger_gets)


@pytest.mark.parametrize(("event", "state"), [(event, state) for event, state, _, _ in _rows()])
def test_without_roles_nobody_but_the_owner_moves_a_task(event: str, state: str) -> None:
    nobody = Principal("x", roles=frozenset())
    got = outcome(ask(at(state), event, nobody))
    if event in ("approve", "reject"):
        assert got == "role_missing"
    elif (event, state) == ("claim", "queued"):
        assert got == "claimed"
    else:
        assert got in ("wrong_state", "not_owner", "already_claimed")


@pytest.mark.parametrize("state", PATH)
@pytest.mark.parametrize("event", ["approve", "reject"])
def test_a_contributor_never_decides_whatever_the_spelling(event: str, state: str) -> None:
    for who in (Principal("W"), Principal("w2", root="W")):
        assert outcome(ask(at(state), event, who)) == ("wrong_state" if state == "queued" else "self_approval")


def test_an_accepted_step_moves_everything_together() -> None:
    before = at("drafting")
    task = after(before, "request_approval", W)
    assert (task.version, task.revision, task.state) == (before.version + 1, before.revision + 1, "awaiting_approval")
    assert (task.fields["draft"], task.evidence["topic"].status) == (GOOD, "pass")
    assert task.digest != before.digest
    assert task.updated_at > before.updated_at


def test_a_failed_check_takes_the_otherwise_branch_and_keeps_the_draft() -> None:
    before = at("drafting")
    decision = ask(before, "request_approval", W, args={"draft": "short"})
    assert isinstance(decision, Accept)
    assert decision.refusal is not None
    assert (decision.after.state, decision.after.fields["draft"], decision.after.version) == ("drafting", "short", before.version + 1)
    assert (decision.refusal.recorded, decision.refusal.version) == (True, before.version + 1)
    assert decision.refusal.failed[0]["reason"] == "draft shorter than 40 characters"


def test_the_same_draft_again_is_no_new_revision() -> None:
    rejected = after(at("awaiting_approval"), "reject", X)
    again = after(rejected, "request_approval", W)
    assert (again.revision, again.digest, again.version) == (rejected.revision, rejected.digest, rejected.version + 1)


def test_a_note_is_not_content() -> None:
    before = at("awaiting_approval")
    task = after(before, "approve", X, args={"review_note": "fine"})
    assert (task.fields["review_note"], task.revision, task.digest) == ("fine", before.revision, before.digest)
    assert [(made.by, made.note, made.shown) for made in task.decisions] == [("x", "fine", before.digest)]


def test_new_content_ends_the_round_of_decisions() -> None:
    rejected = after(at("awaiting_approval"), "reject", X)
    assert len(rejected.decisions) == 1
    assert after(rejected, "request_approval", W, args={"draft": GOOD + " More."}).decisions == ()


@pytest.mark.parametrize("epoch", [0, 2, -1])
def test_another_epoch_is_refused_even_with_the_right_name(epoch: int) -> None:
    assert outcome(ask(at("drafting"), "start_draft", W, epoch=epoch)) == "lease_lost"


def test_a_strict_door_must_send_the_epoch_and_the_digest() -> None:
    assert outcome(ask(at("drafting"), "start_draft", W, epoch=None)) == "invalid"
    assert outcome(ask(at("awaiting_approval"), "approve", X, shown=None)) == "invalid"
    assert outcome(ask(at("drafting"), "start_draft", W, epoch=None, strict=False)) == "drafting"
    blind = ask(at("awaiting_approval"), "approve", X, shown=None, strict=False)
    assert isinstance(blind, Accept)
    assert blind.after.decisions[0].shown is None


def test_a_decision_on_other_content_is_refused() -> None:
    shown = at("awaiting_approval").digest
    moved = after(after(at("awaiting_approval"), "reject", X), "request_approval", W, args={"draft": GOOD + " More."})
    assert outcome(ask(moved, "approve", X, shown=shown)) == "stale_content"


def test_sessions_are_compared_when_both_name_one() -> None:
    task = after(new(), "claim", W, session="one")
    assert outcome(ask(task, "start_draft", W, session="two")) == "not_owner"
    assert outcome(ask(task, "start_draft", W, session="one")) == "drafting"
    assert outcome(ask(task, "start_draft", W)) == "drafting"


def test_anonymous_never_owns_and_never_counts_as_contributor() -> None:
    anonymous = Principal(ANONYMOUS, "person")
    assert outcome(ask(new(), "claim", anonymous)) == "invalid"
    assert outcome(ask(at("awaiting_approval"), "approve", anonymous, strict=False)) == "approved"
    assert ANONYMOUS not in after(at("awaiting_approval"), "approve", anonymous, strict=False).contributors


def test_through_a_strict_door_nobody_owns_or_decides_without_a_name() -> None:
    anonymous = Principal(ANONYMOUS, "person")
    for event in ("approve", "reject", "fail"):
        assert outcome(ask(at("awaiting_approval"), event, anonymous)) == "invalid"
    assert allowed(Tasks.definition, at("awaiting_approval"), anonymous) == ()


# Faults of a proposal to approve, in the order in which they are judged: each row has all that follow it too.
FAULTS = [
    ("unknown_event", {"event": "nonsense"}),
    ("invalid", {"args": {"nonsense": 1}}),
    ("role_missing", {"by": Principal("y", roles=frozenset())}),
    ("stale_version", {"expect_version": 99}),
    ("stale_content", {"shown": "0" * 64}),
]


@pytest.mark.parametrize("first", range(len(FAULTS)))
def test_the_first_fault_in_the_order_of_judgement_wins(first: int) -> None:
    task = at("claimed")
    changes: dict[str, object] = {"by": X}
    for _, change in reversed(FAULTS[first:]):
        changes |= change
    by, event = changes.pop("by"), changes.pop("event", "approve")
    assert isinstance(by, Principal)
    assert isinstance(event, str)
    assert outcome(ask(task, event, by, **changes)) == FAULTS[first][0]


def test_a_refusal_says_where_the_task_stands_and_who_can_move_it() -> None:
    task = at("awaiting_approval")
    decision = ask(task, "complete", W)
    assert isinstance(decision, Refuse)
    refusal = decision.refusal
    assert (refusal.task, refusal.state, refusal.version, refusal.recorded) == (task.id, "awaiting_approval", task.version, False)
    assert refusal.allowed == ("fail",)
    assert refusal.unblock == [
        "approve: role reviewer and not a contributor",
        "reject: role reviewer and not a contributor",
    ]


def test_what_was_accepted_folds_back_from_its_payload() -> None:
    task = new()
    for event in PATH["done"]:
        who = X if event == "approve" else W
        decision = ask(task, event, who)
        assert isinstance(decision, Accept)
        folded = apply(task, task.id, decision.after.version, decision.after.updated_at, decision.payload["changes"])  # pyright: ignore[reportArgumentType]
        assert folded == decision.after
        task = decision.after


def test_creation_takes_only_what_no_event_sets() -> None:
    made = create(BOUND, new().id, {"title": "t", "brief": "b", "draft": "mine"}, W, 1)
    assert isinstance(made, Refuse)
    assert made.refusal.failed[0]["path"] == "fields.draft"


# ---------------------------------------------------------------- a machine with every other part


def judged(text: str, hint: str | None) -> Verdict:
    return Verdict(text == "right", "compared")


def size(text: str | None) -> int:
    return len(text or "")


@guard(version=2)
def short(task: Task, proposal: Proposal) -> bool:
    return len(str(proposal.args["text"])) < 10


def inverse(flag: int | None) -> float:
    return 1 / (1 if flag is None else flag)


def sulky(task: Task) -> bool:
    raise RuntimeError("no mood")


class Parts(Machine, name="parts"):
    text: str | None = None
    hint: str | None = None
    flag: int | None = None
    word: str | None = note()
    length = computed(size)
    share = computed(inverse)
    open = State(initial=True)
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    right = check(judged)
    take = Event(open >> open, acquires=True)
    write = Event(open >> open, by=owner, sets=("text", optional("hint")), when=short)
    mark = Event(open >> open, sets="flag")
    sulk = Event(open >> open, when=sulky)
    finish = Event(open >> done, by=owner, requires=right)
    drop = Event(open >> failed)


PARTS = Bound(Parts.definition, Parts.functions)


def _parts(**fields: object) -> Task:
    made = create(PARTS, new().id, {}, W, 1)
    assert isinstance(made, Accept)
    taken = decide(PARTS, made.after, Proposal("take", {}, W), 2, {})
    assert isinstance(taken, Accept)
    return replace(taken.after, fields={**taken.after.fields, **fields})  # pyright: ignore[reportArgumentType]


def _ask(task: Task, event: str, args: dict[str, object] | None = None, judged: dict[str, Judgement] | None = None):
    return decide(PARTS, task, Proposal(event, args or {}, W, epoch=1), 3, judged or {})


def test_a_slow_check_is_asked_for_with_its_inputs_and_counts_when_it_judged_them() -> None:
    task = _parts(text="right")
    needs = _ask(task, "finish")
    assert isinstance(needs, NeedChecks)
    (need,) = needs.needs
    assert (need.check, need.inputs, needs.epoch) == ("right", {"text": "right", "hint": None}, 1)
    done = _ask(task, "finish", judged={need.digest: Judgement("pass", "compared")})
    assert isinstance(done, Accept)
    assert (done.after.state, done.after.evidence["right"].inputs_digest) == ("done", need.digest)
    assert isinstance(_ask(task, "finish", judged={"0" * 64: Judgement("pass", "other inputs")}), NeedChecks)


@pytest.mark.parametrize("status", ["fail", "error"])
def test_anything_but_pass_is_no(status: str) -> None:
    task = _parts(text="right")
    needs = _ask(task, "finish")
    assert isinstance(needs, NeedChecks)
    refused = _ask(task, "finish", judged={needs.needs[0].digest: Judgement(status, "because")})  # pyright: ignore[reportArgumentType]
    assert outcome(refused) == "evidence_failed"


def test_a_check_whose_needed_content_is_null_is_not_called() -> None:
    refused = _ask(_parts(), "finish")
    assert isinstance(refused, Refuse)
    assert (refused.refusal.code, refused.refusal.failed[0]["status"]) == ("evidence_failed", None)


def test_new_content_makes_evidence_stale_and_old_evidence_is_not_reused() -> None:
    task = _parts(text="right")
    needs = _ask(task, "finish")
    assert isinstance(needs, NeedChecks)
    passed = Judgement("pass", "compared")
    held = _ask(task, "finish", judged={needs.needs[0].digest: passed})
    assert isinstance(held, Accept)
    kept = replace(task, evidence=held.after.evidence)
    assert isinstance(_ask(kept, "finish"), Accept), "current evidence is not judged again"
    written = _ask(kept, "write", {"text": "wrong"})
    assert isinstance(written, Accept)
    assert written.after.evidence["right"].status == "stale"
    assert isinstance(_ask(written.after, "finish"), NeedChecks)


def test_content_that_the_check_does_not_read_leaves_its_evidence() -> None:
    task = _parts(text="right")
    needs = _ask(task, "finish")
    assert isinstance(needs, NeedChecks)
    held = _ask(task, "finish", judged={needs.needs[0].digest: Judgement("pass", "compared")})
    assert isinstance(held, Accept)
    marked = _ask(replace(task, evidence=held.after.evidence), "mark", {"flag": 1})
    assert isinstance(marked, Accept)
    assert (marked.after.revision, marked.after.evidence["right"].status) == (task.revision + 1, "pass")


def test_a_computed_field_follows_its_inputs_and_is_outside_the_digest() -> None:
    task = _parts()
    assert task.fields["length"] == 0
    written = _ask(task, "write", {"text": "four"})
    assert isinstance(written, Accept)
    assert written.after.fields["length"] == 4
    assert "length" not in Parts.definition.content


def test_a_computed_field_that_cannot_be_computed_refuses_the_change() -> None:
    with pytest.raises(Refused) as refused:
        _ask(_parts(), "mark", {"flag": 0})
    assert (refused.value.code, refused.value.failed[0]["computed"]) == ("guard_failed", "share")
    assert "ZeroDivisionError" in refused.value.detail


def test_guards_see_the_proposal_and_a_raising_guard_says_no() -> None:
    assert outcome(_ask(_parts(), "write", {"text": "much too long"})) == "guard_failed"
    sulked = _ask(_parts(), "sulk")
    assert isinstance(sulked, Refuse)
    assert sulked.refusal.failed == [{"guard": "sulky", "reason": "guard error: RuntimeError: no mood"}]


def test_one_true_and_one_point_zero_are_three_values() -> None:
    marked = _ask(_parts(), "mark", {"flag": 1})
    assert isinstance(marked, Accept)
    again = _ask(marked.after, "mark", {"flag": 1})
    assert isinstance(again, Accept)
    assert again.after.revision == marked.after.revision
    for other in (True, 1.0):
        assert outcome(_ask(marked.after, "mark", {"flag": other})) == "invalid"
