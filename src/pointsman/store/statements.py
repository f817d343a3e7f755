"""Named statements, read from *.sql files: all SQL of Pointsman has a name and a shape.

    -- name: advance_task :one?
    -- Moves a task on, unless its version or epoch is no longer the expected one.
    UPDATE tasks SET state = :state, version = version + 1 WHERE id = :id AND version = :expected RETURNING version;

Shapes: `:none` answers nothing, `:one` one row, `:one?` a row or None, `:many` a list of rows. `:sure` answers nothing and
writes one row; where that row is not there any more, nothing of the unit is done. A statement that the
two databases must spell apart is written twice, as `NAME@sqlite` and `NAME@postgres`.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

SHAPES = frozenset({":none", ":sure", ":one", ":one?", ":many"})
DIALECTS = ("sqlite", "postgres")

_HEADER = re.compile(r"--\s*name:(.*)")
_TITLE = re.compile(r"(?P<name>[a-z]\w*)(?:@(?P<dialect>\w+))?\s+(?P<shape>\S+)")
TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/) | '(?:[^']|'')*' | "(?:[^"]|"")*" | (?<!:):(?P<parameter>[A-Za-z_]\w*) | (?P<end>;) | \S""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement. `parameters` are in the order of their first use."""

    name: str
    shape: str
    sql: str
    parameters: tuple[str, ...]
    doc: str


@dataclass(frozen=True, slots=True)
class _Written:
    """A statement as it stands in its file: `dialect` is None when both databases share the text."""

    statement: Statement
    dialect: str | None
    place: str


def load(directory: Path | Traversable, dialect: str = "sqlite") -> Mapping[str, Statement]:
    """Every statement of `directory` as `dialect` spells it, by name. All faults come at once, in one ValueError."""
    faults: list[str] = []
    written = [item for file in _files(directory) for item in _read(file, faults)]
    faults += _clashes(written)
    if faults:
        raise ValueError("statements cannot be used:\n" + "\n".join(f"  {fault}" for fault in faults))
    return {item.statement.name: item.statement for item in written if item.dialect in (None, dialect)}


def names(directory: Path | Traversable) -> tuple[str, ...]:
    """The name of every statement in `directory`, in the order of the files and their lines."""
    return tuple(load(directory))


def _files(directory: Path | Traversable) -> list[Path | Traversable]:
    return sorted((file for file in directory.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)


def _read(file: Path | Traversable, faults: list[str]) -> Iterator[_Written]:
    """The statements of one file; what cannot be read goes to `faults`."""
    for place, title, body in _sections(file):
        try:
            yield _parse(place, title, body)
        except ValueError as fault:
            faults.append(f"{place}: {fault}")


def _sections(file: Path | Traversable) -> Iterator[tuple[str, str, list[str]]]:
    """(place, title, lines) per header. Lines before the first header come under an empty title if they hold SQL."""
    place, title, body = f"{file.name}:1", "", list[str]()
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        header = _HEADER.fullmatch(line.strip())
        if header is None:
            body.append(line)
            continue
        if title or _counts(body):
            yield place, title, body
        place, title, body = f"{file.name}:{number}", header[1].strip(), []
    if title or _counts(body):
        yield place, title, body


def _counts(body: list[str]) -> bool:
    return any(line.strip() and not line.lstrip().startswith("--") for line in body)


def _parse(place: str, title: str, body: list[str]) -> _Written:
    head = _TITLE.fullmatch(title)
    if head is None:
        raise ValueError(f"{title!r} is no header: write '-- name: NAME SHAPE'" if title else "SQL stands before the first header")
    if head["shape"] not in SHAPES:
        raise ValueError(f"{head['name']} has the unknown shape {head['shape']}: one of {' '.join(sorted(SHAPES))}")
    if head["dialect"] not in (None, *DIALECTS):
        raise ValueError(f"{head['name']} is for the unknown database {head['dialect']}: one of {' '.join(DIALECTS)}")
    doc, text = _split(body)
    sql, parameters = _single(head["name"], text)
    return _Written(Statement(head["name"], head["shape"], sql, parameters, doc), head["dialect"], place)


def _split(body: list[str]) -> tuple[str, str]:
    """The comment lines right under the header, and the rest."""
    first = next((n for n, line in enumerate(body) if not line.startswith("--")), len(body))
    return " ".join(line.removeprefix("--").strip() for line in body[:first]), "\n".join(body[first:])


def _single(name: str, text: str) -> tuple[str, tuple[str, ...]]:
    """The statement without its semicolon, and its parameters; a ValueError unless there is exactly one statement."""
    tokens = [token for token in TOKEN.finditer(text) if not token["comment"]]
    if not tokens or tokens[0]["end"]:
        raise ValueError(f"{name} holds no statement")
    end = next((token.start() for token in tokens if token["end"]), len(text))
    if tokens[-1].start() > end:
        raise ValueError(f"{name} holds several statements")
    return text[:end].strip(), tuple(dict.fromkeys(token["parameter"] for token in tokens if token["parameter"]))


def _clashes(written: list[_Written]) -> Iterator[str]:
    """A name may be written once for both databases, or once for each, with the same shape and parameters."""
    for name in dict.fromkeys(item.statement.name for item in written):
        same = [item for item in written if item.statement.name == name]
        where = ", ".join(item.place for item in same)
        if sorted(item.dialect or "" for item in same) not in ([""], sorted(DIALECTS)):
            yield f"{where}: {name} is to be written once, or once each as {' and '.join(f'{name}@{each}' for each in DIALECTS)}"
        elif len({(item.statement.shape, frozenset(item.statement.parameters)) for item in same}) > 1:
            yield f"{where}: the two spellings of {name} differ in shape or parameters"
