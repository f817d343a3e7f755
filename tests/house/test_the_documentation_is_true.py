"""What pages name exists: drawn regions are current, make targets, commands, links and files are there."""

import re
from pathlib import Path

import pytest
import typer

from house.source import ROOT
from pointsman.cli.root import app
from tools import docs

PAGES = docs.pages()
MAKE = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)
COMMAND = re.compile(r"(?:^|`|\$ )pointsman ([a-z]+(?: [a-z]+)?)", re.MULTILINE)
FILE = re.compile(r"`((?:tests|docs|tools|bench|src)/[\w./-]+)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def test_what_is_drawn_is_current() -> None:
    assert [str(page.relative_to(ROOT)) for page in docs.stale()] == [], "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    text = page.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(MAKE.findall(text)) <= targets
    assert [name for name in COMMAND.findall(text) if not known(name)] == []
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def known(name: str) -> bool:
    """Whether the first word is a command, and the second one of its own when it has any."""
    first, _, second = name.partition(" ")
    command = getattr(typer.main.get_command(app), "commands", {}).get(first)
    below = getattr(command, "commands", None)
    return command is not None and (below is None or not second or second in below)
