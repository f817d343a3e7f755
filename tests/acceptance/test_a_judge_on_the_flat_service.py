"""The flat service with a judge in place of the built-in rule: the same paths and shapes, and nothing judged before there is a draft."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acceptance.flat import GOOD, Client
from acceptance.process import start, stop
from integrations.stand_in_model import KEY, NONSENSE, Reply, Script, StandIn, says, stand_in
from integrations.variant import source

AT_ONCE = {"retry-after-ms": "1"}


@contextmanager
def judged_by(folder: Path, model: str, *script: Script) -> Iterator[tuple[Client, StandIn]]:
    with stand_in(*script) as at:
        url = at.anthropic if model.startswith("anthropic") else at.openai
        work = folder / "judged.py"
        work.write_text(source(url, model))
        served = start(f"sqlite:///{folder}/work.db", str(work))
        try:
            with Client(served.url) as client:
                yield client, at
        finally:
            status, told = stop(served)
        assert status == 0
        assert "Traceback" not in told, told
        assert KEY not in told


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.mark.parametrize("model", ["openai:gpt-5.2", "anthropic:claude-opus-5"])
def test_the_whole_job_with_a_judge(tmp_path: Path, model: str) -> None:
    with judged_by(tmp_path, model, says("fail", "it wanders"), says("pass", "it fits")) as (client, at):
        new = client.done("/enqueue", title="Release notes", brief="Say what changed")
        own = {"task_id": new["id"], "agent_id": "ann"}
        assert (new["passed"], new["evidence"]) == (None, None)
        assert client.done("/claim", **own)["evidence"] is None
        assert client.done("/start-draft", **own)["passed"] is None
        assert at.asked == []

        told = {"ok": False, "reason": "it wanders"}
        answer = client.post("/request-approval", **own, draft="Something else.")
        assert (answer.status, answer.body) == (409, {"detail": f"evidence failed: {told}"})
        again = client.done("/start-draft", **own)
        assert (again["state"], again["passed"], again["evidence"]) == ("drafting", False, told)

        told = {"ok": True, "reason": "it fits"}
        fine = client.done("/request-approval", **own, draft=GOOD)
        assert (fine["state"], fine["passed"], fine["evidence"]) == ("awaiting_approval", True, told)
        assert [row["evidence"] for row in client.rows("/approvals")] == [told]
        client.done("/approve", task_id=new["id"], reviewer="rita")
        assert client.done("/complete", **own)["state"] == "done"
        assert len(at.asked) == 2


def test_without_a_clear_verdict_nothing_passes(tmp_path: Path) -> None:
    silly = Reply(NONSENSE.text, 503, headers=AT_ONCE)
    with judged_by(tmp_path, "openai:gpt-5.2", silly, silly, silly, says("pass", "it fits")) as (client, _):
        task = client.bring("drafting")
        answer = client.post("/request-approval", task_id=task, agent_id="ann", draft=GOOD)
        reason = "check error: the model\\'s service answered 503, some_error, after 3 attempts"
        assert answer.status == 409
        assert answer.detail == f"evidence failed: {{'ok': False, 'reason': \"{reason}\"}}".replace("\\'", "'")
        kept = client.done("/start-draft", task_id=task, agent_id="ann")
        assert (kept["state"], kept["passed"]) == ("drafting", False)
        assert client.done("/request-approval", task_id=task, agent_id="ann", draft=GOOD)["passed"] is True
