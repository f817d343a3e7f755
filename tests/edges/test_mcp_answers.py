"""What tools answer: tasks, refusals, pending proposals, pages; always labelled, never over 20 kB."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edges.mcp_world import Articles, calling
from pointsman import Event, Machine, Pointsman, State, Tasks, Verdict, check
from pointsman.mcp import verbs
from pointsman.mcp.fit import LIMIT, encode
from support import BAD, GOOD, OWNER, create, drafting, submitted


@pytest.fixture
def pm(tmp_path: Path) -> Iterator[Pointsman]:
    with Pointsman(f"sqlite:///{tmp_path}/work.db", [Tasks]) as opened:
        yield opened


def size(answer: dict[str, Any]) -> int:
    return len(encode(answer).encode())


def test_refused_evidence_keeps_the_draft_and_says_so(pm: Pointsman) -> None:
    task = drafting(pm)
    answer = calling(pm)("request_approval", task_id=task.id, draft=BAD, epoch=task.epoch)
    assert (answer["code"], answer["recorded"], answer["version"]) == ("evidence_failed", True, task.version + 1)
    assert answer["failed"][0]["reason"] == "draft shorter than 40 characters"
    assert answer["tools"] == ["start_draft", "request_approval", "fail_task"]
    assert answer["untrusted"] == ["failed", "detail"]
    assert pm.get(task.id).fields["draft"] == BAD


def test_a_refusal_changes_nothing_and_says_who_could(pm: Pointsman) -> None:
    task = submitted(pm)
    answer = calling(pm)("approve", task_id=task.id, digest=task.digest)
    assert (answer["code"], answer["recorded"]) == ("self_approval", False)
    assert answer["unblock"]
    assert pm.get(task.id).version == task.version


def test_a_decision_names_what_it_was_shown(pm: Pointsman) -> None:
    task = submitted(pm)
    rita = calling(pm, "rita")
    assert rita("approve", task_id=task.id)["code"] == "invalid"
    assert rita("approve", task_id=task.id, digest="0" * 64)["code"] == "stale_content"
    shown = rita("get_task", task_id=task.id)
    assert rita("approve", task_id=task.id, digest=shown["digest"])["state"] == "approved"
    assert pm.history(task.id)[-1].door == "mcp"


def test_http_takes_the_epoch_and_stdio_remembers_it(pm: Pointsman) -> None:
    http, stdio = calling(pm), calling(pm, holds=True)
    create(pm)
    create(pm)
    claimed = http("claim_task")
    assert http("start_draft", task_id=claimed["id"])["code"] == "invalid"
    assert claimed["session"].startswith("mcp-")
    started = http("start_draft", task_id=claimed["id"], epoch=claimed["epoch"], session=claimed["session"])
    assert (started["state"], started["tools"]) == ("drafting", ["start_draft", "request_approval", "fail_task"])
    own = stdio("claim_task")
    assert stdio("start_draft", task_id=own["id"].upper())["state"] == "drafting"
    assert stdio("start_draft", task_id=claimed["id"])["code"] == "invalid", "not claimed on this connection"
    assert stdio("start_draft", task_id=claimed["id"], epoch=99)["code"] == "lease_lost"
    assert calling(pm, holds=True)("start_draft", task_id=own["id"])["code"] == "invalid", "nor on that one"


def test_the_same_key_is_answered_the_same(pm: Pointsman) -> None:
    call = calling(pm)
    create(pm)
    create(pm)
    first = call("claim_task", idempotency_key="k1")
    call("start_draft", task_id=first["id"], epoch=first["epoch"])
    assert call("claim_task", idempotency_key="k1") == first | {"lease": None}, "history keeps no leases"
    assert call("claim_task", idempotency_key="k1", session="s-2")["code"] == "idempotency_conflict"


def test_nothing_to_claim_is_told(pm: Pointsman) -> None:
    assert calling(pm)("claim_task")["code"] == "nothing_to_claim"


def test_without_a_name_one_can_read_and_no_more(pm: Pointsman) -> None:
    task = create(pm)
    call = calling(pm, None)
    assert call("get_task", task_id=task.id)["allowed"] == []
    seen = call("get_task", task_id=task.id, **{"as": "worker-a"})
    assert (seen["allowed"], seen["tools"]) == (["claim"], ["claim_task"])
    assert call("list_work", view="mine")["code"] == "invalid"
    assert call("claim_task")["code"] == "invalid"
    assert call("claim_task", **{"as": "Anonymous"})["code"] == "invalid"
    assert call("claim_task", **{"as": "worker-a"})["owner"] == "worker-a"


def test_two_names_in_one_request_are_refused(pm: Pointsman) -> None:
    from pointsman.errors import Refused
    from pointsman.mcp.seat import Seat

    with pytest.raises(Refused, match="identity_mismatch"):
        Seat(("ann", "bob")).principal({})


def test_propose_takes_any_event_by_name_and_can_be_dry(pm: Pointsman) -> None:
    task, call = create(pm), calling(pm, holds=True)
    dry = call("propose", task_id=task.id, event="claim", dry_run=True)
    assert (dry["state"], pm.get(task.id).state) == ("claimed", "queued")
    assert call("propose", task_id=task.id, event="claim")["owner"] == "worker-a"
    assert call("propose", task_id=task.id, event="start_draft")["state"] == "drafting"
    assert call("propose", task_id=task.id, event="request_approval", args={"draft": GOOD})["state"] == "awaiting_approval"
    assert call("propose", task_id=task.id, event="request_approval", args={"state": "done"})["code"] == "invalid"


def test_a_long_board_comes_in_pages_that_fit(pm: Pointsman) -> None:
    made = [pm.create("tasks", {"title": f"Title {n}", "brief": "B" * 5_000}, by="ann").id for n in range(60)]
    call = calling(pm)
    pages = [call("list_work", limit=50)]
    while pages[-1]["next"]:
        pages.append(call("list_work", limit=50, cursor=pages[-1]["next"]))
    assert [row["id"] for page in pages for row in page["tasks"]] == made
    assert max(map(size, pages)) <= LIMIT
    assert "[cut: 200 of 5000 characters" in pages[0]["tasks"][0]["fields"]["brief"]
    assert call("list_work", cursor="01a22893-f7af-7b18-af4d-a7606ed1337a")["code"] == "invalid"


def test_views_of_the_board(pm: Pointsman) -> None:
    mine, _ = drafting(pm), create(pm)
    pm.propose(drafting(pm).id, "fail", by="ann")
    call = calling(pm, OWNER)
    assert [row["id"] for row in call("list_work", view="mine")["tasks"]] == [mine.id]
    assert len(call("list_work")["tasks"]) == 2
    assert len(call("list_work", view="all")["tasks"]) == 3
    assert [row["state"] for row in call("list_work", state="queued")["tasks"]] == ["queued"]


@pytest.mark.parametrize("letter", ["x", "é", "😀", '"'])
def test_a_long_text_is_cut_with_a_mark_and_read_on(pm: Pointsman, letter: str) -> None:
    brief = "".join(f"{n}{letter}" for n in range(30_000))
    task, call = pm.create("tasks", {"title": "Long", "brief": brief}, by="ann"), calling(pm)
    answer = call("get_task", task_id=task.id)
    assert size(answer) <= LIMIT
    read_on = answer["cut"]["brief"]
    assert read_on["characters"] == len(brief)
    assert f"get_task with field brief and offset {read_on['offset']} reads on" in answer["fields"]["brief"]
    text = brief[: read_on["offset"]]
    assert answer["fields"]["brief"].startswith(text)
    while read_on:
        answer = call("get_task", task_id=task.id, field="brief", offset=read_on["offset"])
        assert size(answer) <= LIMIT
        text += answer["fields"]["brief"]
        read_on = answer.get("cut", {}).get("brief")
    assert text == brief
    assert call("get_task", task_id=task.id, field="nope")["code"] == "invalid"
    assert call("get_task", task_id=task.id, field="brief", offset=10**9)["fields"] == {"brief": ""}


def test_a_long_list_is_read_on_as_its_json(tmp_path: Path) -> None:
    lines = [f"line {n}" for n in range(5_000)]
    with Pointsman(f"sqlite:///{tmp_path}/a.db", [Articles]) as pm:
        call = calling(pm)
        made = call("create_task", title="A", field_epoch=3, lines=lines)
        assert size(made) <= LIMIT
        text, offset = "", 0
        while True:
            answer = call("get_task", task_id=made["id"], field="lines", offset=offset)
            text += answer["fields"]["lines"]
            if "cut" not in answer:
                break
            offset = answer["cut"]["lines"]["offset"]
        assert "lines" in made["cut"]
        assert json.loads(text) == lines


def test_an_earlier_version_can_be_read(pm: Pointsman) -> None:
    task = drafting(pm)
    assert calling(pm)("get_task", task_id=task.id, version=1)["state"] == "queued"


def test_waiting_ends_when_the_task_moves(pm: Pointsman) -> None:
    task, call = submitted(pm), calling(pm)
    assert call("wait_task", task_id=task.id, version=task.version, timeout_s=0.2)["state"] == "awaiting_approval"
    approving = threading.Thread(target=lambda: pm.propose(task.id, "approve", by="rita", digest=task.digest))
    approving.start()
    assert call("wait_task", task_id=task.id, states=["approved"], timeout_s=20)["state"] == "approved"
    approving.join()


GATE = threading.Event()


def when_open(text: str | None) -> Verdict:
    return Verdict(GATE.wait(20), "the gate is open")


class Slow(Machine, name="slow"):
    text: str | None = None
    new = State(initial=True)
    over = State(final=True, outcome="failed")
    gate = check(when_open)
    submit = Event(new >> over, sets="text", requires=gate, otherwise=new)


def test_a_check_that_outlives_the_call_leaves_a_pending_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "SUBMIT_WAIT_S", 0.05)
    GATE.clear()
    with Pointsman(f"sqlite:///{tmp_path}/slow.db", [Slow]) as pm:
        call = calling(pm)
        task = call("create_task")
        answer = call("submit", task_id=task["id"], text="x")
        assert (answer["pending"], answer["code"]) == (True, "evidence_pending")
        assert call("get_proposal", proposal_id=answer["proposal"])["status"] == "pending"
        GATE.set()
        assert call("wait_task", task_id=task["id"], states=["over"], timeout_s=20)["state"] == "over"
        assert call("get_proposal", proposal_id=answer["proposal"])["status"] == "accepted"
        assert call("get_proposal", proposal_id=task["id"])["code"] == "unknown_proposal"


def test_a_task_of_a_machine_that_is_not_served_is_still_answered(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/both.db", [Tasks, Articles]) as pm:
        task = create(pm)
    with Pointsman(f"sqlite:///{tmp_path}/both.db", [Articles]) as pm:
        call = calling(pm, holds=True)
        assert call("get_task", task_id=task.id)["tools"] == []
        assert call("propose", task_id=task.id, event="take")["code"] == "machine_unavailable"
        assert [row["id"] for row in call("list_work")["tasks"]] == [task.id]


def test_several_machines_at_one_desk(tmp_path: Path) -> None:
    with Pointsman(f"sqlite:///{tmp_path}/both.db", [Tasks, Articles]) as pm:
        call = calling(pm, holds=True)
        assert call("create_task", title="A")["code"] == "invalid"
        assert call("create_task", machine="articles", title="A")["failed"][0]["path"] == "fields.epoch"
        made = call("create_task", machine="articles", title="A", field_epoch=3)
        assert made["fields"]["epoch"] == 3
        call("claim_task", machine="articles")
        assert call("articles_request_approval", task_id=made["id"], draft=GOOD)["recorded"] is True
        assert call("tasks_request_approval", task_id=made["id"], draft="short")["code"] == "unknown_task"
