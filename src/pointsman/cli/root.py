"""The tree of commands, and how an end becomes an exit status."""

import os
import sys
from collections.abc import Sequence

import typer

from pointsman.app import WorkFileError
from pointsman.cli import audit, bench, db, demo, health, hold, hook, init, machine, mcp, output, running, serve, task, worker
from pointsman.config import settings
from pointsman.errors import CODES, FAILED, USAGE, DefinitionError, Refusal, Refused

INTERRUPTED = 130
PLAIN = {"rich_markup_mode": None, "add_completion": False, "pretty_exceptions_enable": False}

app = typer.Typer(
    help="Agents and people propose; a declared state machine decides, in one atomic step, and writes down why.",
    epilog="First steps: `pointsman demo` shows the whole job, `pointsman init` writes a machine to start from.\n\n"
    "Settings: db, work, as, host, port, release_per_s and json in pointsman.toml (found upward, then beside the repository's git "
    "directory) or as POINTSMAN_DB and so on set what the flags set; flags win.\n\n"
    "Exit status: 0 ok, 1 failure, 2 usage, 3 refused, 4 not found, 5 store unavailable.",
    **PLAIN,
)
app.command("demo", short_help="Run the main job on a temporary database, told step by step.")(demo.demo)
app.command("init", short_help="Write a machine to start from, settings, a database and an agent's configuration.")(init.init)
app.command("serve")(serve.serve)
app.command("mcp", short_help="Serve the machines to an agent over MCP on standard input and output.")(mcp.mcp)
app.command(
    "run",
    short_help="Run a command with each task that waits, and keep its lease meanwhile.",
    context_settings={"allow_interspersed_args": False},
)(running.run)
app.command("worker", short_help="Call the functions of a work file with the tasks that wait.")(worker.worker)
app.add_typer(task.app, name="task")
app.add_typer(hold.app, name="hold")
app.add_typer(hook.app, name="hook")
app.add_typer(machine.app, name="machine")
app.command("verify", short_help="Recompute every hash and compare every task with its history.")(health.verify)
app.add_typer(audit.app, name="audit")
app.add_typer(db.app, name="db")
app.command("doctor", short_help="Look for trouble in the set-up.")(health.doctor)
app.command("bench", short_help="Measure this machine, beside floors of the same run.")(bench.bench)


def run(argv: Sequence[str]) -> int:
    """Run one command and answer its exit status. Every expected end is one line on stderr."""
    command = typer.main.get_command(app)
    try:
        status = command.main(args=list(argv) or ["--help"], prog_name="pointsman", standalone_mode=False) or 0
        sys.stdout.flush()
        return status
    except Refused as exc:
        output.refusal(exc.refusal, json_line=_wants_json(argv))
        return CODES[exc.code].exit
    except typer.TyperException as exc:
        output.refusal(_usage(exc), json_line=_wants_json(argv))
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: what is still buffered goes nowhere
        return FAILED
    except DefinitionError as exc:
        output.faulty(exc, json_line=_wants_json(argv))
        return FAILED
    except (WorkFileError, OSError) as exc:
        output.failure(str(exc), json_line=_wants_json(argv))
        return FAILED


def _usage(exc: typer.TyperException) -> Refusal:
    ctx = getattr(exc, "ctx", None)
    return Refusal("invalid", f"{exc.format_message()} ({ctx.command_path if ctx else 'pointsman'} --help)")


def _wants_json(argv: Sequence[str]) -> bool:
    try:
        return "--json" in argv or settings().json
    except Refused:
        return False
