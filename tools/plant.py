"""Plant known bugs one by one and show that the tests catch each: `make plant`.

Each plant changes exact text in a copy of the tree and names the tests that must turn red. A plant whose text is gone,
that breaks the program outright, or whose tests are red without it, is a fault of this list and fails too.
`--only WORD` runs the plants with WORD in their name.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.plants import PLANTS, Plant

ROOT = Path(__file__).resolve().parents[1]
RUNS = """
import sys
from pointsman import Pointsman
with Pointsman("sqlite:///" + sys.argv[1]) as pm:
    task = pm.create("tasks", {"title": "Release notes", "brief": "Say what changed"}, by="ann")
    assert pm.claim("tasks", by="worker", id=task.id).owner == "worker"
"""
COPIED = ("src", "tests", "tools", "docs", "bench", "pyproject.toml", "README.md")
LIMIT_S = 600
PASSED, RED = 0, 1


@dataclass(frozen=True, slots=True)
class Outcome:
    plant: str
    caught: bool
    told: str


def main() -> None:
    parser = argparse.ArgumentParser(description="Plant known bugs and show that the tests catch each.")
    parser.add_argument("--only", default="", metavar="WORD", help="the plants with this word in their name")
    word = parser.parse_args().only
    plants = [plant for plant in PLANTS if word in plant.name]
    if not plants:
        sys.exit(f"no plant has {word!r} in its name")
    sound = untouched(sorted({test for plant in plants for test in plant.tests}))
    if sound:
        sys.exit(f"the tests are red before anything is planted:\n{sound}")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(planted, plants))
    width = max(len(outcome.plant) for outcome in outcomes)
    for outcome in outcomes:
        print(f"{'caught' if outcome.caught else 'MISSED'}  {outcome.plant.ljust(width)}  {outcome.told}")
    missed = sum(not outcome.caught for outcome in outcomes)
    print(f"{len(outcomes) - missed} of {len(outcomes)} planted bugs caught")
    sys.exit(missed > 0)


def untouched(tests: Sequence[str]) -> str:
    """Empty when the named tests pass on the tree as it is; else what pytest said."""
    with tempfile.TemporaryDirectory() as name:
        done = pytest(copied(Path(name)), tests)
    return "" if done.returncode == PASSED else done.stdout[-4000:]


def planted(plant: Plant) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        tree = copied(Path(name))
        if fault := changed(tree, plant):
            return Outcome(plant.name, False, fault)
        if fault := broken(tree):
            return Outcome(plant.name, False, f"the plant breaks the program outright: {fault}")
        try:
            done = pytest(tree, plant.tests)
        except subprocess.TimeoutExpired:
            return Outcome(plant.name, False, f"its tests did not end within {LIMIT_S} s: they are to fail, not to wait")
    return Outcome(plant.name, done.returncode == RED, first_red(done))


def copied(folder: Path) -> Path:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    return folder


def changed(tree: Path, plant: Plant) -> str:
    """Make the plant's changes; what is wrong with the plant when its text is not there exactly once."""
    files = [path for path in (tree / "src").rglob("*") if path.suffix in (".py", ".sql")]
    for before, after in plant.changes:
        counts = {path: count for path in files if (count := path.read_text().count(before))}
        if list(counts.values()) != [1]:
            return f"the text to change stands {sum(counts.values())} times: {before.strip()[:60]}"
        (path,) = counts
        path.write_text(path.read_text().replace(before, after))
    return ""


def broken(tree: Path) -> str:
    """Why a task can no longer even be created and claimed: such a plant would be caught by anything."""
    command = [sys.executable, "-c", RUNS, str(tree / "broken.db")]
    done = subprocess.run(command, env=source(tree), cwd=tree, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return "" if done.returncode == 0 else done.stderr.splitlines()[-1]


def source(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def pytest(tree: Path, tests: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=tree, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )


def first_red(done: "subprocess.CompletedProcess[str]") -> str:
    """The test that turned red, or how pytest ended when none did."""
    lines = done.stdout.splitlines()
    red = [line.split(" - ")[0].removeprefix("FAILED ") for line in lines if line.startswith("FAILED ")]
    return red[0] if red else f"pytest ended with {done.returncode}: {lines[-1] if lines else done.stderr[-200:]}"


if __name__ == "__main__":
    main()
