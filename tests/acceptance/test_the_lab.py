"""The lab, short: workers are killed in the middle of their effects, and the remote's own ledger is the judge."""

import json
import re
import subprocess
import sys
from pathlib import Path

from acceptance.cli import environment

LAB = Path(__file__).parents[2] / "examples" / "interrupted_refund" / "lab.py"


def test_no_effect_is_doubled_or_missing_and_without_the_ledger_some_are(tmp_path: Path, url: str) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, str(LAB), "--quick", "--seed", "7", "--db", url, "--report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment({}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"(\d+) effects: 0 doubled, 0 missing", done.stdout.splitlines()[-1])
    told = json.loads(report.read_text())
    assert told["faults"] == []
    assert told["ledger"]["effects"] >= 36
    assert told["blind"]["doubled"] > 0
    assert told["guess"]["missing"] > 0
    assert told["cancelled"]["happened"] == ["load the order", "refund", "ticket", "mail"]
    assert told["cancelled"]["not_undoable"] == ["refund", "ticket", "mail"]
