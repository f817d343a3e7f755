"""Part of P2: what was acknowledged survives a power cut. The same trial at synchronous=NORMAL loses, so it can see a loss."""

import random
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from faults.disk import Disk, faulty
from pointsman.errors import StoreError
from pointsman.store import sqlite_file
from pointsman.store.sqlite import Sqlite
from store.notes import open_notes

CUTS = 20


def work_until_the_lights_go_out(db: Sqlite, disk: Disk, chance: random.Random) -> int:
    """How many notes were acknowledged, always one by one."""
    acknowledged = 0
    disk.settle()
    disk.writes_left = chance.randint(1, 400)
    try:
        while True:
            acknowledged = db.run(lambda tx: tx("add_note", text="x" * chance.randint(1, 3000), parent=None)[0])
    except StoreError:
        return acknowledged


def lost(folder: Path, seed: int) -> int:
    """How many acknowledged notes a cut took, of a database that often moves its log into the file."""
    chance = random.Random(seed)
    before, after = folder / "before", folder / "after"
    before.mkdir(parents=True)
    after.mkdir()
    with faulty(before) as disk:
        db = open_notes(before)
        db.run(lambda tx: tx._connection.pragma("wal_autocheckpoint", 20))
        acknowledged = work_until_the_lights_go_out(db, disk, chance)
        with suppress(apsw.IOError):
            db.close()
        disk.after_the_cut(after, chance)
    again = open_notes(after)
    assert again.check() == []
    kept = len(again.read(lambda tx: tx("notes")))
    again.close()
    return acknowledged - kept


def test_full_sync_loses_nothing_and_normal_sync_is_seen_to_lose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    full = [lost(tmp_path / f"full-{seed}", seed) for seed in range(CUTS)]
    monkeypatch.setitem(sqlite_file.DURABLE, "synchronous", 1)
    normal = [lost(tmp_path / f"normal-{seed}", seed) for seed in range(CUTS)]
    print(f"\npower cuts: FULL lost in {sum(n > 0 for n in full)} of {CUTS}, NORMAL in {sum(n > 0 for n in normal)} of {CUTS}")
    assert max(full) <= 0
    assert max(normal) > 0
