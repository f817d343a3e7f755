"""The real Codex CLI and opencode do the whole job with the listings of docs/mcp.md; a person approves over HTTP."""

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from acceptance.process import serving
from agents.installed import environment, listing, program
from agents.model import Call, Model, running
from pointsman import Pointsman
from support import BAD, BRIEF, GOOD

pytestmark = pytest.mark.agents
LIMIT_S = 180
PROMPT = "Do the next task of the pointsman server."


class Worker:
    """What a willing model does. It is told nothing but what tools answer."""

    def __init__(self, url: str, *, holds: bool):
        self.url = url
        self.holds = holds
        self.person = threading.Thread(target=self.approve)

    def __call__(self, results: Sequence[dict[str, Any]]) -> Call | str:
        if not results:
            return Call("claim_task", {})
        task = results[0]
        mine = {"task_id": task["id"], **({} if self.holds else {"epoch": task["epoch"]})}
        match results[-1]:
            case {"code": "evidence_failed", "recorded": True}:
                return Call("request_approval", {**mine, "draft": GOOD})
            case {"state": "claimed"}:
                return Call("start_draft", mine)
            case {"state": "drafting"}:
                return Call("request_approval", {**mine, "draft": BAD})
            case {"state": "awaiting_approval"}:
                self.person.start()
                return Call("wait_task", {"task_id": task["id"], "states": ["approved"], "timeout_s": 20})
            case {"state": "approved"}:
                return Call("complete_task", mine)
            case last:
                return f"The task is {last['state']}."

    def approve(self) -> None:
        """A person reads what waits and approves exactly that."""
        (row,) = httpx.get(f"{self.url}/approvals").json()["rows"]
        assert row["draft"] == GOOD
        httpx.post(f"{self.url}/approve", json={"task_id": row["id"], "reviewer": "rita", "note": "good"}).raise_for_status()


Run = Callable[[Model, str, Path, Mapping[str, str]], "subprocess.CompletedProcess[str]"]


def codex(model: Model, config: str, home: Path, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    provider = f"""
model = "scripted"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{model.url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""
    (home / "config.toml").write_text(provider + config)
    command = [program("codex"), "exec", "--skip-git-repo-check", "--json", PROMPT]
    return ran(command, home, {**env, "CODEX_HOME": str(home), "SCRIPTED_KEY": "none"})


def opencode(model: Model, config: str, home: Path, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": model.url, "apiKey": "none"},
        "models": {"scripted": {"name": "scripted"}},
    }
    settings = {
        "provider": {"scripted": provider},
        "enabled_providers": ["scripted"],
        "model": "scripted/scripted",
        "permission": {"*": "allow"},
    }
    place = home / ".config" / "opencode"
    place.mkdir(parents=True)
    (place / "opencode.json").write_text(json.dumps({**settings, **json.loads(config)}))
    quiet = {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}
    return ran([program("opencode"), "run", "--format", "json", PROMPT], home, {**env, **quiet})


def ran(command: list[str], home: Path, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=home, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


AGENTS = {"codex": codex, "opencode": opencode}


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("agent", AGENTS)
def test_the_whole_job(agent: str, transport: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with serving(tmp_path) as served, Pointsman(served.db, create=False) as pm:
        task = pm.create("tasks", {"title": "Release notes", "brief": BRIEF}, by="ann")
        worker = Worker(served.url, holds=transport == "stdio")
        with running(worker) as model:
            config = listing(f"{agent}-{transport}", served)
            done = AGENTS[agent](model, config, home, environment(home, served))
        assert done.returncode == 0, told(model, done)
        assert model.faults == [], told(model, done)
        worker.person.join(LIMIT_S)
        entries = pm.history(task.id)
    assert [(entry.event, entry.by, entry.door) for entry in entries] == [
        ("create", "ann", "python"),
        ("claim", "worker-a", "mcp"),
        ("start_draft", "worker-a", "mcp"),
        ("request_approval", "worker-a", "mcp"),
        ("request_approval", "worker-a", "mcp"),
        ("approve", "rita", "flat"),
        ("complete", "worker-a", "mcp"),
    ], told(model, done)
    assert "The task is done." in done.stdout


def told(model: Model, done: "subprocess.CompletedProcess[str]") -> str:
    heard = [result[:300] for result in model.heard]
    return (
        f"{model.faults}\nheard {heard}\noffered {[tool['name'] for tool in model.offered]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
