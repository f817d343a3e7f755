from collections.abc import Iterator
from pathlib import Path

import pytest

from pointsman.store.sqlite import Sqlite
from store.notes import open_notes


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Sqlite]:
    opened = open_notes(tmp_path)
    yield opened
    opened.close()
