"""Somebody else's service: tickets and payments, in a process and with a file of its own.

    python remote.py FILE        prints its port

It knows nothing of Pointsman. A refund, a ticket's note or a letter that arrives twice is there twice; it keeps the reference that it was
sent, and finds by it. Mail alone has a key that it does not send twice. `GET /all` is its ledger, and the judge of the lab.
"""

import json
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

KINDS = ("refund", "ticket", "mail", "letter")
KEYED = "mail"


class Ledger:
    """What arrived, durably, in order."""

    def __init__(self, path: str):
        self._lock = Lock()
        self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("CREATE TABLE IF NOT EXISTS arrived (id INTEGER PRIMARY KEY, kind TEXT, reference TEXT, request TEXT)")

    def take(self, kind: str, reference: str, request: Any) -> int:
        with self._lock:
            if kind == KEYED and (known := self.find(kind, reference)):
                return known[0]["id"]
            text = json.dumps(request, sort_keys=True)
            cursor = self._file.execute("INSERT INTO arrived (kind, reference, request) VALUES (?, ?, ?)", (kind, reference, text))
            assert cursor.lastrowid is not None
            return cursor.lastrowid

    def find(self, kind: str, reference: str) -> list[dict[str, Any]]:
        return [row for row in self.all() if (row["kind"], row["reference"]) == (kind, reference)]

    def all(self) -> list[dict[str, Any]]:
        rows = self._file.execute("SELECT id, kind, reference, request FROM arrived ORDER BY id").fetchall()
        return [{"id": id_, "kind": kind, "reference": reference, "request": json.loads(request)} for id_, kind, reference, request in rows]


class Handler(BaseHTTPRequestHandler):
    ledger: Ledger

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._say({"id": self.ledger.take(self.path.strip("/"), body["reference"], body["request"])})

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        kind = parts.path.strip("/")
        self._say(self.ledger.all() if kind == "all" else self.ledger.find(kind, parse_qs(parts.query)["reference"][0]))

    def _say(self, answer: Any) -> None:
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """It says nothing."""


def main() -> None:
    Handler.ledger = Ledger(sys.argv[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
