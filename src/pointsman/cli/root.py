"""The tree of commands, and how an end becomes an exit status."""

import sys
from collections.abc import Sequence

import typer

from pointsman.app import WorkFileError
from pointsman.cli import demo, health, init, machine, output, serve, task
from pointsman.config import settings
from pointsman.errors import CODES, FAILED, USAGE, DefinitionError, Refused, invalid

INTERRUPTED = 130
PLAIN = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}

app = typer.Typer(
    help="Agents and people propose; a declared state machine decides, in one atomic step, and writes down why.",
    epilog="First steps: `pointsman demo` shows the whole job, `pointsman init` writes a machine to start from. Exit status: 0 ok, "
    "1 failure, 2 usage, 3 refused, 4 not found, 5 store unavailable. POINTSMAN_DB, POINTSMAN_WORK, POINTSMAN_AS, POINTSMAN_HOST, "
    "POINTSMAN_PORT and POINTSMAN_JSON, or db, work, as, host, port and json in pointsman.toml, set what the flags set; flags win.",
    **PLAIN,
)
app.command("demo")(demo.demo)
app.command("init")(init.init)
app.command("serve")(serve.serve)
app.add_typer(task.app, name="task")
app.add_typer(machine.app, name="machine")
app.command("verify")(health.verify)
app.add_typer(health.db, name="db")
app.command("doctor")(health.doctor)


def run(argv: Sequence[str]) -> int:
    """Run one command and answer its exit status. Every expected end is one line on stderr."""
    command = typer.main.get_command(app)
    try:
        return command.main(args=list(argv) or ["--help"], prog_name="pointsman", standalone_mode=False) or 0
    except Refused as exc:
        return _refused(exc, argv)
    except DefinitionError as exc:
        print(exc, file=sys.stderr)
        return FAILED
    except WorkFileError as exc:
        output.failure("failed", str(exc))
        return FAILED
    except typer.TyperException as exc:
        return _usage(exc, argv)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader left: nothing more can be said, not even at exit
        return FAILED
    except OSError as exc:
        output.failure("failed", str(exc))
        return FAILED


def _refused(exc: Refused, argv: Sequence[str]) -> int:
    output.refusal(exc.refusal, json_line=_wants_json(argv))
    return CODES[exc.code].exit


def _usage(exc: typer.TyperException, argv: Sequence[str]) -> int:
    ctx = getattr(exc, "ctx", None)
    path = ctx.command_path if ctx else "pointsman"
    output.refusal(invalid(("usage", f"{exc.format_message()} See `{path} --help`.")).refusal, json_line="--json" in argv)
    return USAGE


def _wants_json(argv: Sequence[str]) -> bool:
    try:
        return "--json" in argv or settings().json
    except Refused:
        return False
