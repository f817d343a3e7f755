"""Questions, asked on a terminal only; elsewhere --yes has to have answered them."""

from collections.abc import Sequence
from pathlib import Path

import typer

from pointsman.cli import output
from pointsman.errors import FAILED, invalid


def before_overwriting(paths: Sequence[Path], *, yes: bool) -> None:
    """Go on only when what stands at `paths`, if anything, may go."""
    names = ", ".join(str(path) for path in paths)
    if paths:
        allowed(f"Overwrite {names}?", f"{names} would be overwritten", yes=yes)


def allowed(question: str, otherwise: str, *, yes: bool) -> None:
    """Go on after a yes; a no ends the command. `otherwise` says what was not done because nobody could be asked."""
    if yes:
        return
    if not output.can_ask():
        raise invalid(("--yes", f"{otherwise}; say --yes to allow it"))
    if not typer.confirm(question, err=True):
        output.note("nothing was written")
        raise typer.Exit(FAILED)
