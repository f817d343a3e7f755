"""`proves` holds on every path, or its shortest counter-example is told."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman import DefinitionError, Event, Machine, State, Tasks, Verdict, check, contributor, note, optional, owner, role
from pointsman.kernel.definition import Definition, Field, Proof, Setting
from pointsman.kernel.definition import Event as EventForm
from pointsman.kernel.definition import State as StateForm
from pointsman.kernel.marks import always
from pointsman.kernel.prove import counter
from pointsman.kernel.rules import Rule
from pointsman.types import minutes


def tasks_with(**events: dict[str, object]) -> str | None:
    """The counter-example of the built-in machine's proof after a change of some events."""
    definition = Tasks.definition
    changed = tuple(replace(event, **events.get(event.name, {})) for event in definition.events)
    return counter(replace(definition, events=changed), definition.proves[0])


def test_the_built_in_machine_proves_what_it_says() -> None:
    assert tasks_with() is None


def test_a_way_round_the_approval_is_told_step_by_step() -> None:
    told = tasks_with(complete={"moves": (("approved", "done"), ("drafting", "done"))})
    assert told == "created → queued; claim → claimed; start_draft → drafting; complete → done"


def test_a_change_of_content_after_the_approval_is_found() -> None:
    told = tasks_with(claim={"sets": (Setting("draft"),)})
    assert told is not None
    assert told.endswith("approve → approved; claim changes draft → approved; complete → done")


def test_an_approval_that_edits_comes_before_its_own_edit() -> None:
    told = tasks_with(approve={"sets": (Setting("draft"),)})
    assert told is not None
    assert told.endswith("approve changes draft → approved; complete → done")


def test_content_that_a_failed_check_keeps_is_a_change() -> None:
    told = tasks_with(complete={"sets": (Setting("draft", required=False),), "otherwise": "approved"})
    assert told is not None
    assert "complete changes draft → done" in told


def test_a_branch_of_a_failed_check_is_not_the_approval() -> None:
    class M(Machine, name="m"):
        text: str
        new = State(initial=True)
        there = State()
        done = State(final=True)
        end = State(final=True, outcome="failed")
        good = check(long_enough)
        approve = Event(new >> there, requires=good, otherwise=there, by=role("reviewer"))
        finish = Event(there >> done)

    told = counter(M.definition, Proof("always", "done", "approve"))
    assert told == "created → new; approve (refused by its checks) → there; finish → done"


def test_an_owners_event_needs_an_owner_on_the_way() -> None:
    class M(Machine, name="m"):
        new = State(initial=True)
        mine = State()
        done = State(final=True)
        end = State(final=True, outcome="failed")
        take = Event(new >> mine, acquires=True)
        drop = Event(mine >> new)
        look = Event(mine >> mine)
        finish = Event((new | mine) >> done, by=owner)

    told = counter(M.definition, Proof("always", "done", "look"))
    assert told == "created → new; take → mine; finish → done"


def test_notes_do_not_count_as_content() -> None:
    assert tasks_with(complete={"sets": (Setting("review_note", required=False),)}) is None


def test_cancelling_is_a_path() -> None:
    told = counter(Tasks.definition, Proof("always", "failed", "approve"))
    assert told == "created → queued; cancel → failed"


def test_a_lapse_is_a_path() -> None:
    class M(Machine, name="m"):
        text: str | None = None
        new = State(initial=True)
        mine = State(lease=minutes(1), on_lapse="back")
        back = State()
        done = State(final=True)
        end = State(final=True, outcome="failed")
        take = Event((new | back) >> mine, acquires=True)
        finish = Event(back >> done)
        stop = Event(~(done | end) >> end)

    assert counter(M.definition, Proof("always", "done", "stop")) == "created → new; take → mine; lapse → back; finish → done"


def test_an_opinion_proves_nothing() -> None:
    with pytest.raises(DefinitionError, match="no proof counts an opinion"):

        class M(Machine, name="m"):
            text: str
            new = State(initial=True)
            liked = State()
            end = State(final=True, outcome="failed")
            nice = check(long_enough, opinion=True)
            like = Event(new >> liked, requires=nice)
            stop = Event(liked >> end)
            drop = Event(new >> new)
            proves = (always(end, like),)


def test_an_opinion_beside_a_persons_decision_is_no_hindrance() -> None:
    class M(Machine, name="m"):
        text: str
        remark: str | None = note()
        new = State(initial=True)
        liked = State(deadline=minutes(1), on_deadline="remind")
        done = State(final=True)
        end = State(final=True, outcome="failed")
        nice = check(long_enough, opinion=True)
        like = Event(new >> liked, requires=nice, by=role("reviewer") & ~contributor, sets=optional("remark"))
        finish = Event(liked >> done)
        stop = Event((new | liked) >> end)
        proves = (always(done, like),)

    assert M.definition.proves[0].event == "like"


def long_enough(text: str) -> Verdict:
    return Verdict(len(text) > 3)


# ── against a second, plainer search ─────────────────────────────────────────────────────────────────────────────

NAMES = ("a", "b", "c", "d")


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    states = tuple(StateForm(name, initial=name == "a") for name in NAMES)
    events = tuple(
        EventForm(
            f"e{index}",
            moves=((draw(st.sampled_from(NAMES)), draw(st.sampled_from(NAMES))),),
            by=draw(st.sampled_from([Rule("owner"), Rule("anyone")])),
            sets=(Setting("text"),) if draw(st.booleans()) else (),
            acquires=draw(st.booleans()),
        )
        for index in range(draw(st.integers(1, 6)))
    )
    return Definition("m", 1, fields=(Field("text", {}, required=False),), states=states, events=events)


def violated(definition: Definition, proof: Proof, longest: int) -> int | None:
    """The length of the shortest bad run, by trying all runs step by step."""
    runs = {("a", False, False)}
    for length in range(longest + 1):
        if any(state == proof.state and not good for state, _, good in runs):
            return length
        runs = {
            (event.moves[0][1], held or event.acquires, not event.sets and (good or event.name == proof.event))
            for state, held, good in runs
            for event in definition.events
            if event.moves[0][0] == state and (held or event.by.op == "anyone")
        }
    return None


@settings(deadline=None)
@given(definitions(), st.sampled_from(NAMES))
def test_the_search_agrees_with_trying_every_run_and_is_shortest(definition: Definition, state: str) -> None:
    proof = Proof("always", state, "e0")
    told = counter(definition, proof)
    length = violated(definition, proof, longest=16)  # 4 states, owned or not, approved or not: 16 places
    assert (told is None) == (length is None)
    if told is not None:
        assert told.count(";") == length
