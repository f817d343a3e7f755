"""What PostgreSQL's errors mean, by their SQLSTATE; an error without one is a connection that was lost or never made."""

from collections.abc import Mapping

import psycopg

from pointsman.errors import StoreError
from pointsman.store.binding import MOVED

AGAIN = frozenset({"40001", "40P01", "23505"})
"""The unit met another one, and finds out how it ended by running again: a serialization failure, a deadlock, or a key
(of an idempotency record, of an entry) that somebody inserted meanwhile."""

BUSY: Mapping[str, str] = {
    "22012": MOVED,
    "40001": "it kept meeting other transactions",
    "40P01": "it kept meeting other transactions",
    "53300": "it has no connection to spare",
    "55P03": "another transaction kept a lock",
    "57014": "a statement did not end in time",
}
UNAVAILABLE: Mapping[str, str] = {
    "08": "the connection failed",
    "25006": "it is read-only",
    "25P03": "the transaction stood idle for too long",
    "28": "access was denied",
    "3D": "it does not exist",
    "3F": "its schema is gone",
    "42501": "access was denied",
    "42P01": "a table of ours is gone",
    "53": "it has run out of something",
    "53100": "its disk is full",
    "53200": "its memory is full",
    "54": "a limit of the server was passed",
    "57": "the server was stopped",
    "58": "reading or writing it failed",
    "XX": "its content is damaged, or the server met an internal fault",
}
"""By SQLSTATE, or by the first two characters, the class."""


def unavailable(url: str, why: str, outcome: str = "not_done") -> StoreError:
    return StoreError("store_unavailable", f"database {url}: {why}", outcome)


def busy(url: str, why: str, outcome: str = "not_done") -> StoreError:
    return StoreError("store_busy", f"database {url}: {why}", outcome)


def fault(error: psycopg.Error, url: str, outcome: str = "not_done") -> StoreError | None:
    """What `error` says of the store, or None when it says something of the statement or of its values."""
    state = error.sqlstate
    if state is None:
        return unavailable(url, _lost(error), outcome) if lost(error) else None
    if state in BUSY:
        return busy(url, f"{BUSY[state]} ({state})", outcome)
    why = UNAVAILABLE.get(state) or UNAVAILABLE.get(state[:2])
    return None if why is None else unavailable(url, f"{why} ({state})", outcome)


def lost(error: psycopg.Error) -> bool:
    """Whether the server never answered."""
    return error.sqlstate is None and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def _lost(error: psycopg.Error) -> str:
    """libpq's own first line, which names hosts and users but no password."""
    text = str(error).strip().partition("\n")[0]
    return text or "the connection was lost"
