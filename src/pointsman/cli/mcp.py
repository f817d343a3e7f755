"""`pointsman mcp`: the machines as MCP tools over standard input and output."""

from typing import Annotated

from pointsman.app import opened
from pointsman.cli import options
from pointsman.config import settings
from pointsman.errors import invalid

Url = Annotated[
    str | None, options.flag("--url", metavar="URL", help="Pass calls on to the server running there, in place of opening a database.")
]
As = Annotated[str | None, options.flag("--as", metavar="NAME", help="Who the client is. Without it every call names its caller.")]


def mcp(work: options.WorkFile = None, db: options.Db = None, url: Url = None, name: As = None) -> None:
    """Serve MCP to the one client that starts this command. Creates the database when there is none.

    Put this command into the client's configuration; each client gets its own process and its own --as.
    """
    if url is not None and (work or db):
        raise invalid(("--url", "the running server has its own machines and database: leave out WORK.PY and --db"))
    config = settings(work=work, db=db, **{"as": name})
    try:  # imported late: the other commands do without the SDK
        from pointsman.mcp import proxy, stdio
        from pointsman.mcp.seat import Seat
    except ModuleNotFoundError as exc:
        raise invalid(("mcp", f"needs {exc.name}, which is not installed: pip install 'pointsman[serve]'")) from exc
    if config.name is not None:  # one that no call could be made under is told now, not at every call
        Seat((config.name,)).principal({})
    wire = stdio.take_wire()
    if url is not None:
        proxy.serve(url, config.name, wire)
        return
    with opened(config, duties=True) as pm:
        stdio.serve(pm, config.name, wire)
