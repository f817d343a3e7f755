"""`pointsman demo`: the main job, really run on a temporary database and told step by step."""

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from pointsman.cli import options, output, views
from pointsman.cli.story import Step, story
from pointsman.config import SQLITE, settings
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.queries import Entry
from pointsman.errors import FAILED, Refusal
from pointsman.kernel.task import Task

INTRO = """\
Pointsman decides what may happen to a piece of work. Agents and people only propose;
a declared state machine accepts or refuses, in one atomic step, and writes down why.
This is the built-in machine `tasks`, run now on a temporary database."""
OUTRO = "Start your own: pointsman init. Serve this one over HTTP: pointsman serve."
Part = tuple[str, str]


def demo(json: options.Json = None) -> None:
    """Run the main job end to end on a temporary SQLite file and tell it step by step.

    A race with one winner, a refusal with its reasons, a rejected draft, nobody approving their own work, an approval
    of exact content, done, and the history of it all, verified. Nothing is left behind.
    """
    as_json = settings(json=json).json
    with tempfile.TemporaryDirectory(prefix="pointsman-demo-") as folder, Pointsman(SQLITE + str(Path(folder) / "demo.db")) as pm:
        intact = _data(pm) if as_json else _told(pm)
    if not intact:
        raise typer.Exit(FAILED)


def _data(pm: Pointsman) -> bool:
    steps = [step.as_json() for step in story(pm)]
    report = pm.verify()
    verified = {"ok": report.ok, "tasks": report.tasks, "entries": report.entries}
    history: list[dict[str, Any]] = [entry.as_json() for entry in _entries(pm)]
    output.as_json({"steps": steps, "history": history, "verify": verified})
    return report.ok


def _told(pm: Pointsman) -> bool:
    output.line(INTRO)
    for number, step in enumerate(story(pm), start=1):
        output.line()
        _tell(number, step)
    output.line()
    views.history(_entries(pm), whole_board=False, title="What is on record")
    report = pm.verify()
    output.line()
    output.styled(("verified" if report.ok else "NOT INTACT", "bold green" if report.ok else "bold red"), *_sum(report.entries))
    output.line(OUTRO)
    return report.ok


def _entries(pm: Pointsman) -> list[Entry]:
    return pm.history(pm.list()[0].id)


def _sum(entries: int) -> Iterable[Part]:
    yield f"  {entries} entries: every hash fits the one before, and replayed they give the task as it stands.", ""


def _tell(number: int, step: Step) -> None:
    output.styled((f"{number:>2}. ", "bold cyan"), (step.title, "bold"))
    output.styled(("    ", ""), (step.who, "cyan"), (f"  {step.asks}", ""))
    for parts in _answers(step):
        output.styled(("    ", ""), *parts)


def _answers(step: Step) -> Iterable[tuple[Part, ...]]:
    """One line for each kind of answer: losers of a race that heard the same are told together."""
    for task in (answer for _, answer in step.answers if isinstance(answer, Task)):
        yield ("accepted", "green"), ("  " + ", ".join(part for part in (task.state, f"version {task.version}", _owned(task)) if part), "")
    heard = Counter((answer.code, _why(answer)) for _, answer in step.answers if isinstance(answer, Refusal))
    for (code, why), times in heard.items():
        yield ("refused ", "red"), (f"  {code}" + (f" ({times} times)" if times > 1 else ""), "yellow"), (f": {why}", "")


def _owned(task: Task) -> str:
    return f"owner {task.owner}" if task.owner else ""


def _why(refusal: Refusal) -> str:
    return f"{refusal.detail} (recorded as version {refusal.version})" if refusal.recorded else refusal.detail
