"""What every command that asks for a change shares: who acts, on which machine, and what is told when it is done."""

import math

from pointsman.cli import output, views
from pointsman.config import Config
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.views import task_json
from pointsman.errors import invalid
from pointsman.kernel.task import Task

LONGEST_GRACE_S = 86_400.0


def named(config: Config) -> str:
    if config.name is None:
        raise invalid(("--as", 'say who acts: --as NAME, POINTSMAN_AS, or as = "NAME" in pointsman.toml'))
    return config.name


def served(pm: Pointsman, machine: str | None) -> str:
    """The machine that was named; without a name the only one that is served."""
    if machine is None and len(pm.machines) != 1:
        raise invalid(("--machine", f"several machines are served; name one of {', '.join(sorted(pm.machines))}"))
    return machine or next(iter(pm.machines))


def span(flag: str, value: float, longest: float = math.inf) -> float:
    """Seconds in a range; what is no number is in none."""
    if not 0 <= value <= longest:
        raise invalid((flag, f"must be from 0 to {longest:g} seconds"))
    return value


def told(pm: Pointsman, config: Config, did: str, task: Task) -> None:
    if config.json:
        output.as_json(task_json(task))
    else:
        output.line(f"{did}: {views.summary(task)}")
