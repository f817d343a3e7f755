"""`pointsman machine …`: judge a work file and draw its machines, without a database; `diff` and `publish` use one."""

from pathlib import Path
from typing import Any

import typer

from pointsman.app import machines
from pointsman.cli import options, output, publishing
from pointsman.config import settings
from pointsman.errors import FAILED, DefinitionError, Fault, Refusal, Refused
from pointsman.kernel.definition import Definition

app = typer.Typer(help="Check machines, draw them, compare and publish them.", rich_markup_mode=None)


@app.command("check", short_help="Find every fault of the machines, each with its line.")
def check(work: options.WorkFile = None, json: options.Json = None) -> None:
    """Find every fault of the machines in WORK.PY, each with its line, and what is worth a warning.

    Exit status 1 when there is a fault; warnings alone are 0.
    """
    config = settings(work=work, json=json)
    place = config.work or Path("tasks")
    try:
        found = [(definition, warnings(definition)) for definition in definitions(config.work)]
    except DefinitionError as exc:
        _faulty(exc, place, json=config.json)
        raise typer.Exit(FAILED) from exc
    if config.json:
        output.as_json({"ok": True, "machines": [_report(definition, warned) for definition, warned in found]})
        return
    for definition, warned in found:
        sizes = [(definition.states, "state"), (definition.events, "event"), (warned, "warning")]
        counts = ", ".join(output.counted(len(items), noun) for items, noun in sizes)
        output.line(f"{definition.name}, version {definition.version}: no fault, {counts}")
        for warning in warned:
            output.line(f"  {place}: {output.visible(str(warning))}")


@app.command("draw")
def draw(work: options.WorkFile = None, machine: options.OfMachine = None, json: options.Json = None) -> None:
    """Print the machines of WORK.PY as Mermaid state diagrams."""
    from pointsman.kernel.draw import mermaid

    config = settings(work=work, json=json)
    chosen = [item for item in definitions(config.work) if machine in (None, item.name)]
    if not chosen:
        raise Refused(Refusal("unknown_machine", f"{config.work or 'the built-in module'} declares no machine of that name"))
    if config.json:
        output.as_json({"machines": [{"name": item.name, "mermaid": mermaid(item)} for item in chosen]})
    else:
        output.line("\n".join(mermaid(item).rstrip("\n") + "\n" for item in chosen).rstrip("\n"))


def definitions(work: Path | None) -> list[Definition]:
    from pointsman.builtin import Tasks

    return [item.definition for item in machines(work) or [Tasks]]


def warnings(definition: Definition) -> list[Fault]:
    from pointsman.kernel.faults import faults

    return [fault for fault in faults(definition) if fault.warning]


def _report(definition: Definition, warned: list[Fault]) -> dict[str, Any]:
    return {
        "name": definition.name,
        "version": definition.version,
        "faults": [],
        "warnings": [output.fault_json(fault) for fault in warned],
    }


def _faulty(exc: DefinitionError, place: Path, *, json: bool) -> None:
    if json:
        output.as_json({"ok": False, "machines": [{"name": exc.machine, "faults": [output.fault_json(fault) for fault in exc.faults]}]})
        return
    output.line(f"{place}: machine {exc.machine} has {output.counted(len(exc.faults), 'fault')}")
    for fault in exc.faults:
        output.line(f"  {output.visible(str(fault))}")


app.command("diff", short_help="Compare WORK.PY with what is published in the database.")(publishing.diff)
app.command("publish", short_help="Publish the machines of WORK.PY in the database.")(publishing.publish)
