"""P9: the same idempotency key and request give the same answer and one change, also for concurrent duplicates and
after a crash between commit and reply; the same key with another request is refused."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

import support
from pointsman import Pointsman, Refused, Task

CALLERS = 8

CRASHING = """
import os, signal, sys
from pointsman import Pointsman
url, task, epoch, draft = sys.argv[1:]
armed = False
def probe(point):
    if armed and point == "commit.after":
        os.kill(os.getpid(), signal.SIGKILL)
pm = Pointsman(url, probe=probe)
armed = True
pm.propose(task, "request_approval", {"draft": draft}, by="worker-a", epoch=int(epoch), idempotency_key="once")
print("answered")
"""


def _submit(pm: Pointsman, task: Task, draft: str, key: str = "once") -> Task:
    return pm.propose(task.id, "request_approval", {"draft": draft}, by=support.OWNER, epoch=task.epoch, idempotency_key=key)


def test_concurrent_duplicates_change_once(url: str) -> None:
    with Pointsman(url) as one, Pointsman(url) as other:
        task = support.drafting(one)
        gate = Barrier(CALLERS)

        def call(pm: Pointsman) -> Task:
            gate.wait()
            return _submit(pm, task, support.GOOD)

        with ThreadPoolExecutor(CALLERS) as pool:
            answers = list(pool.map(call, [one, other] * (CALLERS // 2)))
        assert all(answer == answers[0] for answer in answers)
        assert (answers[0].state, one.get(task.id).version) == ("awaiting_approval", task.version + 1)


def test_concurrent_duplicates_of_a_claim_take_one_task(url: str) -> None:
    with Pointsman(url) as pm:
        tasks = [support.create(pm) for _ in range(CALLERS)]
        gate = Barrier(CALLERS)

        def call(_: int) -> Task | None:
            gate.wait()
            return pm.claim("tasks", by=support.OWNER, idempotency_key="claim-1")

        with ThreadPoolExecutor(CALLERS) as pool:
            answers = list(pool.map(call, range(CALLERS)))
        assert {answer and answer.id for answer in answers} == {tasks[0].id}
        assert len(pm.list(state="queued")) == CALLERS - 1


def test_concurrent_duplicates_of_a_creation_make_one_task(url: str) -> None:
    with Pointsman(url) as pm, ThreadPoolExecutor(CALLERS) as pool:
        fields = {"title": "t", "brief": "b"}
        answers = list(pool.map(lambda _: pm.create("tasks", fields, by="ann", idempotency_key="new-1"), range(CALLERS)))
        assert [task.id for task in pm.list()] == [answers[0].id]
        assert all(answer == answers[0] for answer in answers)


def test_concurrent_duplicates_of_a_release_give_back_once(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        gate = Barrier(CALLERS)

        def call(_: int) -> Task:
            gate.wait()
            return pm.release(task.id, by=support.OWNER, epoch=task.epoch, idempotency_key="back-1")

        with ThreadPoolExecutor(CALLERS) as pool:
            answers = list(pool.map(call, range(CALLERS)))
        assert {(answer.state, answer.owner, answer.version) for answer in answers} == {("queued", None, task.version + 1)}
        assert pm.get(task.id).version == task.version + 1


def test_a_replay_answers_the_first_answer_though_the_task_moved_on(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        first = _submit(pm, task, support.GOOD)
        pm.propose(task.id, "approve", by=support.REVIEWER, digest=first.digest)
        assert _submit(pm, task, support.GOOD) == first


def test_a_replayed_otherwise_branch_is_refused_the_same_way(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        with pytest.raises(Refused) as first:
            _submit(pm, task, support.BAD)
        _submit(pm, task, support.GOOD, key="twice")
        with pytest.raises(Refused) as again:
            _submit(pm, task, support.BAD)
        assert again.value.refusal == first.value.refusal
        assert (again.value.code, again.value.recorded, again.value.version) == ("evidence_failed", True, task.version + 1)


def test_a_crash_between_commit_and_reply(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
    died = subprocess.run(
        [sys.executable, "-c", CRASHING, url, task.id, str(task.epoch), support.GOOD], capture_output=True, text=True, check=False
    )
    assert (died.returncode, died.stdout) == (-signal.SIGKILL, ""), died.stderr
    with Pointsman(url) as pm:
        assert pm.get(task.id).version == task.version + 1
        answer = _submit(pm, task, support.GOOD)
        assert (answer.version, answer.state) == (task.version + 1, "awaiting_approval")
        assert len(pm.history(task.id)) == task.version + 1


def test_the_same_key_with_another_request_is_refused(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.drafting(pm)
        done = _submit(pm, task, support.GOOD)
        for change in ({"draft": support.GOOD + "."}, {"draft": None}):
            with pytest.raises(Refused) as refused:
                pm.propose(task.id, "request_approval", change, by=support.OWNER, epoch=task.epoch, idempotency_key="once")
            assert refused.value.code == ("invalid" if change["draft"] is None else "idempotency_conflict")
        with pytest.raises(Refused, match="idempotency_conflict"):
            pm.create("tasks", {"title": "t", "brief": "b"}, by=support.OWNER, idempotency_key="once")
        assert pm.get(task.id) == done


def test_keys_are_each_callers_own(url: str) -> None:
    with Pointsman(url) as pm:
        made = [pm.create("tasks", {"title": "t", "brief": "b"}, by=name, idempotency_key="k") for name in ("ann", "bob")]
        assert made[0].id != made[1].id


def test_a_refusal_binds_no_key(url: str) -> None:
    with Pointsman(url) as pm:
        task = support.create(pm)
        with pytest.raises(Refused, match="wrong_state"):
            pm.propose(task.id, "approve", by=support.REVIEWER, digest=task.digest, idempotency_key="k")
        held = pm.claim("tasks", by=support.OWNER, id=task.id)
        assert held is not None
        pm.propose(task.id, "start_draft", by=support.OWNER, epoch=held.epoch)
        sent = _submit(pm, held, support.GOOD)
        assert pm.propose(task.id, "approve", by=support.REVIEWER, digest=sent.digest, idempotency_key="k").state == "approved"


# ── what was there already ───────────────────────────────────────────────────────────────────────────────────────────

WORDS = {"title": "t", "brief": "b"}


def _create(pm: Pointsman, key: str | None, title: str = "t", by: str = "bea") -> Task:
    return pm.create("tasks", {**WORDS, "title": title}, by=by, dedupe_key="k" if title == "t" else None, idempotency_key=key)


def _batch(pm: Pointsman, key: str, *titles: str) -> list[Task]:
    items = [{"fields": {**WORDS, "title": title}, "dedupe_key": title} for title in titles]
    return pm.create_batch(items, by="bea", machine="tasks", idempotency_key=key)


def test_a_key_is_bound_to_a_task_that_was_there(url: str) -> None:
    with Pointsman(url) as pm:
        first = _create(pm, None, by="ann")
        known = _create(pm, "once")
        assert (known.id, known.deduped, known.replayed) == (first.id, True, False)
        with pytest.raises(Refused, match="idempotency_conflict"):
            _create(pm, "once", title="other")
        pm.claim("tasks", by="w", id=first.id)
        again = _create(pm, "once")
        assert (again, again.deduped, again.replayed) == (known, True, True)
        assert _create(pm, "twice").state == "claimed"
        assert len(pm.list()) == 1
        assert pm.verify().faults == ()


def test_a_key_is_bound_to_a_batch_that_was_there(url: str) -> None:
    with Pointsman(url) as pm:
        made = _batch(pm, "new", "one", "two")
        known = _batch(pm, "known", "two", "one")
        assert [task.id for task in known] == [made[1].id, made[0].id]
        with pytest.raises(Refused, match="idempotency_conflict"):
            _batch(pm, "known", "three")
        pm.claim("tasks", by="w", id=made[0].id)
        again = _batch(pm, "known", "two", "one")
        assert (again, {task.replayed for task in again}) == (known, {True})
        assert len(pm.list()) == 2
        assert pm.verify().faults == ()


def test_concurrent_duplicates_of_what_was_there_are_answered_alike(url: str) -> None:
    with Pointsman(url) as pm, ThreadPoolExecutor(CALLERS) as pool:
        first = _create(pm, None, by="ann")
        answers = list(pool.map(lambda _: _create(pm, "once"), range(CALLERS)))
        assert {answer.id for answer in answers} == {first.id}
        assert sorted(answer.replayed for answer in answers) == [False] + [True] * (CALLERS - 1)


def test_what_was_bound_goes_with_the_old_records(url: str) -> None:
    with Pointsman(url) as pm:
        _create(pm, None, by="ann")
        _create(pm, "once")
        assert pm.prune(0).requests == 2
        assert pm.verify().faults == ()
        assert not _create(pm, "once").replayed
