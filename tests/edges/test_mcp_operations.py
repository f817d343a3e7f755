"""The ledger over MCP: begin_operation, finish_operation, checkpoint and resume_task, from seats that hold and seats that do not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.ledger_world import Refunds
from edges.mcp_world import calling
from pointsman import Pointsman, Task, Tasks, minutes
from pointsman.mcp.fit import LIMIT, encode
from pointsman.mcp.tools import Seating, toolbox
from pointsman.testing import FakeClock
from pointsman.types import seconds

Call = Callable[..., dict[str, Any]]
OWNERS = ("begin_operation", "finish_operation", "checkpoint")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pm(tmp_path: Path, clock: FakeClock) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Refunds], clock=clock) as opened:
        yield opened
        assert opened.verify().ok


def approved(pm: Pointsman, call: Call) -> Task:
    """A refund that `call` holds, and somebody else approved."""
    made = pm.create("refunds", {"order": "A-1", "amount": 12}, by="ann")
    taken = call("claim_task", task_id=made.id)
    judged = call("submit", task_id=made.id, epoch=taken["epoch"])
    return pm.propose(made.id, "approve", by="rita", digest=judged["digest"])


def replaced(pm: Pointsman, clock: FakeClock, task: Task, by: str = "worker-b") -> Task:
    clock.advance(minutes(10) + seconds(1))
    found = pm.claim("refunds", by=by, id=task.id)
    assert found is not None
    return found


def test_over_http_the_epoch_is_an_argument_and_over_stdio_it_need_not_be() -> None:
    tasks = {"refunds": Refunds.definition}
    http, stdio = (toolbox(tasks, Seating(named=True, holds=holds)) for holds in (False, True))
    for name in OWNERS:
        assert "epoch" in http[name].input["required"]
        assert "epoch" not in stdio[name].input["required"]
        assert "session" not in stdio[name].input["properties"]
    assert stdio["resume_task"].reads
    assert not any(stdio[name].reads for name in OWNERS)


def test_only_declared_effects_are_offered() -> None:
    seating = Seating(named=True, holds=False)
    offered = toolbox({"refunds": Refunds.definition}, seating)["begin_operation"].input["properties"]["effect"]
    assert "take_back" in str(offered)
    assert "refund" in str(offered)
    assert "effect" not in toolbox({"tasks": Tasks.definition}, seating)["begin_operation"].input["properties"]


@pytest.mark.parametrize("holds", [False, True], ids=["over http", "over stdio"])
def test_an_operation_from_its_beginning_to_its_end(pm: Pointsman, holds: bool) -> None:
    call = calling(pm, holds=holds)
    task = approved(pm, call)
    mine = {"task_id": task.id} | ({} if holds else {"epoch": task.epoch})
    begun = call("begin_operation", **mine, name="refund", effect="refund")
    assert (begun["status"], begun["request"], begun["attempt"]) == ("started", {"order": "A-1", "amount": 12}, 1)
    assert begun["untrusted"] == ["request", "result", "testimony"]
    assert call("complete", **mine)["code"] == "operation_in_doubt"
    done = call("finish_operation", **mine, operation_id=begun["id"], status="succeeded", result={"ref": 9}, note="as asked")
    assert (done["status"], done["result"], done["settled"]["note"]) == ("succeeded", {"ref": 9}, "as asked")
    assert call("begin_operation", **mine, name="refund", effect="refund")["result"] == {"ref": 9}
    assert call("complete", **mine)["state"] == "done"
    assert [entry.door for entry in pm.history(task.id) if entry.kind in ("begin", "settle")] == ["mcp", "mcp"]


def test_a_connection_does_not_lose_its_task_while_it_writes_the_ledger(pm: Pointsman, clock: FakeClock) -> None:
    call = calling(pm, holds=True)
    task = approved(pm, call)
    for number in range(3):
        clock.advance(minutes(9))
        call("checkpoint", task_id=task.id, data={"page": number}, expect=number)
    clock.advance(minutes(9))
    assert call("begin_operation", task_id=task.id, name="load", kind="repeatable")["status"] == "started"
    lease = pm.get(task.id).lease
    assert lease is not None
    assert lease.live


def test_whoever_takes_over_is_told_what_is_in_doubt(pm: Pointsman, clock: FakeClock) -> None:
    first, second = calling(pm), calling(pm, "worker-b")
    task = approved(pm, first)
    mine = {"task_id": task.id, "epoch": task.epoch}
    refund = first("begin_operation", **mine, name="refund", effect="refund")
    first("checkpoint", **mine, data={"at": "paying"}, plan=["archive"], progress=0.5)
    later = replaced(pm, clock, task)
    facts = second("resume_task", task_id=task.id)
    assert facts["untrusted"] == ["operations", "checkpoint", "notes"]
    assert [(item["name"], item["status"]) for item in facts["operations"]["in_doubt"]] == [("refund", "in_doubt")]
    assert [item["name"] for item in facts["operations"]["pending"]] == ["mail", "archive"]
    assert (facts["checkpoint"]["data"], facts["checkpoint"]["number"], facts["epoch"]) == ({"at": "paying"}, 1, later.epoch)
    theirs = {"task_id": task.id, "epoch": later.epoch}
    assert second("begin_operation", **theirs, name="refund", effect="refund")["status"] == "in_doubt"
    early = second("finish_operation", **theirs, operation_id=refund["id"], status="not_done")
    assert (early["code"], early["operation"]) == ("operation_in_doubt", refund["id"])
    late = first("finish_operation", **mine, operation_id=refund["id"], status="succeeded", result=9)
    assert (late["code"], late["recorded"]) == ("lease_lost", False)
    told = second("begin_operation", **theirs, name="refund", effect="refund")
    assert told["status"] == "in_doubt"
    assert pm.operations(task.id)[0].testimony[0].result == 9


def test_a_replaced_connection_writes_nothing(pm: Pointsman, clock: FakeClock) -> None:
    call = calling(pm, holds=True)
    task = approved(pm, call)
    begun = call("begin_operation", task_id=task.id, name="load", kind="keyed")
    later = replaced(pm, clock, task)
    for tool, more in (
        ("begin_operation", {"name": "more", "kind": "keyed"}),
        ("finish_operation", {"operation_id": begun["id"], "status": "failed"}),
        ("checkpoint", {"data": 1}),
    ):
        assert call(tool, task_id=task.id, **more)["code"] == "lease_lost"
    assert pm.get(task.id) == later


def test_an_outcome_is_that_of_the_task_that_is_named(pm: Pointsman) -> None:
    """Its epoch is the other task's: it would say nothing about whoever owns this one."""
    call = calling(pm)
    one, other = approved(pm, call), approved(pm, call)
    begun = call("begin_operation", task_id=one.id, epoch=one.epoch, name="load", kind="keyed")
    no = call("finish_operation", task_id=other.id, epoch=other.epoch, operation_id=begun["id"], status="succeeded")
    assert (no["code"], pm.operations(one.id)[0].standing) == ("unknown_operation", "started")
    again = call("begin_operation", task_id=one.id, epoch=one.epoch, name="load", kind="keyed")
    assert (again["status"], again["known"], again["replayed"]) == ("started", True, False)


