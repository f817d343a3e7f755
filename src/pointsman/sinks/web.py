"""One POST to a receiver: to an address that was judged, within a time, without following anybody elsewhere.

The name is resolved once. What is connected to is one of the addresses that came of it and were found public, so a name that
points elsewhere a moment later points nobody anywhere. No proxy of the environment is asked.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ipaddress import ip_address
from socket import SHUT_RDWR, SOCK_STREAM, create_connection, gaierror, getaddrinfo
from threading import Timer
from urllib.parse import SplitResult, urlsplit

from pointsman.engine.receiver import is_public
from pointsman.engine.relaying import TAKEN, Answer
from pointsman.types import Duration, seconds

CONNECT_S = 5.0
TOTAL_S = 15.0
MOST_ADDRESSES = 2
Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port."""


class Unsent(Exception):
    """Nothing was sent, as far as is known; says why in words of our own."""


def resolved(host: str, port: int) -> Sequence[str]:
    return list(dict.fromkeys(str(found[4][0]) for found in getaddrinfo(host, port, type=SOCK_STREAM)))


def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool, resolve: Resolve = resolved) -> Answer:
    """Send, and what became of it. Of the receiver's answer only the status and Retry-After are read."""
    where = urlsplit(url)
    try:
        with closing(_connected(where, _judged(where, resolve, private=private))) as connection:
            return _answered(connection, where, body, headers)
    except Unsent as why:
        return Answer("again", str(why))
    except TimeoutError:
        return Answer("again", "no answer in time")
    except ssl.SSLError:
        return Answer("again", "the TLS connection failed")
    except (OSError, HTTPException):
        return Answer("again", "the connection failed")


def _port(where: SplitResult) -> int:
    return where.port or (443 if where.scheme == "https" else 80)


def _judged(where: SplitResult, resolve: Resolve, *, private: bool) -> list[str]:
    """The addresses that may be connected to."""
    try:
        found = resolve(where.hostname or "", _port(where))
    except (gaierror, UnicodeError):
        raise Unsent("its name cannot be resolved") from None
    allowed = [address for address in found if private or is_public(ip_address(address))]
    if not allowed:
        raise Unsent("its address is not public" if found else "its name has no address")
    return allowed[:MOST_ADDRESSES]


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _connected(where: SplitResult, addresses: Sequence[str]) -> HTTPConnection:
    host, port = where.hostname or "", _port(where)
    secure = where.scheme == "https"
    connection = HTTPSConnection(host, port, context=_tls()) if secure else HTTPConnection(host, port)
    connection.auto_open = 0  # it would resolve the name anew
    for address in addresses:
        try:
            plain = create_connection((address, port), timeout=CONNECT_S)
        except OSError:
            continue
        connection.sock = _tls().wrap_socket(plain, server_hostname=host) if secure else plain
        connection.sock.settimeout(TOTAL_S)
        return connection
    raise Unsent("it cannot be connected to")


def _answered(connection: HTTPConnection, where: SplitResult, body: bytes, headers: Mapping[str, str]) -> Answer:
    """A receiver that answers a byte at a time is cut off like one that does not answer."""
    late = Timer(TOTAL_S, _cut, (connection.sock,))
    late.daemon = True
    late.start()
    path = where.path or "/"
    try:
        target = f"{path}?{where.query}" if where.query else path
        connection.request("POST", target, body, {"User-Agent": "pointsman", "Connection": "close", **headers})
        answer = connection.getresponse()
        return _read(answer.status, answer.headers.get("Retry-After"))
    finally:
        late.cancel()


def _cut(sock: "ssl.SSLSocket") -> None:
    with suppress(OSError):
        sock.shutdown(SHUT_RDWR)


def _read(status: int, retry_after: str | None) -> Answer:
    if 200 <= status < 300:
        return TAKEN
    if status == 410:
        return Answer("gone", "HTTP 410")
    followed = ", and redirects are not followed" if 300 <= status < 400 else ""
    return Answer("again", f"HTTP {status}{followed}", _after(retry_after))


def _after(text: str | None) -> Duration:
    """Seconds; a date, or anything else, says nothing here."""
    return seconds(int(text)) if text is not None and text.isascii() and text.isdigit() and len(text) < 9 else 0
