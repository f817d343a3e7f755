"""A plant whose text is gone would be told by `make plant` alone, which is seldom run."""

from pathlib import Path

import pytest

from tools.plants import PLANTS, Plant

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {path: path.read_text() for path in (ROOT / "src").rglob("*") if path.suffix in (".py", ".sql")}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_what_a_plant_changes_stands_once(plant: Plant) -> None:
    for before, after in plant.changes:
        assert [text.count(before) for text in SOURCES.values() if before in text] == [1], before
        assert after != before
    assert [test for test in plant.tests if not (ROOT / test.partition("::")[0]).exists()] == []
