"""A TCP proxy that fails on purpose, before a PostgreSQL server.

`mode` is looked at for every piece of data: "pass" hands it on; "swallow" takes it and says nothing, while the connection
looks alive; "refuse" resets new connections. `cut` lets the server hear what a client says next, and resets that
connection when the server answers. `shorten` breaks a connection in the middle of what its client says.
"""

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

PIECE = 65536


class Proxy:
    def __init__(self, upstream: tuple[str, int] | str):
        self.mode = "pass"
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._then = "pass"
        self._short: list[int] = []
        self._lock = threading.Lock()
        self._pairs: list[_Pair] = []
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self.reset()

    def cut(self, then: str = "pass") -> None:
        """Cut the next answer; `then` is the mode that follows."""
        self.mode, self._then = "cut", then

    def marked(self) -> bool:
        """Whether what a client just said is the word whose answer is cut."""
        with self._lock:
            if self.mode != "cut":
                return False
            self.mode = self._then
            return True

    def shorten(self, words: int, heard: int) -> None:
        """Let clients say so many words more; of the next one the server hears the beginning, and the connection breaks."""
        self._short = [PIECE] * words + [heard]

    def heard(self) -> int | None:
        """How much of a client's next word the server hears, when it is one to break off at."""
        with self._lock:
            return self._short.pop(0) if self._short else None

    def reset(self) -> None:
        """Break every connection."""
        while self._pairs:
            self._pairs.pop().reset()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.mode == "refuse":
                    _abort(client)
                else:
                    self._pairs.append(_Pair(self, client, _reached(self._upstream)))


class _Pair:
    """A client's connection and the one that stands for it."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket):
        self._proxy, self._client, self._server = proxy, client, server
        self._cut = False
        for source, target in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def reset(self) -> None:
        for side in (self._client, self._server):
            _abort(side)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(PIECE):
                if source is self._server and self._cut:
                    break
                if source is self._client and self._proxy.marked():
                    self._cut = True
                heard = self._proxy.heard() if source is self._client else None
                if heard is not None and heard < PIECE:
                    target.sendall(data[:heard])
                    break
                if self._proxy.mode != "swallow":
                    target.sendall(data)
        self.reset()


def _reached(upstream: tuple[str, int] | str) -> socket.socket:
    if isinstance(upstream, tuple):
        return socket.create_connection(upstream)
    local = socket.socket(socket.AF_UNIX)
    local.connect(upstream)
    return local


def _abort(side: socket.socket) -> None:
    """Close with a reset, at once, also under somebody who reads."""
    with suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with suppress(OSError):
        side.shutdown(socket.SHUT_RDWR)
    side.close()
