"""Bytes per task and entry, and the orders that peers are given, on the smallest sizes: that every line is there, not what it says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import size
from bench.__main__ import PEERS, beside_others
from bench.peers import __main__ as peers
from bench.peers.driver import LACKS
from databases import PostgresServer

DRIVERS = Path(peers.__file__).parent


def driven(url: str, *order: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, str(DRIVERS / "on_pointsman.py"), url, *order], capture_output=True, text=True, check=False)


def test_every_table_and_index_is_weighed_on_both_stores(tmp_path: Path, postgres: PostgresServer) -> None:
    file, server = f"sqlite:///{tmp_path}/size.db", postgres.create()
    worked = size.work(file, 3)
    assert (worked.tasks, worked.entries) == (3, 3 * size.CALLS)
    assert size.moved(file, postgres.create()) > 0
    for measured in (size.sqlite(tmp_path / "size.db", worked), size.postgres(server, size.work(server, 3))):
        tables = {table for table, _ in measured.packed}
        assert tables >= {"tasks", "entries", "payloads", "requests", "feed"}
        assert sum(measured.pruned.values()) <= sum(measured.packed.values())
        assert f"{measured.store}: 3 tasks, 18 entries" in size.report(measured)


def test_our_own_driver_does_all_that_is_ordered(postgres: PostgresServer) -> None:
    url = postgres.create()
    assert driven(url, "setup").returncode == 0
    for order in (("jobs", "1", "3"), ("jobs", "16", "20"), ("enqueue", "5"), ("steps", "2", "20"), ("steps_on_a_file", "2", "20")):
        done = driven(url, *order)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["rate"] > 0
    assert driven(url, "fly").returncode == LACKS


def test_what_fails_and_what_is_not_there_says_so() -> None:
    run = peers.Run("pointsman", sys.executable, 0.1, 5)
    nowhere: Any = "sqlite:////no/such/folder/x.db"
    failed = run.figure("no-op jobs", 1.0, nowhere, "jobs", 1, 1)
    assert failed.measured.startswith("failed: ")
    assert (run.does(nowhere, "fly"), run.does(nowhere, "jobs")) == (False, True)
    assert run.recovery(nowhere) == "no figure"
    assert peers.Run("no-such-peer", sys.executable, 0.1, 5).version() == ""


@pytest.mark.parametrize("before", ["", "# Benchmarks\n\ntable\n", f"# Benchmarks\n\ntable\n\n{PEERS}\nold\n"])
def test_the_table_takes_its_place_at_the_end_of_the_page(tmp_path: Path, before: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(before)
    peers.write(page, "| new |", "here", quick=False)
    text = page.read_text()
    assert text.startswith(before.partition(PEERS)[0].rstrip())
    assert ("old" in text, text.count(PEERS), text.count("| new |")) == (False, 1, 1)
    assert beside_others(page).strip() == text[text.index(PEERS) :].strip()
    assert beside_others(tmp_path / "none.md") == ""


def test_every_peer_has_a_driver() -> None:
    assert {path.stem for path in DRIVERS.glob("on_*.py")} == {f"on_{name}" for name in (*peers.SYSTEMS, "pointsman", "floor")}
