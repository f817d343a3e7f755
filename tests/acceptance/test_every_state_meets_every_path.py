"""Seven states by the seven paths that move a task by who asks, as one table: what is open answers 200 and the next
state, everything else 409 with the path's sentence, and changes nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from acceptance.flat import GOOD, STATES, Client
from acceptance.process import Served, running

DETAIL = {
    "/claim": "no queued task, or it was already claimed",
    "/start-draft": "not your task, or not claimed or drafting",
    "/request-approval": "not your task, or not drafting",
    "/approve": "not awaiting approval",
    "/reject": "not awaiting approval",
    "/complete": "not approved, or not your task",
    "/fail": "already done or failed",
}
NAMED = {"/approve": "reviewer", "/reject": "reviewer"}
MORE = {"/request-approval": {"draft": GOOD}}
NOBODY_ALLOWED = ("/approve", "/reject", "/fail")

_GIVEN_UP = {(state, "/fail"): "failed" for state in ("claimed", "drafting", "awaiting_approval", "approved")}
_ANYONE = {("queued", "/claim"): "claimed", **_GIVEN_UP}
_JUDGED = {("awaiting_approval", "/approve"): "approved", ("awaiting_approval", "/reject"): "drafting"}
_OWNED = {
    ("claimed", "/start-draft"): "drafting",
    ("drafting", "/start-draft"): "drafting",
    ("drafting", "/request-approval"): "awaiting_approval",
    ("approved", "/complete"): "done",
}
NEXT = {"ann": _ANYONE | _OWNED, "bob": _ANYONE | _JUDGED, None: _GIVEN_UP | _JUDGED}
"""Per caller (ann owns, bob does not, None gives no name): what is open, and where it leads."""

CASES = [(state, path, who) for state in STATES for path in DETAIL for who in NEXT if who is not None or path in NOBODY_ALLOWED]


@pytest.fixture(scope="module")
def served(shared_url: str) -> Iterator[Served]:
    """On one store and then on the other."""
    with running(shared_url) as process:
        yield process


@pytest.mark.parametrize(("state", "path", "who"), CASES)
def test_state_path_and_caller(client: Client, state: str, path: str, who: str | None) -> None:
    task = client.bring(state, owner="ann")
    before = _look(client, task)
    members: dict[str, Any] = {"task_id": task, **MORE.get(path, {})}
    if who is not None:
        members[NAMED.get(path, "agent_id")] = who
    answer = client.post(path, **members)
    target = NEXT[who].get((state, path))
    if target is not None:
        assert (answer.status, answer.body["state"]) == (200, target)
        return
    assert answer.status == 409
    assert set(answer.body) == {"detail"}
    if not (who == "ann" and path in NAMED and state != "queued"):  # a contributor is told so, in any state
        assert answer.detail == DETAIL[path]
    assert _look(client, task) == before


def test_the_table_is_whole() -> None:
    assert len(CASES) == 7 * 7 * 2 + 7 * 3


def _look(client: Client, task: str) -> list[dict[str, Any]]:
    """All that the flat paths show of a task, with its place in the order of last changes."""
    return [row for path in ("/open", "/approvals") for row in client.rows(path) if row["id"] == task]
