"""The main job over the flat paths: statuses, bodies, notes, order of rows."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from acceptance.flat import BRIEF, GOOD, NOBODY, TITLE, Client
from acceptance.process import Served, running
from pointsman import Pointsman

NO_DRAFT = {"ok": False, "reason": "no draft"}
FINE = {"ok": True, "reason": "length and topic checks passed"}


@pytest.fixture(scope="module")
def served(shared_url: str) -> Iterator[Served]:
    """On one store and then on the other."""
    with running(shared_url) as process:
        yield process


def test_a_task_goes_from_queue_to_done(fresh: Client) -> None:
    made = fresh.done("/enqueue", title=TITLE, brief=BRIEF)
    task = made["id"]
    assert UUID(task).version == 7
    assert task == task.lower()
    assert made == {"id": task, "state": "queued", "owner": None, "passed": False, "evidence": NO_DRAFT}
    own = {"task_id": task, "agent_id": "ann"}
    assert fresh.done("/claim", **own) == {"id": task, "state": "claimed", "owner": "ann", "passed": False, "evidence": NO_DRAFT}
    assert fresh.done("/start-draft", **own)["state"] == "drafting"

    short = fresh.post("/request-approval", **own, draft="Too short.")
    assert (short.status, short.body) == (409, {"detail": "evidence failed: {'ok': False, 'reason': 'draft shorter than 40 characters'}"})
    kept = fresh.done("/start-draft", **own)
    assert kept["passed"] is False
    assert kept["evidence"] == {"ok": False, "reason": "draft shorter than 40 characters"}

    asked = fresh.done("/request-approval", **own, draft=GOOD)
    assert asked == {"id": task, "state": "awaiting_approval", "owner": "ann", "passed": True, "evidence": FINE}
    assert fresh.rows("/approvals") == [{"id": task, "title": TITLE, "draft": GOOD, "owner": "ann", "evidence": FINE}]

    assert fresh.done("/reject", task_id=task, reviewer="rita", note="say more")["state"] == "drafting"
    assert fresh.rows("/open") == [{"id": task, "title": TITLE, "state": "drafting", "owner": "ann", "review_note": "say more"}]
    assert fresh.rows("/inbox", agent_id="ann") == [
        {"id": task, "title": TITLE, "brief": BRIEF, "state": "drafting", "review_note": "say more"}
    ]
    fresh.done("/request-approval", **own, draft=GOOD + " More.")
    assert fresh.done("/approve", task_id=task, reviewer="rita") == asked | {"state": "approved"}
    assert fresh.done("/complete", **own) == asked | {"state": "done"}
    assert fresh.rows("/open") == fresh.rows("/approvals") == fresh.rows("/inbox", agent_id="ann") == []


@pytest.mark.parametrize(
    ("path", "note", "written"),
    [
        ("/approve", {}, None),
        ("/approve", {"note": None}, None),
        ("/approve", {"note": ""}, ""),
        ("/approve", {"note": "fine"}, "fine"),
        ("/reject", {}, ""),
        ("/reject", {"note": None}, ""),
        ("/reject", {"note": "again"}, "again"),
    ],
)
def test_what_a_decision_writes_as_the_review_note(client: Client, path: str, note: dict[str, str | None], written: str | None) -> None:
    task = client.bring("awaiting_approval")
    client.done("/reject", task_id=task, note="before")
    client.done("/request-approval", task_id=task, agent_id="ann", draft=GOOD)
    client.done(path, task_id=task, **note)
    assert _open_row(client, task)["review_note"] == written


@pytest.mark.parametrize("members", [{}, {"note": None}, {"note": "cannot be done"}, {"agent_id": None}])
def test_a_task_can_be_given_up(client: Client, members: dict[str, str | None]) -> None:
    task = client.bring("drafting")
    assert client.done("/fail", task_id=task, **members)["state"] == "failed"
    assert task not in {row["id"] for row in client.rows("/open")}


def test_a_review_note_stays_until_the_next_decision(client: Client) -> None:
    task = client.bring("awaiting_approval")
    client.done("/reject", task_id=task, note="say more")
    client.done("/start-draft", task_id=task, agent_id="ann")
    client.done("/request-approval", task_id=task, agent_id="ann", draft=GOOD)
    assert _open_row(client, task)["review_note"] == "say more"


def test_a_decision_needs_no_name(client: Client) -> None:
    assert client.done("/approve", task_id=client.bring("awaiting_approval"))["state"] == "approved"
    assert client.done("/reject", task_id=client.bring("awaiting_approval"), reviewer=None)["state"] == "drafting"


@pytest.mark.parametrize("path", ["/approve", "/reject"])
@pytest.mark.parametrize("name", ["ann", "ANN"])
def test_a_contributor_does_not_judge(client: Client, path: str, name: str) -> None:
    task = client.bring("awaiting_approval", owner="ann")
    refused = client.post(path, task_id=task, reviewer=name)
    assert refused.status == 409
    assert "contribut" in refused.detail
    assert _open_row(client, task)["state"] == "awaiting_approval"


def test_a_decision_may_name_what_was_shown(client: Client) -> None:
    task = client.bring("awaiting_approval")
    refused = client.post("/approve", task_id=task, reviewer="rita", digest="0" * 64)
    assert refused.status == 409
    assert refused.detail != "not awaiting approval"
    assert client.done("/approve", task_id=task, reviewer="rita", digest=None)["state"] == "approved"


def test_what_is_recorded_of_a_decision(served: Served, client: Client) -> None:
    blind, shown, unnamed = (client.bring("awaiting_approval") for _ in range(3))
    with Pointsman(served.db) as pm:
        client.done("/approve", task_id=blind, reviewer="rita")
        client.done("/approve", task_id=shown, reviewer="rita", digest=pm.get(shown).digest, note="read it")
        client.done("/reject", task_id=unnamed, note="who am I")
        made = {task: pm.get(task).decisions[-1] for task in (blind, shown, unnamed)}
        assert [(d.event, d.by, d.note) for d in made.values()] == [
            ("approve", "rita", None),
            ("approve", "rita", "read it"),
            ("reject", "anonymous", "who am I"),
        ]
        assert [d.shown for d in made.values()] == [None, pm.get(shown).digest, None]
        assert {entry.door for task in made for entry in pm.history(task)} == {"flat"}


@pytest.mark.parametrize(("members", "note"), [({}, ""), ({"note": None}, ""), ({"note": "too hard"}, "too hard")])
def test_what_a_failure_writes(served: Served, client: Client, members: dict[str, str | None], note: str) -> None:
    task = client.bring("drafting")
    client.done("/fail", task_id=task, **members)
    with Pointsman(served.db) as pm:
        assert pm.get(task).fields["review_note"] == note


def test_a_refused_draft_is_on_the_task(served: Served, client: Client) -> None:
    task = client.bring("drafting")
    assert client.post("/request-approval", task_id=task, agent_id="ann", draft="Too short.").status == 409
    with Pointsman(served.db) as pm:
        kept = pm.get(task)
    assert (kept.state, kept.fields["draft"], kept.evidence["topic"].reason) == (
        "drafting",
        "Too short.",
        "draft shorter than 40 characters",
    )


def test_a_long_list_is_streamed_whole_and_in_order(fresh_served: Served, fresh: Client) -> None:
    with Pointsman(fresh_served.db) as pm:
        made = [pm.create("tasks", {"title": f"t{n}", "brief": "b"}, by="ann").id for n in range(1_100)]
        answer = fresh.send("GET", "/open")
        assert answer.headers["transfer-encoding"] == "chunked"
        assert [row["id"] for row in answer.body["rows"]] == made
        fresh.done("/claim", agent_id="ann", task_id=made[3])
        assert [row["id"] for row in fresh.rows("/open")] == [*made[:3], *made[4:], made[3]]
        assert [row["id"] for row in fresh.rows("/inbox", agent_id="ann")] == made


def test_claim_takes_the_oldest_and_by_id_any(fresh: Client) -> None:
    first, second, third = (fresh.bring("queued", title=title) for title in ("one", "two", "three"))
    assert fresh.done("/claim", agent_id="ann", task_id=second)["id"] == second
    assert fresh.done("/claim", agent_id="bob")["id"] == first
    assert fresh.done("/claim", agent_id="ann", task_id=None)["id"] == third
    nothing = fresh.post("/claim", agent_id="ann")
    assert (nothing.status, nothing.body) == (409, {"detail": "no queued task, or it was already claimed"})


def test_open_and_approvals_are_ordered_by_the_last_change_and_the_inbox_by_creation(fresh: Client) -> None:
    tasks = [fresh.bring("awaiting_approval", title=title) for title in ("one", "two", "three")]
    fresh.done("/reject", task_id=tasks[0])
    assert [row["id"] for row in fresh.rows("/open")] == [tasks[1], tasks[2], tasks[0]]
    fresh.done("/request-approval", task_id=tasks[0], agent_id="ann", draft=GOOD)
    assert [row["id"] for row in fresh.rows("/approvals")] == [tasks[1], tasks[2], tasks[0]]
    assert [row["id"] for row in fresh.rows("/inbox", agent_id="ann")] == tasks


def test_the_inbox_is_the_queue_and_what_one_holds(fresh: Client) -> None:
    states = ("queued", "claimed", "drafting", "awaiting_approval", "approved", "done", "failed")
    mine = {state: fresh.bring(state, owner="ann") for state in states}
    theirs = {state: fresh.bring(state, owner="bob") for state in states}
    seen = {row["id"] for row in fresh.rows("/inbox", agent_id="ann")}
    assert seen == {mine[state] for state in states[:5]} | {theirs["queued"]}
    listed = {row["id"] for row in fresh.rows("/open")}
    assert listed == {every[state] for every in (mine, theirs) for state in states[:5]}


@pytest.mark.parametrize(
    ("path", "members", "detail"),
    [
        ("/claim", {"agent_id": "ann"}, "no queued task, or it was already claimed"),
        ("/start-draft", {"agent_id": "ann"}, "not your task, or not claimed or drafting"),
        ("/request-approval", {"agent_id": "ann", "draft": GOOD}, "not your task, or not drafting"),
        ("/approve", {}, "not awaiting approval"),
        ("/reject", {}, "not awaiting approval"),
        ("/complete", {"agent_id": "ann"}, "not approved, or not your task"),
        ("/fail", {}, "already done or failed"),
    ],
)
@pytest.mark.parametrize("task", [NOBODY, "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "f47ac10b-58cc-4372-a567-0e02b2c3d479"])
def test_an_unknown_task_is_answered_like_one_that_is_not_open(
    client: Client, path: str, members: dict[str, str], detail: str, task: str
) -> None:
    refused = client.post(path, task_id=task, **members)
    assert (refused.status, refused.body) == (409, {"detail": detail})


def test_ids_are_known_in_either_case(client: Client) -> None:
    task = client.bring("queued")
    assert client.done("/claim", task_id=task.upper(), agent_id="ann")["id"] == task


def test_a_repeated_request_with_one_idempotency_key_is_one_change(client: Client) -> None:
    key = {"idempotency-key": "enqueue-once-41"}
    body = b'{"title": "Once", "brief": "only once"}'
    first, again = (client.send("POST", "/enqueue", body, key) for _ in range(2))
    assert first.status == again.status == 200
    assert first.body == again.body
    other = client.send("POST", "/enqueue", b'{"title": "Twice", "brief": "only once"}', key)
    assert other.status == 422


def test_the_caller_is_named_in_one_way_only(client: Client) -> None:
    task = client.bring("queued")
    two = client.send("POST", "/claim", b'{"agent_id": "ann", "task_id": "%s"}' % task.encode(), {"pointsman-as": "bob"})
    assert two.status == 403
    one = client.send("POST", "/claim", b'{"agent_id": "ann", "task_id": "%s"}' % task.encode(), {"pointsman-as": "ann"})
    assert one.body["owner"] == "ann"


def test_other_paths_and_methods(client: Client) -> None:
    assert client.send("GET", "/healthz").status == 200
    assert client.send("GET", "/nowhere").body == {"detail": "Not Found"}
    assert client.send("GET", "/open/").status == 404
    refused = client.send("GET", "/approve")
    assert (refused.status, refused.body, refused.headers["allow"]) == (405, {"detail": "Method Not Allowed"}, "POST")


def _open_row(client: Client, task: str) -> dict[str, object]:
    return next(row for row in client.rows("/open") if row["id"] == task)
