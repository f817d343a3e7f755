"""Several processes on one file take turns: each gets at least a third of the commits of two."""

from pathlib import Path

import pytest

from store.notes import child, open_notes

SECONDS = 2.0

PROGRAM = """
import pathlib, sys, threading, time
from store.notes import add, open_notes

folder, name, seconds, threads = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
commits = 0

def probe(point):
    global commits
    commits += point == "commit.after"

db = open_notes(folder, probe=probe)
unit = add(name)
print("ready", flush=True)
sys.stdin.readline()
end = time.monotonic() + seconds
units = [0] * threads

def work(mine):
    while time.monotonic() < end:
        db.run(unit)
        units[mine] += 1

workers = [threading.Thread(target=work, args=(mine,)) for mine in range(threads)]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print(commits, sum(units), flush=True)
db.close()
"""


@pytest.mark.parametrize("threads", [1, 8])
def test_each_of_two_processes_gets_a_third_of_the_commits(tmp_path: Path, threads: int):
    open_notes(tmp_path).close()
    rivals = [child(PROGRAM, tmp_path, name, SECONDS, threads) for name in ("left", "right")]
    for rival in rivals:
        assert rival.stdout.readline() == "ready\n"
    for rival in rivals:
        rival.stdin.write("go\n")
        rival.stdin.flush()
    ends = [rival.communicate(timeout=60) for rival in rivals]
    assert [errors for _, errors in ends] == ["", ""]
    commits, units = zip(*(map(int, printed.split()) for printed, _ in ends), strict=True)
    print(f"\n{threads} threads each, {SECONDS} s: commits {commits[0]} and {commits[1]}, units {units[0]} and {units[1]}")
    assert min(commits) * 3 >= sum(commits)
    db = open_notes(tmp_path)
    assert db.read(lambda tx: len(tx("notes"))) == sum(units)
    db.close()
