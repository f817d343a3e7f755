"""Part of P2 and P25: killed at any named point, a process loses nothing it acknowledged, and the file stays sound."""

import signal
from pathlib import Path

import pytest

from pointsman.store.sqlite import CRASH_POINTS, crash_points
from store.notes import child, open_notes, texts

PROGRAM = """
import os, pathlib, signal, sys
from store.notes import open_notes

folder, fatal, passes = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])

def probe(point):
    global passes
    if point == fatal:
        passes -= 1
        if passes == 0:
            os.kill(os.getpid(), signal.SIGKILL)

db = open_notes(folder, probe=probe)

def unit(tx):
    number = tx("add_note", text="a", parent=None)[0]
    tx("count_up", id=number)
    return number

for n in range(40):
    futures = [db.submit(unit) for _ in range(n % 3)]
    print(db.run(unit), *(future.result() for future in futures), flush=True)
db.run(lambda tx: tx("notes"))
"""

POINTS = crash_points(("add_note", "count_up", "notes"))


@pytest.mark.parametrize("point", POINTS)
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path, point: str):
    once = point in ("migration.before", "migration.after", "before:notes", "after:notes")
    running = child(PROGRAM, tmp_path, point, 1 if once else 17)
    printed, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (-signal.SIGKILL, "")
    acknowledged = {int(number) for number in printed.split()}
    db = open_notes(tmp_path)
    assert db.check() == []
    kept = set(range(1, len(db.read(texts)) + 1))
    db.close()
    assert acknowledged <= kept
    assert len(kept) - len(acknowledged) <= 3
    assert acknowledged or once


def test_the_list_of_points_is_the_list_of_points_passed(tmp_path: Path):
    passed: set[str] = set()
    db = open_notes(tmp_path, probe=passed.add)
    db.run(lambda tx: tx("notes"))
    db.close()
    assert passed == {*CRASH_POINTS, "before:notes", "after:notes"}
