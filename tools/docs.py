"""Redraw what the documentation shows of tables and code: `make docs`; `--check` only says what is stale.

A page marks where: everything between `<!-- drawn: NAME -->` and `<!-- /drawn -->` is replaced by what NAME draws.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import drawn

ROOT = Path(__file__).resolve().parents[1]
REGION = re.compile(r"(<!-- drawn: (?P<name>[\w-]+) -->\n).*?(<!-- /drawn -->)", re.DOTALL)
DRAWERS: Mapping[str, Callable[[], str]] = {
    "cases": drawn.cases,
    "codes": drawn.codes,
    "commands": drawn.commands,
    "machine": drawn.machine,
    "modules": drawn.modules,
    "operations": drawn.operations,
    "tools": drawn.tools,
}


def pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def redrawn(text: str) -> str:
    """The page with every region as its table says today."""
    return REGION.sub(lambda region: f"{region[1]}\n{DRAWERS[region['name']]().strip()}\n\n{region[3]}", text)


def stale() -> dict[Path, str]:
    """Pages that differ from what they should say, with what they should say."""
    texts = {page: page.read_text() for page in pages()}
    return {page: new for page, text in texts.items() if (new := redrawn(text)) != text}


def main() -> None:
    parser = argparse.ArgumentParser(description="Redraw the regions of the documentation that are drawn from code.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail when something is stale")
    check = parser.parse_args().check
    found = stale()
    for page, text in found.items():
        print(("stale: " if check else "redrawn: ") + str(page.relative_to(ROOT)))
        if not check:
            page.write_text(text)
    if check and found:
        sys.exit("run: make docs")


if __name__ == "__main__":
    main()
