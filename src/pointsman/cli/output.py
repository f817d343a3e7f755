"""What is printed: tables and colour on a terminal, plain text elsewhere, JSON when asked for.

Task text comes from strangers: control characters and marks that reorder a line are shown as escapes, and nothing is
read as markup.
"""

import json
import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from pointsman.errors import DefinitionError, Fault, Refusal

# C0 and C1 controls, line and paragraph separators, and the marks that hide or reorder what a person reads.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
FAILURE = "failed"
Row = Sequence[object]


def is_terminal(stream: TextIO | None = None) -> bool:
    return (stream or sys.stdout).isatty()


def can_ask() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def visible(value: object) -> str:
    """A value on one line, with what cannot be seen spelled out. None is an empty cell."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _UNSEEN.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


def counted(number: int, noun: str, nouns: str = "") -> str:
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def as_json(data: Any, stream: TextIO | None = None, indent: int | None = 2) -> None:
    out = stream or sys.stdout
    plain_ascii = (out.encoding or "").lower().replace("-", "") != "utf8"
    print(json.dumps(data, indent=indent, ensure_ascii=plain_ascii), file=out)


def line(text: str = "") -> None:
    print(text)


def table(columns: Sequence[str], rows: Sequence[Row], title: str = "") -> None:
    """A drawn table on a terminal; elsewhere a heading and one line a row, cells parted by tabs."""
    cells = [[visible(cell) for cell in row] for row in rows]
    if is_terminal():
        _drawn(columns, cells, title)
        return
    for row in (columns, *cells):
        print("\t".join(row))


def _drawn(columns: Sequence[str], cells: Sequence[Sequence[str]], title: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(title=title or None, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold", pad_edge=False, padding=(0, 0, 0, 1))
    for column in columns:
        drawn.add_column(column, overflow="fold", no_wrap=column in _WHOLE)
    for row in cells:
        drawn.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    Console().print(drawn)


def styled(*parts: tuple[str, str]) -> None:
    """One line of (text, style) parts; styles count on a terminal only."""
    cells = [(visible(text), style) for text, style in parts]
    if not is_terminal():
        print("".join(text for text, _ in cells))
        return
    from rich.console import Console
    from rich.text import Text

    Console(highlight=False).print(Text.assemble(*cells), soft_wrap=True)


# Columns that a reader copies from: never broken over two lines.
_WHOLE = frozenset({"id", "task", "at", "v", "version", "event", "state", "by", "owner", "door", "check", "status"})
STYLES = {"pass": "green", "fail": "red", "error": "red", "done": "green", "failed": "red", "approved": "green", "reject": "yellow"}


def pairs(rows: Sequence[tuple[str, object]]) -> None:
    """Names and values, one a line, the names in a column of their own. Text of several lines keeps them."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        first, *rest = _lines(value)
        print(f"{name:<{width}}  {first}")
        for more in rest:
            print(f"{'':<{width}}  {more}")


def _lines(value: object) -> list[str]:
    text = value if isinstance(value, str) else visible(value)
    return [visible(part) for part in text.splitlines()] or [""]


def findings(found: Sequence[str], otherwise: str) -> None:
    """What was found, one a line; `otherwise` when nothing was."""
    for finding in found or (otherwise,):
        print(visible(finding))


def refusal(refusal: Refusal, *, json_line: bool) -> None:
    """One line on stderr: the code, why, and what can be done now."""
    if json_line:
        as_json(refusal.as_json(), sys.stderr, indent=None)
    else:
        _error(refusal.code, said(refusal))


def said(refusal: Refusal) -> str:
    """A refusal in one line of words."""
    known = (
        "recorded" if refusal.recorded else None,
        f"state {refusal.state}, version {refusal.version}" if refusal.state else None,
        _named("open to you now", refusal.allowed),
        _named("unblock", refusal.unblock),
        _followed(refusal),
    )
    rest = "; ".join(part for part in known if part)
    return f"{refusal.detail} ({rest})" if rest else refusal.detail


def _named(name: str, items: Sequence[str]) -> str | None:
    return f"{name}: {', '.join(items)}" if items else None


def _followed(refusal: Refusal) -> str | None:
    """How to hear of a proposal that goes on without its caller."""
    proposal = refusal.extra.get("proposal")
    return f"follow it with: pointsman task wait --proposal {proposal}" if proposal else None


def failure(message: str, *, json_line: bool) -> None:
    """Something that is no refusal went wrong: a file, a port."""
    if json_line:
        as_json({"code": FAILURE, "detail": message}, sys.stderr, indent=None)
    else:
        _error(FAILURE, message)


def faulty(exc: DefinitionError, *, json_line: bool) -> None:
    """A machine that cannot be served, with every fault on a line of its own."""
    if json_line:
        data = {"code": FAILURE, "detail": f"machine {exc.machine} has faults", "faults": [fault_json(fault) for fault in exc.faults]}
        as_json(data, sys.stderr, indent=None)
        return
    _error(FAILURE, f"machine {exc.machine} cannot be served")
    for fault in exc.faults:
        print(f"  {visible(str(fault))}", file=sys.stderr)


def fault_json(fault: Fault) -> dict[str, Any]:
    return {"code": fault.code, "message": fault.message, "place": fault.place, "line": fault.line}


def _error(code: str, message: str) -> None:
    print(f"{code}: {visible(message)}", file=sys.stderr)


def progress(text: str) -> None:
    """How far it has come: one line on a terminal that is written over, and nothing elsewhere. Empty text clears it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{visible(text)}", end="", file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Something a person should know, beside the data."""
    print(visible(message), file=sys.stderr)


def note_lines(title: str, lines: Sequence[str]) -> None:
    """Text of several lines that a person should see before going on."""
    for text in (title, *(f"  {item}" for item in lines)):
        note(text)
