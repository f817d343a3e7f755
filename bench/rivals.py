"""Two processes on one SQLite file: what each gets of the commits while both ask all the time."""

import subprocess
import sys
import uuid
from pathlib import Path
from typing import IO

from bench import closure
from bench.python_api import again, drafting
from bench.table import Effort, Line
from pointsman import Pointsman

THREADS = 4


def figures(folder: Path, effort: Effort) -> list[Line]:
    counts = shares(folder, effort.rivals_s)
    total = sum(counts)
    return [
        Line(
            f"two processes on one file for {effort.rivals_s:g} s, {THREADS} callers each",
            f"{total / effort.rivals_s:,.0f}/s",
            " and ".join(f"{count:,}" for count in counts),
            f"{min(counts) / max(total, 1):.2f}",
            "smaller share ≥ 0.33",
        )
    ]


def shares(folder: Path, seconds: float) -> list[int]:
    """Start both, tell both to go once both stand ready, and read what each got done."""
    url = f"sqlite:///{folder}/rivals-{uuid.uuid4()}.db"
    command = [sys.executable, "-m", "bench.rivals", url, str(seconds)]
    rivals = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    lines = [_pipes(rival) for rival in rivals]
    for _, told in lines:
        if told.readline() != "ready\n":
            raise RuntimeError("a rival did not start")
    for tell, _ in lines:
        tell.write("go\n")
        tell.flush()
    return [int(rival.communicate()[0]) for rival in rivals]


def _pipes(rival: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    assert rival.stdin is not None
    assert rival.stdout is not None
    return rival.stdin, rival.stdout


def main(url: str, seconds: float) -> None:
    with Pointsman(url) as pm:
        calls = [again(pm, drafting(pm)) for _ in range(THREADS)]
        print("ready", flush=True)
        sys.stdin.readline()
        print(round(closure.rate(calls, seconds) * seconds))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