def test_a_call_with_its_key_is_done_once(pm: Pointsman) -> None:
    call = calling(pm)
    task = approved(pm, call)
    mine = {"task_id": task.id, "epoch": task.epoch, "idempotency_key": "k"}
    first, again = (call("begin_operation", **mine, name="load", kind="keyed") for _ in range(2))
    assert (first["known"], first["replayed"], again) == (False, False, first | {"replayed": True})
    end = {"task_id": task.id, "epoch": task.epoch, "operation_id": first["id"], "status": "not_done", "idempotency_key": "e"}
    first, again = (call("finish_operation", **end) for _ in range(2))
    assert again == first | {"replayed": True}
    assert pm.get(task.id).version == task.version + 2


@pytest.mark.parametrize(
    ("tool", "more", "path"),
    [
        ("begin_operation", {"name": "a", "kind": "hope"}, "kind"),
        ("begin_operation", {"kind": "keyed"}, "name"),
        ("begin_operation", {"name": "a", "kind": "keyed", "timeout_s": 0}, "timeout_s"),
        ("begin_operation", {"name": "a", "kind": "keyed", "request": "\0"}, "request"),
        ("begin_operation", {"name": "a", "kind": "keyed", "state": "done"}, "state"),
        ("finish_operation", {"operation_id": "x", "status": "failed"}, "operation_id"),
        ("finish_operation", {"status": "failed"}, "operation_id"),
        ("checkpoint", {}, "data"),
        ("checkpoint", {"data": 1, "plan": [""]}, "plan[0]"),
        ("checkpoint", {"data": 1, "expect": -1}, "expect"),
    ],
)
def test_what_does_not_fit_is_named_and_writes_nothing(pm: Pointsman, tool: str, more: dict[str, Any], path: str) -> None:
    call = calling(pm)
    task = approved(pm, call)
    no = call(tool, task_id=task.id, epoch=task.epoch, **more)
    assert (no["code"], no["failed"][0]["path"]) == ("invalid", path)
    assert (pm.get(task.id).version, pm.operations(task.id), pm.resume(task.id).checkpoint) == (task.version, [], None)


def test_nothing_is_data_too(pm: Pointsman) -> None:
    call = calling(pm)
    task = approved(pm, call)
    assert call("checkpoint", task_id=task.id, epoch=task.epoch, data=None)["number"] == 1
    assert pm.resume(task.id).checkpoint is not None


def test_an_answer_is_short_enough_to_read(pm: Pointsman) -> None:
    call = calling(pm)
    task = approved(pm, call)
    for number in range(30):
        begun = call("begin_operation", task_id=task.id, epoch=task.epoch, name=f"load {number}", kind="repeatable")
        call("finish_operation", task_id=task.id, epoch=task.epoch, operation_id=begun["id"], status="succeeded", result="x" * 5_000)
    call("checkpoint", task_id=task.id, epoch=task.epoch, data="y" * 50_000)
    facts = call("resume_task", task_id=task.id)
    assert len(encode(facts).encode()) <= LIMIT
    assert {"task", "operations", "checkpoint"} <= facts.keys()
