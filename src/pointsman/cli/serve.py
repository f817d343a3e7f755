"""`pointsman serve`: the HTTP service on one database."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pointsman.app import opened, served
from pointsman.cli import options, output
from pointsman.config import Config, settings
from pointsman.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket

    from pointsman.http.serve import Ready

Host = Annotated[str | None, options.flag("--host", metavar="HOST", help="Loopback address to listen on. Default: 127.0.0.1.")]
Port = Annotated[int | None, options.flag("--port", metavar="PORT", help="Port to listen on; 0 picks a free one. Default: 8470.")]
WorkersOf = Annotated[
    int | None, options.flag("--workers", metavar="N", help="How many processes answer, on one socket and one database. Default: 1.")
]
OPEN_MODE = "open mode: a caller is whoever it says it is; keep this port to programs and people you trust"
NO_KEYS = (
    "only a loopback host can be served, because every caller here is whoever it says it is; this version has no keys yet "
    "(they come with `pointsman key create`), so reach it from another machine through an SSH tunnel"
)


def serve(
    work: options.WorkFile = None,
    db: options.Db = None,
    host: Host = None,
    port: Port = None,
    workers: WorkersOf = None,
    json: options.Json = None,
) -> None:
    """Serve the machines over HTTP until SIGTERM or Ctrl-C. Creates the database when there is none.

    Prints one line when ready: the address, or with --json an object with url, pid and db. Requests in flight are
    answered before it stops, and owners keep their tasks. Of several workers, one that dies is replaced.
    """
    config = settings(work=work, db=db, host=host, port=port, workers=workers, json=json)
    try:  # imported late: the other commands do without the server's libraries
        from pointsman.http.guard import is_loopback
        from pointsman.http.serve import bind
        from pointsman.http.workers import Workers
    except ModuleNotFoundError as exc:
        raise invalid(("serve", f"needs {exc.name}, which is not installed: pip install 'pointsman[serve]'")) from exc
    if not is_loopback(config.host):
        raise invalid(("--host", NO_KEYS))
    if config.workers == 1:
        return _served(config, partial(_ready, json=config.json))
    listener = bind(config.host, config.port)
    parent = Workers(config.workers, listener, partial(_ready, json=config.json), output.note)
    if seat := parent.run():
        return _served(config, seat.ready, listener)
    raise typer.Exit(parent.status)


def _served(config: Config, ready: "Callable[[Ready], None]", listener: "socket | None" = None) -> None:
    from pointsman.http.serve import serve as http_serve

    with opened(config, create=True, duties=True) as pm:
        http_serve(pm, config.host, config.port, ready, served(pm), listener)


def _ready(ready: "Ready", *, json: bool) -> None:
    output.note(OPEN_MODE)
    if json:
        output.as_json(ready, indent=None)
    else:
        output.line(f"serving {ready['db']} at {ready['url']}")
    sys.stdout.flush()
