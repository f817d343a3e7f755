"""`pointsman init`: a folder with one machine to start from, its settings and its database."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from pointsman.app import opened
from pointsman.cli import options, output
from pointsman.config import FILE, SQLITE, Config, settings
from pointsman.errors import FAILED, invalid

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", show_default=False, help="Folder to write into. Default: the working one."),
]
FILES = {"work.py": "work.py.txt", FILE: "pointsman.toml.txt"}
NEXT = """\
next, in that folder:
  pointsman machine check                                     what the machine declares, and its faults
  pointsman task create --as ann --arg topic="Steam engines"  a first task
  pointsman task list --open                                  the board
  pointsman serve                                             the same over HTTP"""


def init(folder: Folder = Path(), yes: options.Yes = False, json: options.Json = None) -> None:
    """Write work.py with one machine and pointsman.toml into DIR, and create the database they name.

    A file that is there with other content is overwritten only after a yes.
    """
    as_json = settings(json=json).json
    folder = folder.absolute()
    texts = {folder / name: _template(source) for name, source in FILES.items()}
    _ask([path for path, text in texts.items() if path.exists() and path.read_bytes() != text.encode()], yes=yes)
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    config = Config(db=SQLITE + str(folder / "pointsman.db"), work=folder / "work.py")
    opened(config, create=True).close()
    if as_json:
        output.as_json({"files": [str(path) for path in texts], "db": config.db})
        return
    output.line("\n".join([*(f"wrote {path}" for path in texts), f"created {config.db}", "", NEXT]))


def _template(name: str) -> str:
    return resources.files("pointsman.cli").joinpath("templates", name).read_text(encoding="utf-8")


def _ask(changed: list[Path], *, yes: bool) -> None:
    if not changed or yes:
        return
    names = ", ".join(str(path) for path in changed)
    if not output.can_ask():
        raise invalid(("--yes", f"{names} would be overwritten; say --yes to allow it"))
    if not typer.confirm(f"Overwrite {names}?", err=True):
        output.note("nothing was written")
        raise typer.Exit(FAILED)
