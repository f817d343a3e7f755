"""Callers at the same moment: one task has one winner, N tasks have N, and of two decisions one counts."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from acceptance.flat import BRIEF, TITLE, Answer, Client
from acceptance.process import Served

RACERS = 16


def race(served: Served, calls: list[Callable[[Client], Answer]]) -> list[Answer]:
    """Every call on its own connection, all let go at once."""
    barrier = threading.Barrier(len(calls))

    def run(call: Callable[[Client], Answer]) -> Answer:
        with Client(served.url) as client:
            client.send("GET", "/healthz")
            barrier.wait(30)
            return call(client)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def claiming(name: str, **members: str) -> Callable[[Client], Answer]:
    return lambda client: client.post("/claim", agent_id=name, **members)


@pytest.mark.parametrize("by_id", [True, False], ids=["by id", "the oldest"])
def test_one_task_has_one_winner(fresh_served: Served, fresh: Client, by_id: bool) -> None:
    for _ in range(5):
        task = fresh.bring("queued")
        members = {"task_id": task} if by_id else {}
        answers = race(fresh_served, [claiming(f"racer-{n}", **members) for n in range(RACERS)])
        won = [answer for answer in answers if answer.status == 200]
        lost = [answer for answer in answers if answer.status == 409]
        assert len(won) == 1
        assert len(lost) == RACERS - 1
        assert {answer.detail for answer in lost} == {"no queued task, or it was already claimed"}
        assert won[0].body["id"] == task
        assert [row["owner"] for row in fresh.rows("/open") if row["id"] == task] == [won[0].body["owner"]]


def test_sixteen_tasks_have_sixteen_winners(fresh_served: Served, fresh: Client) -> None:
    tasks = {fresh.bring("queued") for _ in range(RACERS)}
    answers = race(fresh_served, [claiming(f"racer-{n}") for n in range(RACERS)])
    assert [answer.status for answer in answers] == [200] * RACERS
    assert {answer.body["id"] for answer in answers} == tasks
    assert {row["id"]: row["owner"] for row in fresh.rows("/open")} == {answer.body["id"]: answer.body["owner"] for answer in answers}


def test_of_approve_and_reject_one_counts(served: Served, client: Client) -> None:
    for _ in range(10):
        task = client.bring("awaiting_approval")
        answers = race(
            served,
            [
                lambda c, task=task: c.post("/approve", task_id=task, reviewer="rita", note="yes"),
                lambda c, task=task: c.post("/reject", task_id=task, reviewer="saul", note="no"),
            ],
        )
        assert sorted(answer.status for answer in answers) == [200, 409]
        outcome = next((row["state"], row["review_note"]) for row in client.rows("/open") if row["id"] == task)
        assert outcome == (("approved", "yes") if answers[0].status == 200 else ("drafting", "no"))
        assert next(answer.detail for answer in answers if answer.status == 409) == "not awaiting approval"


def test_a_double_click_approves_once(served: Served, client: Client) -> None:
    task = client.bring("awaiting_approval")
    answers = race(served, [lambda c: c.post("/approve", task_id=task, reviewer="rita")] * 2)
    assert sorted(answer.status for answer in answers) == [200, 409]


def test_every_enqueue_is_a_task(fresh_served: Served, fresh: Client) -> None:
    answers = race(fresh_served, [lambda client: client.post("/enqueue", title=TITLE, brief=BRIEF)] * RACERS)
    assert len({answer.body["id"] for answer in answers}) == RACERS
    assert len(fresh.rows("/open")) == RACERS
