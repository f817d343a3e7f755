"""Which changes tell the outside, and what they tell; and hooks, as their operator sees them."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pointsman import Event, Machine, Pointsman, Principal, Refused, Retry, State, Task, Verdict, check, contributor, minutes, owner
from pointsman.engine.hooking import MOST_SECRETS
from pointsman.engine.relaying import TAKEN, Inline, Relay
from pointsman.engine.timers import Deadlines
from pointsman.kernel.exported import export, restore
from pointsman.kernel.hook import Hook
from pointsman.kernel.marks import optional
from pointsman.kernel.message import TOPICS, Message
from pointsman.testing import FakeClock
from pointsman.types import Instant, iso

OPERATOR = Principal("olga", kind="person")


def is_good(text: str) -> Verdict:
    if text == "raise":
        raise ValueError("it was to raise")
    return Verdict(text == "good", "compared")


class Letters(Machine, name="letters"):
    retry = Retry(tries=2)

    text: str | None = None
    open = State(initial=True)
    work = State(lease=minutes(1))
    review = State(deadline=minutes(10), on_deadline="escalate")
    sent = State(final=True)
    lost = State(final=True, outcome="failed")
    good = check(is_good)
    take = Event(open >> work, acquires=True)
    submit = Event(work >> review, by=owner, sets="text", requires=good, otherwise=work)
    revise = Event(review >> review, sets=optional("text"))
    approve = Event(review >> sent, by=~contributor, tells="A letter is on its way")
    drop = Event((open | work | review) >> lost)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(url: str, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(url, [Letters], clock=clock) as opened:
        opened.add_hook("call:all", "call", [*TOPICS, "event:approve"], by="olga", machine="letters")
        yield opened


def told(pm: Pointsman) -> list[Message]:
    """What has come since the last time."""
    got: list[Message] = []

    def take(hook: Hook, message: Message, now: Instant):
        got.append(message)
        return TAKEN

    relay = Relay(pm.engine, lambda hook: take, Inline())
    while relay.run_once():
        pass
    relay.stop()
    return got


def topics(pm: Pointsman) -> list[str]:
    return [message.topic for message in told(pm)]


def taken(pm: Pointsman, by: str = "w") -> Task:
    pm.create("letters", {}, by="ann")
    task = pm.claim("letters", by=by)
    assert task is not None
    return task


def submitted(pm: Pointsman) -> Task:
    task = taken(pm)
    return pm.propose(task.id, "submit", {"text": "good"}, by="w", epoch=task.epoch)


def test_somebody_has_to_decide(pm: Pointsman) -> None:
    task = submitted(pm)
    (message,) = told(pm)
    assert (message.topic, message.task, message.version) == ("approval_needed", task.id, task.version)
    assert json.loads(message.body) == {
        "type": "pointsman.approval_needed",
        "timestamp": iso(task.updated_at),
        "data": {
            "task": task.id,
            "machine": "letters",
            "version": 3,
            "event": "submit",
            "from": "work",
            "state": "review",
            "revision": task.revision,
            "digest": task.digest,
        },
    }


def test_other_content_is_to_be_decided_on_anew_and_the_same_is_not(pm: Pointsman) -> None:
    task = submitted(pm)
    told(pm)
    pm.propose(task.id, "revise", {"text": "good"}, by="ann")
    assert topics(pm) == []
    pm.propose(task.id, "revise", {"text": "better"}, by="ann")
    assert topics(pm) == ["approval_needed"]


def test_a_deadline_and_an_event_with_words(pm: Pointsman, clock: FakeClock) -> None:
    task = submitted(pm)
    told(pm)
    clock.advance(minutes(11))
    Deadlines(pm.engine).run_once()
    (near,) = told(pm)
    assert (near.topic, json.loads(near.body)["data"]["event"]) == ("deadline_near", "escalate")
    pm.propose(task.id, "approve", by="rita", digest=pm.get(task.id).digest)
    (sent,) = told(pm)
    assert (sent.topic, json.loads(sent.body)["data"]["words"]) == ("event:approve", "A letter is on its way")


def test_a_check_that_ends_in_an_error(pm: Pointsman) -> None:
    task = taken(pm)
    for text, expected in (("bad", []), ("raise", ["check_error"])):
        with pytest.raises(Refused):
            pm.propose(task.id, "submit", {"text": text}, by="w", epoch=task.epoch)
        assert topics(pm) == expected


def test_a_task_that_was_tried_too_often(pm: Pointsman, clock: FakeClock) -> None:
    task = taken(pm)
    clock.advance(minutes(2))
    again = pm.claim("letters", by="v", id=task.id)
    assert again is not None
    pm.release(task.id, by="v", epoch=again.epoch)
    assert pm.get(task.id).parked is not None
    assert topics(pm) == ["parked"]


def test_a_new_owner_over_operations_that_nobody_settled(pm: Pointsman, clock: FakeClock) -> None:
    task = taken(pm)
    begun = pm.begin(task.id, "mail", by="w", epoch=task.epoch, kind="ask", request={})
    assert topics(pm) == []
    clock.advance(minutes(2))
    pm.claim("letters", by="v", id=task.id)
    (message,) = told(pm)
    assert (message.topic, json.loads(message.body)["data"]["operations"]) == ("in_doubt", [pm.get(task.id).begun[0].id])
    assert begun


def test_what_is_refused_tells_nothing(pm: Pointsman) -> None:
    task = submitted(pm)
    told(pm)
    with pytest.raises(Refused):
        pm.propose(task.id, "approve", by="w", digest=task.digest)
    assert topics(pm) == []


def test_no_words_of_a_task_go_out(pm: Pointsman) -> None:
    task = taken(pm)
    with pytest.raises(Refused):
        pm.propose(task.id, "submit", {"text": "a canary sings"}, by="w", epoch=task.epoch)
    pm.propose(task.id, "submit", {"text": "good"}, by="w", epoch=task.epoch)
    pm.propose(task.id, "revise", {"text": "another canary"}, by="ann")
    bodies = [message.body for message in told(pm)]
    assert len(bodies) == 2
    assert not [body for body in bodies if "canary" in body]


def test_a_hook_hears_of_its_machine_and_topics_alone(pm: Pointsman) -> None:
    near = pm.add_hook("call:near", "call", ["deadline_near"], by="olga").hook
    submitted(pm)
    assert near.id not in pm.backlogs()


def test_words_stand_in_the_form_only_where_there_are_some() -> None:
    form = export(Letters.definition)
    assert [event["name"] for event in form["events"] if "tells" in event] == ["approve"]  # pyright: ignore
    assert restore(form).event["approve"].tells == "A letter is on its way"


# ── the operator ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(call, *args, **kwargs) -> Refused:
    with pytest.raises(Refused) as found:
        call(*args, **kwargs)
    return found.value


def test_hooks_are_for_operators(pm: Pointsman) -> None:
    hook = pm.add_hook("https://example.org/", "webhook", ["parked"], by="olga").hook.id
    agent = Principal("agent", roles=frozenset())
    assert refused(pm.add_hook, "https://example.org/", "webhook", ["parked"], by=agent).code == "role_missing"
    for verb in (pm.remove_hook, pm.rotate_hook, pm.redrive):
        assert refused(verb, hook, by=agent).code == "role_missing"
    assert refused(pm.redrive, hook, by="anonymous").code == "invalid"


def test_whoever_changes_hooks_waits_for_whoever_is_deciding(url: str, clock: FakeClock) -> None:
    """On a store with row locks the other order, a lane or a hook first, could be that of two who wait for each other."""
    ran: list[str] = []
    with Pointsman(url, [Letters], clock=clock, probe=ran.append) as pm:
        hook = pm.add_hook("https://example.org/", "webhook", ["parked"], by="olga").hook.id
        for verb in (pm.redrive, pm.remove_hook):
            ran.clear()
            verb(hook, by="olga")
            asked = [name.removeprefix("before:") for name in ran if name.startswith("before:")]
            assert asked[0] == "wait_for_writers"


BAD = [
    ({"kind": "fax"}, "kind"),
    ({"on": []}, "on"),
    ({"on": ["approvals"]}, "on"),
    ({"on": ["event:fly"]}, "on"),
    ({"on": ["event:take"]}, "on"),
    ({"on": ["event:"]}, "on"),
    ({"on": 5}, "on"),
    ({"on": None}, "on"),
    ({"on": "parked"}, "on"),
    ({"on": [5]}, "on"),
    ({"on": [["parked"]]}, "on"),
    ({"on": ["parked"] * 101}, "on"),
    ({"link": "http://a.org/|evil>"}, "link"),
    ({"url": "http://example.org/"}, "url"),
    ({"url": "https://127.0.0.1/"}, "url"),
    ({"link": "javascript:alert(1)"}, "link"),
]


@pytest.mark.parametrize(("changed", "path"), BAD)
def test_what_does_not_fit_is_told(pm: Pointsman, changed: dict, path: str) -> None:
    asked = {"url": "https://example.org/", "kind": "webhook", "on": ["parked"], "by": "olga"} | changed
    found = refused(pm.add_hook, **asked)
    assert (found.code, {fault["path"] for fault in found.failed}) == ("invalid", {path})
    assert len(pm.hooks()) == 1


def test_what_is_not_there_is_not_found(pm: Pointsman) -> None:
    assert refused(pm.add_hook, "https://example.org/", "webhook", ["parked"], by="olga", machine="cards").code == "unknown_machine"
    hook = pm.add_hook("https://example.org/", "webhook", ["parked"], by="olga").hook.id
    pm.remove_hook(hook.upper(), by="olga")
    for absent in (hook, "01890000-0000-7000-8000-000000000000", "x"):
        for verb in (pm.remove_hook, pm.rotate_hook, pm.redrive):
            assert refused(verb, absent, by="olga").code == "unknown_hook"
        assert refused(pm.dead, absent).code == "unknown_hook"


def test_secrets_are_rotated_a_few_at_a_time(pm: Pointsman, clock: FakeClock) -> None:
    made = pm.add_hook("https://example.org/", "webhook", ["parked"], by="olga")
    more = [pm.rotate_hook(made.hook.id, by="olga", overlap_s=60).secret for _ in range(MOST_SECRETS - 1)]
    secrets = [made.secret, *more]

    def signs() -> tuple[str, ...]:
        (found,) = [hook for hook in pm.hooks() if hook.id == made.hook.id]
        return found.signs(clock.now)

    assert signs() == tuple(reversed(secrets))
    assert refused(pm.rotate_hook, made.hook.id, by="olga").code == "invalid"
    clock.advance(minutes(2))
    last = pm.rotate_hook(made.hook.id, by="olga", overlap_s=0).secret
    assert signs() == (last,)
    assert len(set(secrets) | {last}) == MOST_SECRETS + 1
    other = next(hook for hook in pm.hooks() if hook.id != made.hook.id)
    assert refused(pm.rotate_hook, other.id, by="olga").code == "invalid"
    assert refused(pm.rotate_hook, made.hook.id, by="olga", overlap_s=-1).code == "invalid"


def test_no_secret_is_where_others_look(pm: Pointsman) -> None:
    """P23: not in what history exports, not in what a hook shows, and after its removal nowhere."""
    made = pm.add_hook("https://example.org/services/T/canary", "webhook", ["approval_needed"], by="olga")
    assert made.secret is not None
    submitted(pm)
    looked = [repr(made), repr(pm.hooks()), str(pm.doctor()), str(list(pm.export())), str(pm.figures()), made.hook.shown]
    assert not [text for text in looked if made.secret in text or "canary" in text]
    removed = pm.remove_hook(made.hook.id, by="olga")
    assert (removed.secrets, removed.url) == ((), "https://example.org/…")
    assert replace(removed, url="") == replace(made.hook, url="", secrets=(), removed_by="olga", removed_at=removed.removed_at)
