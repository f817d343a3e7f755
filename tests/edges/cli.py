"""The command line, run in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pointsman.cli.root import run


@dataclass
class Ended:
    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        assert self.status == 0, self
        return json.loads(self.out)

    @property
    def refusal(self) -> Any:
        """The one line on stderr, of a command run with --json."""
        assert self.err.count("\n") == 1, self
        return json.loads(self.err)


Cli = Callable[..., Ended]
SETTINGS = ("DB", "WORK", "AS", "HOST", "PORT", "JSON", "RELEASE_PER_S")


def ended(capsys: Any, *argv: str) -> Ended:
    return Ended(run(argv), *capsys.readouterr())
