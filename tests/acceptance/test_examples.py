"""The examples run, on both stores, smaller than they are."""

import re
import subprocess
import sys
from pathlib import Path

from acceptance.cli import environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(name: str, *options: str) -> str:
    command = [sys.executable, str(EXAMPLES / name), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_agent_loop_that_is_killed_runs_one_step_again(url: str) -> None:
    told = ran("agent_loop.py", "--steps", "130", "--die-at", "115", "--db", url).splitlines()
    assert told[0] == "a worker ended with -9, in step 115"
    assert told[2].endswith("131 runs of 130 steps")
    assert told[3] == "run again: 115; history is whole"


def test_a_batch_is_enriched_to_its_end(url: str) -> None:
    told = ran("enrichment.py", "--tasks", "1200", "--workers", "3", "--db", url)
    assert re.search(r"^1200 enriched in [\d.]+ s, [\d,]+ a second; 0 left$", told, re.MULTILINE)
