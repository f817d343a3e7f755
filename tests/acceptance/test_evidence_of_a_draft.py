"""The topic check, rule by rule, as a client meets it: in the answer, in the refusal, and kept on the task."""

import pytest

from acceptance.flat import Client

NONE = "no draft"
SHORT = "draft shorter than 40 characters"
OFF = "draft does not mention the title or the brief"
FINE = "length and topic checks passed"
FILL = "x" * 60

CASES = [
    ("empty", "Alpha", "brief", "", NONE),
    ("blank", "Alpha", "brief", " \t\n ", NONE),
    ("39 characters", "Alpha", "brief", "alpha" + "x" * 34, SHORT),
    ("40 characters", "Alpha", "brief", "alpha" + "x" * 35, FINE),
    ("39 characters and white space", "Alpha", "brief", "  alpha" + "x" * 34 + "\n ", SHORT),
    ("40 characters of two bytes", "Ålpha", "brief", "ålpha" + "é" * 35, FINE),
    ("40 characters outside the BMP", "Alpha", "brief", "alpha" + "\N{GRINNING FACE}" * 35, FINE),
    ("neither", "Alpha", "brief words", FILL, OFF),
    ("title, case ignored", "ALPHA beta", "brief", f"{FILL} alpha BETA", FINE),
    ("title in part only", "Alpha beta", "nothing", f"alpha {FILL}", OFF),
    ("title inside a word", "Alpha", "nothing", f"xalphax{FILL}", FINE),
    ("title is not stripped", " Alpha ", "nothing", f"{FILL}alpha", OFF),
    ("title with its spaces", " Alpha ", "nothing", f"{FILL} alpha {FILL}", FINE),
    ("the draft is stripped", " Alpha", "nothing", f"  alpha{FILL}", OFF),
    ("first long word", "Alpha", "a bee seed word", f"SEED {FILL}", FINE),
    ("word of three letters", "Alpha", "a bee", f"bee {FILL}", OFF),
    ("fourth long word", "Alpha", "aaaa bbbb cccc dddd eeee", f"dddd {FILL}", FINE),
    ("fifth long word", "Alpha", "aaaa bbbb cccc dddd eeee", f"eeee {FILL}", OFF),
    ("short words do not count", "Alpha", "a b c d e f aaaa bbbb cccc dddd", f"dddd {FILL}", FINE),
    ("punctuation stays", "Alpha", "seed, word.", f"seed word {FILL}", OFF),
    ("punctuation found", "Alpha", "seed, word.", f"seed, {FILL}", FINE),
    ("punctuation makes a word long", "Alpha", "bee!", f"bee! {FILL}", FINE),
    ("any white space splits", "Alpha", "seed\tword\nmore", f"word {FILL}", FINE),
]


@pytest.mark.parametrize(("title", "brief", "draft", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_draft_is_judged(client: Client, title: str, brief: str, draft: str, reason: str) -> None:
    task = client.bring("drafting", title=title, brief=brief)
    answer = client.post("/request-approval", task_id=task, agent_id="ann", draft=draft)
    if reason == FINE:
        told = {"ok": True, "reason": FINE}
        assert (answer.status, answer.body["state"], answer.body["passed"], answer.body["evidence"]) == (
            200,
            "awaiting_approval",
            True,
            told,
        )
        return
    told = {"ok": False, "reason": reason}
    assert (answer.status, answer.body) == (409, {"detail": f"evidence failed: {told}"})
    again = client.done("/start-draft", task_id=task, agent_id="ann")
    assert (again["state"], again["passed"], again["evidence"]) == ("drafting", False, told)


def test_a_refused_draft_is_kept_and_a_better_one_takes_its_place(client: Client) -> None:
    task = client.bring("drafting")
    own = {"task_id": task, "agent_id": "ann"}
    assert client.post("/request-approval", **own, draft="Too short.").status == 409
    assert client.post("/request-approval", **own, draft=FILL).detail == f"evidence failed: {{'ok': False, 'reason': '{OFF}'}}"
    assert client.done("/request-approval", **own, draft=f"Release notes {FILL}")["passed"] is True


def test_a_rejected_draft_keeps_its_evidence(client: Client) -> None:
    task = client.bring("awaiting_approval")
    assert client.done("/reject", task_id=task)["evidence"] == {"ok": True, "reason": FINE}


def test_a_draft_of_nothing_loses_the_good_one_but_not_the_task(client: Client) -> None:
    """What is submitted is what is judged, also when the draft before it was good."""
    task = client.bring("awaiting_approval")
    client.done("/reject", task_id=task)
    refused = client.post("/request-approval", task_id=task, agent_id="ann", draft="")
    assert refused.detail == "evidence failed: {'ok': False, 'reason': 'no draft'}"
    assert client.done("/start-draft", task_id=task, agent_id="ann")["state"] == "drafting"
