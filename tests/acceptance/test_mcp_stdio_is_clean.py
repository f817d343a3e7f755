"""Nothing but protocol reaches standard output, whatever the served machine prints."""

import json
import os
import subprocess
import sys
from pathlib import Path

from acceptance.spoken import PATHS
from pointsman import Pointsman

LOUD = """
import atexit, os, subprocess, sys
from pointsman import Event, Machine, State, Verdict, check, guard

print("loud at import")
atexit.register(print, "loud at exit")

@guard
def calm(task) -> bool:
    print("loud in a guard")
    return True

def loud(text: str | None) -> Verdict:
    print("loud in a check")
    sys.__stdout__.write("louder\\n")
    os.write(1, b"loudest\\n")
    subprocess.run(["echo", "loud in a child"])
    return Verdict(True, "heard")

class Loud(Machine, name="loud"):
    text: str | None = None
    new = State(initial=True)
    over = State(final=True, outcome="failed")
    heard = check(loud)
    shout = Event(new >> over, sets="text", requires=heard, when=calm)
"""


def message(number: int, method: str, **params: object) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def test_a_machine_that_prints_does_not_break_the_wire(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(LOUD)
    Pointsman(f"sqlite:///{tmp_path}/pointsman.db", []).close()
    sent = [
        message(1, "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}),
        json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        message(2, "tools/call", name="create_task", arguments={}),
    ]
    command = [sys.executable, "-m", "pointsman", "mcp", "work.py", "--as", "ann"]
    environment = {**os.environ, "PYTHONPATH": PATHS}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("\n".join(sent) + "\n")
        process.stdin.flush()
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert lines[0]["result"]["protocolVersion"] == "2025-06-18"
        task = lines[1]["result"]["structuredContent"]["id"]
        process.stdin.write(message(3, "tools/call", name="shout", arguments={"task_id": task, "text": "x"}) + "\n")
        process.stdin.flush()
        answered = json.loads(process.stdout.readline())
        process.stdin.close()
        rest, told = process.stdout.read(), process.stderr.read() if process.stderr else ""
    assert answered["result"]["structuredContent"]["state"] == "over"
    assert rest == ""
    assert process.returncode == 0
    for loud in ("loud at import", "loud at exit", "loud in a guard", "loud in a check", "louder", "loudest", "loud in a child"):
        assert loud in told
