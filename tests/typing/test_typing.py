"""Pyright, strict, on machines as their authors write them."""

import json
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

HERE = Path(__file__).parent


@lru_cache
def errors() -> dict[str, set[int]]:
    """The lines with errors of each file here, in one run."""
    files = sorted(path.name for path in HERE.glob("*_machine.py"))
    settings = HERE / "pyrightconfig.json"
    assert settings.exists()
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(settings), "--pythonpath", sys.executable, "--outputjson"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = json.loads(run.stdout)
    assert told["summary"]["filesAnalyzed"] == len(files)
    found: dict[str, set[int]] = {name: set() for name in files}
    for item in told["generalDiagnostics"]:
        found[Path(item["file"]).name].add(item["range"]["start"]["line"] + 1)
    return found


def test_a_machine_is_clean_for_its_author() -> None:
    assert errors()["good_machine.py"] == set()


def test_misspelt_machines_are_told_on_their_lines() -> None:
    lines = (HERE / "bad_machine.py").read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}
    assert errors()["bad_machine.py"] == marked
