"""One server process: bind, say when ready, stop cleanly on SIGTERM or SIGINT.

In open mode only a loopback address is bound. Limits against slow and many clients stand here and in `protocol.py`.
"""

import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypedDict

import uvicorn
from starlette.types import ASGIApp

from pointsman.engine.pointsman import Pointsman
from pointsman.errors import invalid
from pointsman.http.asgi import Service, app
from pointsman.http.guard import is_loopback
from pointsman.http.protocol import Bounded

KEEP_ALIVE_SECONDS = 30
STOP_SECONDS = 30
BACKLOG = 1024
COLLECT_AFTER = 10_000, 20, 20
"""How many new objects, and then how many rounds, the garbage collector waits for."""


class Ready(TypedDict):
    url: str
    pid: int
    db: str


def serve(
    pm: Pointsman,
    host: str = "127.0.0.1",
    port: int = 8470,
    ready: Callable[[Ready], None] | None = None,
    api: Service | None = None,
    listener: socket.socket | None = None,
) -> None:
    """Serve until told to stop. `ready` is called once connections are accepted. Port 0 takes a free one. `api` is an
    application that another edge has joined; without it, `app(pm)`. `listener` is what `bind` gave for this host, when other
    processes accept at it too."""
    listener = listener or bind(host, port)
    name = f"[{host.strip('[]')}]" if ":" in host else host
    where = Ready(url=f"http://{name}:{listener.getsockname()[1]}", pid=os.getpid(), db=pm.engine.db.url)
    served = api or app(pm)
    Server(settings(served), lambda: ready(where) if ready else None, served.feed.close).run([listener])


def bind(host: str, port: int) -> socket.socket:
    """A listening socket on a loopback address; any other is refused while the database has no key."""
    if not is_loopback(host):
        raise invalid(
            (
                "host",
                "in open mode only a loopback address is served; "
                "keys, which open it to others, come with a later version (`pointsman key create`); until then use an SSH tunnel",
            )
        )
    if not 0 <= port <= 65_535:
        raise invalid(("port", "must be from 0 to 65535"))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"{host}:{port} cannot be listened on ({error.strerror}); --port 0 takes a free one") from error


def settings(api: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        api,
        http=Bounded,
        ws="none",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,
        log_level="error",
        headers=[("x-content-type-options", "nosniff")],
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        backlog=BACKLOG,
    )


def _spare_the_collector() -> None:
    """What is loaded by now lives as long as the process: the garbage collector, which otherwise takes a tenth of every
    call, need not walk it again, and looks for the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


class Server(uvicorn.Server):
    """uvicorn's server, except that it tells when it is ready and when it stops, and that a signal asked for ends in a
    normal return and not in death by that signal."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]):
        super().__init__(config)
        self._started = started
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        _spare_the_collector()
        self._started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
