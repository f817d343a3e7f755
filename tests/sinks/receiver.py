"""A receiver on the loopback interface, which remembers what it was sent and answers as it was told."""

import threading
from dataclasses import dataclass
from email.message import Message as Headers
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Post:
    path: str
    headers: Headers
    body: bytes


class Receiver:
    """`status` and `says` are what it answers with; while it is `stuck` it begins to answer and does not go on."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.status, self.says = 204, dict[str, str]()
        self.stuck = False
        self.free = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # whoever sent it has died
                receiver.posts.append(Post(self.path, self.headers, body))
                if receiver.stuck:
                    self.wfile.write(b"HTTP/1.1 2")
                    receiver.free.wait(60)
                    return
                self.send_response(receiver.status)
                for name, value in receiver.says.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """It says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def url(self, host: str = "127.0.0.1", path: str = "/hook") -> str:
        return f"http://{host}:{self.port}{path}"

    def let_go(self) -> None:
        """Whoever is stuck goes on, and nobody is from now on."""
        self.stuck = False
        self.free.set()
        self.free = threading.Event()

    def close(self) -> None:
        self.free.set()
        self._server.shutdown()
        self._server.server_close()
