"""P9 over HTTP: a server that is killed between commit and reply has made its change once, and a retry with the same
`Idempotency-Key` gets the answer that was lost, from whichever server it asks."""

import http.client
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from acceptance.flat import GOOD
from acceptance.process import PATIENCE_S, running
from acceptance.v1 import FIELDS, Speaker
from pointsman import Pointsman

CRASHING = """
import os, pathlib, signal, sys
from pointsman import Pointsman
from pointsman.http.serve import serve
url, flag = sys.argv[1], pathlib.Path(sys.argv[2])
def probe(point):
    if point == "commit.after" and flag.exists():
        os.kill(os.getpid(), signal.SIGKILL)
with Pointsman(url, probe=probe) as pm:
    serve(pm, port=0, ready=lambda where: print(where["url"], flush=True))
"""

ASKED: list[tuple[str, str, Any, int]] = [
    ("queued", "", {"fields": FIELDS}, 201),
    ("queued", "claim", {}, 200),
    ("drafting", "request_approval", {"epoch": 1, "args": {"draft": GOOD}}, 200),
    ("drafting", "request_approval", {"epoch": 1, "args": {"draft": "short"}}, 409),
]


@pytest.mark.parametrize(("state", "event", "body", "status"), ASKED)
def test_the_lost_answer_is_given_again(tmp_path: Path, state: str, event: str, body: Any, status: int) -> None:
    url, flag = f"sqlite:///{tmp_path}/work.db", tmp_path / "flag"
    command = [sys.executable, "-c", CRASHING, url, str(flag)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        with Speaker(process.stdout.readline().strip()) as speaker:
            task = speaker.lead(state)
            path = f"/v1/tasks/{task['id']}/events/{event}" if event else "/v1/tasks"
            flag.touch()
            with pytest.raises((http.client.HTTPException, OSError)):
                speaker.ask("POST", path, "bob", body, Idempotency_Key="once")
        assert process.wait(PATIENCE_S) == -signal.SIGKILL
    with Pointsman(url) as pm:
        before = len(pm.history())
    with running(url) as served, Speaker(served.url) as speaker:
        told = [speaker.ask("POST", path, "bob", body, Idempotency_Key="once") for _ in range(2)]
        other = speaker.ask("POST", path, "bob", body | {"nonsense": 1}, Idempotency_Key="once")
    assert [(answer.status, answer.headers["idempotent-replayed"]) for answer in told] == [(status, "true")] * 2
    assert told[0].body == told[1].body
    assert other.status == 422
    if status != 409:
        assert told[0].headers["etag"] == f'"{told[0].body["version"]}"'
    with Pointsman(url) as pm:
        assert len(pm.history()) == before, "nothing was done again"
        assert pm.get(told[0].body["task" if status == 409 else "id"]).version == told[0].body["version"]
        assert pm.verify().ok
