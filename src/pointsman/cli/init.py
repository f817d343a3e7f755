"""`pointsman init`: a folder with one machine to start from, its settings, its database, and an agent that knows of it."""

import difflib
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

from pointsman.app import opened
from pointsman.cli import asking, clients, options, output
from pointsman.config import FILE, Config, load, settings
from pointsman.errors import invalid

Folder = Annotated[
    Path,
    options.argument(metavar="DIR", help="Folder to write into. Default: the working one."),
]
Agent = Annotated[
    Literal["claude-code", "codex", "opencode"] | None,
    options.flag("--agent", metavar="CLIENT", help="Also tell claude-code, codex or opencode of this board, in its own file in DIR."),
]
Called = Annotated[str | None, options.flag("--as", metavar="NAME", help="What that agent is called. Default: the client's name.")]
FILES = {"work.py": "work.py.txt", FILE: "pointsman.toml.txt"}
NEXT = """
next, in that folder:
  pointsman machine check                                     what the machine declares, and its faults
  pointsman task create --as ann --arg topic="Steam engines"  a first task
  pointsman task list --open                                  the board
  pointsman serve                                             the same over HTTP and MCP"""


def init(
    folder: Folder = Path(),
    agent: Agent = None,
    name: Called = None,
    yes: options.Yes = False,
    json: options.Json = None,
) -> None:
    """Write work.py with one machine and pointsman.toml into DIR, and create the database they name.

    With --agent also the MCP configuration of that client, shown before it is written; the agent is called by the
    client's name unless --as gives another, and files that are there already are kept. Without --agent a file that is
    there with other content is overwritten only after a yes.
    """
    as_json = settings(json=json).json
    folder = folder.absolute()
    texts = {folder / name: _template(source) for name, source in FILES.items()}
    if agent:
        texts = {path: text for path, text in texts.items() if not (path.exists() or (folder / FILE).exists())}
    asking.before_overwriting([path for path, text in texts.items() if path.exists() and path.read_bytes() != text.encode()], yes=yes)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    config = load({}, {}, folder)
    start = command(config, name or agent) if agent else []
    with opened(config, create=True) as pm:
        db = pm.url
    written = [*texts, *(_tell(agent, folder, start, yes=yes) if agent else ())]
    if as_json:
        output.as_json({"files": [str(path) for path in written], "db": db})
        return
    output.line("\n".join([*(f"wrote {path}" for path in written), f"database {db}"]))
    if texts:
        output.line(NEXT)
    if agent:
        output.line(f"next: {clients.CLIENTS[agent].then}")


def _template(name: str) -> str:
    return resources.files("pointsman.cli").joinpath("templates", name).read_text(encoding="utf-8")


def _tell(agent: str, folder: Path, start: Sequence[str], *, yes: bool) -> list[Path]:
    """Show what is to stand in the client's file, ask, write it. What was written."""
    client = clients.CLIENTS[agent]
    path = folder / client.file
    before = clients.read(path)
    after = client.merge(before, start)
    if after == before:
        return []
    output.note_lines(f"{path}:", _shown(before, after))
    asking.allowed(f"Write this to {path}?", f"{path} would be written", yes=yes)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(after, encoding="utf-8")
    return [path]


def command(config: Config, name: str) -> list[str]:
    """The command that a client starts, whatever its own working directory and search path are. It stands in a file that
    is often shared and in the list of processes, so a URL with a password in it is refused."""
    if config.secret:
        raise invalid(("--agent", f"the URL in {FILE} holds a password, which would be written here: take it out and leave it to libpq"))
    work = [str(config.work)] if config.work else []
    return [sys.executable, "-m", "pointsman", "mcp", *work, "--db", config.db, "--as", name]


def _shown(before: str, after: str) -> list[str]:
    """All of a new file; of one that was there what changes."""
    if not before:
        return after.splitlines()
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), "now", "then", lineterm=""))
