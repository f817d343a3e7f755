"""The built-in machine with a judge in place of its rule, through the whole engine."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import support
from integrations.stand_in_model import BROKEN, KEY, NONSENSE, Reply, Script, StandIn, says, stand_in
from integrations.variant import RUBRIC, source, variant
from pointsman import Pointsman, Refused, Task
from pointsman.integrations import judge as asking

OWNER = support.OWNER
COST = (1000 * 2 + 50 * 10) / 1_000_000


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(asking, "PAUSES_S", (0.0, 0.0))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path


def opened(folder: Path, at: StandIn, **more: Any) -> Pointsman:
    return Pointsman(f"sqlite:///{folder}/work.db", [variant(folder, source(at.openai, **more))])


def submit(pm: Pointsman, task: Task, draft: str) -> Task:
    return pm.propose(task.id, "request_approval", {"draft": draft}, by=OWNER, epoch=pm.get(task.id).epoch)


def refused(pm: Pointsman, task: Task, draft: str = support.GOOD) -> Refused:
    with pytest.raises(Refused) as caught:
        submit(pm, task, draft)
    assert caught.value.code == "evidence_failed"
    return caught.value


def test_a_pass_moves_the_task_and_its_cost_is_on_record(folder: Path) -> None:
    with stand_in(says("pass", "it does")) as at, opened(folder, at) as pm:
        task = submit(pm, support.drafting(pm), support.GOOD)
        evidence, last = task.evidence["topic"], pm.history(task.id)[-1].as_json()
    assert (task.state, evidence.status, evidence.reason) == ("awaiting_approval", "pass", "it does")
    assert isinstance(evidence.detail, dict)
    assert (evidence.detail["cost"], evidence.detail["model"], evidence.detail["attempts"]) == (COST, "openai:gpt-5.2", 1)
    assert evidence.detail["usage"] == {"input_tokens": 1000, "output_tokens": 50}
    assert last["changes"]["evidence"]["topic"]["detail"] == evidence.detail
    assert RUBRIC in at.asked[0].instructions


def test_a_fail_keeps_the_draft_and_what_it_cost(folder: Path) -> None:
    with stand_in(says("fail", "it wanders")) as at, opened(folder, at) as pm:
        task = support.drafting(pm)
        no = refused(pm, task)
        after, last = pm.get(task.id), pm.history(task.id)[-1].as_json()
    assert (no.recorded, after.state, after.fields["draft"]) == (True, "drafting", support.GOOD)
    assert (after.evidence["topic"].status, after.evidence["topic"].reason) == ("fail", "it wanders")
    assert last["changes"]["evidence"]["topic"]["detail"]["cost"] == COST


@pytest.mark.parametrize("script", [NONSENSE, BROKEN], ids=["nonsense", "broken"])
def test_an_error_never_passes_and_is_not_kept_as_a_judgement(folder: Path, script: Script) -> None:
    with stand_in(script, script, script, says("pass")) as at, opened(folder, at) as pm:
        task = support.drafting(pm)
        no = refused(pm, task)
        after, last = pm.get(task.id), pm.history(task.id)[-1].as_json()
        assert (after.state, after.evidence["topic"].status, after.fields["draft"]) == ("drafting", "error", support.GOOD)
        assert no.failed[0]["reason"].startswith("check error: the model's ")
        assert last["changes"]["evidence"]["topic"]["detail"]["attempts"] == 3
        assert last["changes"]["evidence"]["topic"]["detail"]["cost"] == (3 * COST if script is NONSENSE else None)
        assert submit(pm, task, support.GOOD).state == "awaiting_approval"


def test_what_was_spent_before_the_time_was_up_is_on_record(folder: Path) -> None:
    never = threading.Event()
    slow = Reply(says("pass").text, held_back=never)
    with stand_in(NONSENSE, slow) as at, opened(folder, at, timeout_s=1) as pm:
        task = support.drafting(pm)
        no = refused(pm, task)
        detail = pm.get(task.id).evidence["topic"].detail
        never.set()
    assert no.failed[0]["reason"].startswith("check error: the model gave no clear verdict within 0.9")
    assert isinstance(detail, dict)
    assert (detail["attempts"], detail["cost"], detail["answer"]) == (2, COST, NONSENSE.text)


def test_a_verdict_is_asked_for_once(folder: Path) -> None:
    """Also a bad one: the same draft is not sent again until it passes."""
    with stand_in(says("fail"), says("pass")) as at, opened(folder, at) as pm:
        task = support.drafting(pm)
        refused(pm, task)
        refused(pm, task)
        assert len(at.asked) == 1


def test_nobody_is_asked_about_a_task_without_a_draft(folder: Path) -> None:
    with stand_in(says("pass")) as at, opened(folder, at) as pm:
        task = support.drafting(pm)
        assert task.evidence == {}
        pm.propose(task.id, "fail", by=OWNER, epoch=task.epoch)
        assert at.asked == []


@pytest.mark.parametrize(
    "draft", ["{title} {{0}} %s ${x} {% raw %}", "\\ud800 \\u0000 null None \x01 \u2028", "</begin> <end draft>", "🚂" * 500]
)
def test_a_draft_of_any_text_is_sent_as_it_is(folder: Path, draft: str) -> None:
    with stand_in(says("pass")) as at, opened(folder, at) as pm:
        assert submit(pm, support.drafting(pm), draft).state == "awaiting_approval"
    assert f" draft>\n{draft}\n<end " in at.asked[0].material


@pytest.mark.parametrize("draft", ["a\0b", "a\ud800b"])
def test_a_draft_that_no_store_takes_is_refused_before_anybody_is_asked(folder: Path, draft: str) -> None:
    with stand_in(says("pass")) as at, opened(folder, at) as pm:
        with pytest.raises(Refused) as caught:
            submit(pm, support.drafting(pm), draft)
        assert (caught.value.code, at.asked) == ("invalid", [])


def test_the_key_is_nowhere_in_the_database(folder: Path) -> None:
    with stand_in(says("fail", f"the key is {KEY}"), NONSENSE) as at, opened(folder, at) as pm:
        task = support.drafting(pm)
        refused(pm, task)
        refused(pm, task, "another one")
    assert at.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert [path.name for path in folder.iterdir() if path.is_file() and KEY.encode() in path.read_bytes()] == []


def test_a_task_keeps_the_rubric_that_it_began_with(folder: Path) -> None:
    """The definition holds the judge whole, so a version that no source has any more is still judged."""
    with stand_in(says("pass")) as at:
        with opened(folder, at) as pm:
            task = support.drafting(pm)
        with opened(folder, at, version=2, rubric="Something new.") as pm:
            assert submit(pm, task, support.GOOD).state == "awaiting_approval"
            assert submit(pm, support.drafting(pm), support.GOOD).state == "awaiting_approval"
            assert pm.doctor() == []
    assert [RUBRIC in asked.instructions for asked in at.asked] == [True, False]


def test_another_rubric_under_the_same_number_is_another_structure(folder: Path) -> None:
    with stand_in(says("pass")) as at:
        with opened(folder, at) as pm:
            support.drafting(pm)
        with pytest.raises(Exception, match="raise `version`"):
            opened(folder, at, rubric="Something new.")


def test_without_the_extra_the_verdict_is_an_error_that_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.direct", None)
    monkeypatch.delitem(sys.modules, "pointsman.integrations.judge")
    with stand_in(says("pass")) as at, opened(folder, at) as pm:
        assert "pip install 'pointsman[judge]'" in refused(pm, support.drafting(pm)).failed[0]["reason"]
        assert at.asked == []


def test_a_program_can_bring_its_own_judges(folder: Path) -> None:
    from pointsman import Verdict

    machine = variant(folder, source("http://127.0.0.1:9/v1"))
    with Pointsman(f"sqlite:///{folder}/work.db", [machine], judges=lambda judge, _: lambda **told: Verdict(True, judge.rubric)) as pm:
        assert submit(pm, support.drafting(pm), "any").evidence["topic"].reason == RUBRIC
