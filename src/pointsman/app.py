"""The composition root: a work file becomes machines, settings become an engine seen through the command line's door."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pointsman.config import Config
from pointsman.engine.chance import wall_clock
from pointsman.engine.door import Door
from pointsman.engine.pointsman import Pointsman
from pointsman.engine.relaying import Outlet
from pointsman.errors import DefinitionError, invalid
from pointsman.kernel.authoring import Machine
from pointsman.store.connect import Migrated, migrate_to_newest
from pointsman.worker.worker import Worker

if TYPE_CHECKING:
    from pointsman.http.asgi import Service

MODULE = "pointsman_work"
CLI = Door("cli")


class WorkFileError(Exception):
    """A work file that cannot be used. `line` is the line of that file, 0 when it is the file as a whole."""

    def __init__(self, path: Path, message: str, line: int = 0):
        super().__init__(f"{path}, line {line}: {message}" if line else f"{path}: {message}")


def opened(config: Config, *, create: bool = False, publish: bool = True, duties: bool = False, door: Door = CLI) -> Pointsman:
    """The engine on the configured database. Importing the work file happens first and touches no database; a command
    that only reads does not publish its machines there; one that goes on running takes up duties."""
    served = machines(config.work)
    pm = Pointsman(
        config.db,
        served,
        create=create,
        publish=publish,
        duties=duties,
        release_per_s=config.release_per_s,
        outlet=_outlet() if duties else None,
    )
    return pm.through(door)


@contextmanager
def working(config: Config) -> Iterator[tuple[Pointsman, Worker]]:
    """The engine, and the worker of the work file on it."""
    if config.work is None:
        raise invalid(("WORK.PY", "name the file with your handlers"))
    module = _imported(config.work)
    worker = _worker(config.work, module)
    with Pointsman(config.db, _machines(config.work, module), create=False, duties=True, outlet=_outlet()).through(CLI) as pm:
        worker.bind(pm)
        yield pm, worker


def _worker(work: Path, module: ModuleType) -> Worker:
    """The one Worker of a work file."""
    found = list(dict.fromkeys(item for item in vars(module).values() if isinstance(item, Worker)))
    if len(found) != 1 or not found[0].routes:
        raise WorkFileError(work, "declares no worker with a handler, or several; write `worker = Worker()` and `@worker.on(...)`")
    if found[0].keeper is not None:
        raise WorkFileError(work, "gives its worker a database; write `worker = Worker()`, the command brings the database")
    return found[0]


def _outlet() -> Outlet:
    """Where messages go; what that needs is loaded only by a process that sends any."""
    from pointsman.sinks import outlet

    return outlet()


def migrated(config: Config, *, create: bool) -> Migrated:
    """The configured database at the newest schema, and what that took. No work file is read."""
    return migrate_to_newest(config.db, clock=wall_clock, create=create)


def served(pm: Pointsman) -> "Service":
    """Every HTTP edge in one application: MCP stands among the routes of the rest, behind the same guard."""
    from pointsman.http import app
    from pointsman.mcp.streamable import Streamable

    mcp = Streamable(pm)
    return app(pm, joined=[mcp.route], lifespan=lambda _: mcp.run())


def machines(work: Path | None) -> Sequence[type[Machine]] | None:
    """The machines a work file serves: its list `machines`, else every Machine class written in it. None stands for
    the built-in `tasks` machine, which is served when there is no work file."""
    if work is None:
        return None
    return _machines(work, _imported(work))


def _machines(work: Path, module: ModuleType) -> Sequence[type[Machine]]:
    listed = getattr(module, "machines", None)
    found = _declared(module) if listed is None else listed
    if not isinstance(found, list | tuple) or not all(isinstance(item, type) and issubclass(item, Machine) for item in found):
        raise WorkFileError(work, "`machines` must be a list of Machine classes, as in machines = [Articles]")
    if not found:
        raise WorkFileError(work, 'declares no machine; write one as `class Articles(Machine, name="articles"):`')
    return list(found)


def _declared(module: ModuleType) -> list[type[Machine]]:
    classes = [item for item in vars(module).values() if isinstance(item, type) and issubclass(item, Machine)]
    return [item for item in dict.fromkeys(classes) if item.__module__ == MODULE]


def _imported(work: Path) -> ModuleType:
    """Run the work file as a module, with its own folder first on the path as `python FILE` would have it."""
    if not work.is_file():
        raise invalid(("WORK.PY", f"there is no file {work}; `pointsman init` writes one"))
    loader = SourceFileLoader(MODULE, str(work))
    spec = ModuleSpec(MODULE, loader, origin=str(work))
    spec.has_location = True  # so that the file finds its own folder by __file__
    module = sys.modules[MODULE] = module_from_spec(spec)
    sys.path.insert(0, str(work.parent))
    try:
        loader.exec_module(module)
    except DefinitionError:
        raise
    except SyntaxError as exc:
        raise WorkFileError(Path(exc.filename or work), f"{exc.msg}: {(exc.text or '').strip()}", exc.lineno or 0) from exc
    except (Exception, SystemExit) as exc:  # whatever the author's file raises is told to its author
        raise WorkFileError(work, f"{type(exc).__name__}: {exc}", _line_in(work, exc)) from exc
    return module


def _line_in(work: Path, exc: BaseException) -> int:
    """The last line of the work file that was running when `exc` was raised."""
    frames = traceback.extract_tb(exc.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if Path(frame.filename) == work), 0)
