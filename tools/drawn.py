"""What each marked region of the documentation shows, drawn from the code as it is."""

import ast
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path
from typing import Any

import typer

from pointsman.cli.root import app
from pointsman.errors import CODES

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "pointsman"
EXITS = ("ok", "failure", "usage", "refused", "not found", "store unavailable")


def codes() -> str:
    rows = [f"| `{name}` | {code.http} | {code.exit} {EXITS[code.exit]} | {code.meaning} |" for name, code in CODES.items()]
    return "\n".join(["| code | HTTP status | exit status | when |", "| --- | --- | --- | --- |", *rows])


def cases() -> str:
    """The failure cases that the lab holds to."""
    return run_path(str(PACKAGE.parents[1] / "examples" / "interrupted_refund" / "cases.py"))["table"]()


def machine() -> str:
    """The built-in machine as the interpreter holds it, in Mermaid."""
    from pointsman import Tasks
    from pointsman.kernel.draw import mermaid

    return f"```mermaid\n{mermaid(Tasks.definition).strip()}\n```"


def tools() -> str:
    """The tools of the built-in machine for a client that has a name and sends its epoch."""
    from pointsman import Tasks
    from pointsman.mcp.tools import Seating, toolbox

    found = toolbox({"tasks": Tasks.definition}, Seating(named=True, holds=False)).values()
    rows = [f"| `{tool.name}` | {_arguments(tool.input)} | {'yes' if tool.reads else ''} | {tool.description} |" for tool in found]
    return "\n".join(["| tool | arguments | reads only | what it says of itself |", "| --- | --- | --- | --- |", *rows])


def _arguments(schema: Any) -> str:
    return ", ".join(f"`{name}`" if name in schema["required"] else f"*`{name}`*" for name in schema["properties"])


def operations() -> str:
    """The operations of `/v1`: what each takes and every status it answers, but for what the guard says to all."""
    from pointsman.http.v1.describe import EDGE, responses
    from pointsman.http.v1.table import OPERATIONS

    rows = ["| call | takes | answers | |", "| --- | --- | --- | --- |"]
    for item in OPERATIONS:
        taken = [f"`{parameter.name}`" for parameter in item.parameters if parameter.where != "path" and parameter.name not in EVERYWHERE]
        body = [f"`{name}`" for name in (item.body or {}).get("properties", {})]
        answers = [status for status in responses(item) if int(status) not in EDGE]
        rows.append(f"| {item.method} {item.path} | {', '.join(body + taken)} | {', '.join(answers)} | {item.summary} |")
    everywhere = ", ".join(str(status) for status in EDGE)
    return "\n".join([*rows, "", f"Each also takes `Pointsman-As` and `Pointsman-Session`, and may answer {everywhere}."])


EVERYWHERE = ("Pointsman-As", "Pointsman-Session")


def modules() -> str:
    """Every module with the first sentence of its docstring."""
    return "```text\n" + "\n".join(_tree(PACKAGE, 0)) + "\n```"


def _tree(folder: Path, depth: int) -> Iterator[str]:
    for path in sorted(folder.iterdir(), key=lambda item: (item.is_dir(), item.name)):
        if path.suffix == ".py" and path.name != "__init__.py":
            yield _module(path, path.name, depth)
        elif path.is_dir() and (path / "__init__.py").exists():
            yield _module(path / "__init__.py", f"{path.name}/", depth)
            yield from _tree(path, depth + 1)
        elif path.is_dir() and any(path.rglob("*.sql")):
            yield (
                f"{'  ' * depth}{path.name}/".ljust(24)
                + "every statement, named, one file for each table; schema/ holds the numbered migrations"
            )


def _module(path: Path, name: str, depth: int) -> str:
    return f"{'  ' * depth}{name}".ljust(24) + _gist(ast.get_docstring(ast.parse(path.read_text())) or "")


def _gist(docstring: str) -> str:
    """The first sentence; of a long one that goes on after a colon, what stands before."""
    sentence = " ".join(docstring.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
    head, colon, _ = sentence.partition(": ")
    return head if colon and len(head) > 30 and len(sentence) > 110 else sentence


def commands() -> str:
    """The help of every command, as a terminal of 100 columns shows it."""
    return "\n\n".join(_help(typer.main.get_command(app), "pointsman"))


def _help(command: Any, name: str) -> Iterator[str]:
    context = command.make_context(name, [], resilient_parsing=True, terminal_width=100, max_content_width=100)
    yield f"## `{name}`\n\n```text\n{command.get_help(context).strip()}\n```"
    for sub in getattr(command, "commands", {}).values():
        yield from _help(sub, f"{name} {sub.name}")
