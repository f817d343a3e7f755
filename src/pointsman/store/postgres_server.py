"""One PostgreSQL database: what its URL says, a session that keeps what it promises, and which servers are refused.

A URL holds a password; nothing here that is shown or raised ever does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pointsman.errors import StoreError
from pointsman.store.database import Row
from pointsman.store.postgres_errors import fault, unavailable
from pointsman.store.postgres_statements import Spelled

OLDEST_SERVER = 140000
POOL_SIZE = 16
ALIVE: Mapping[str, str] = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "target_session_attrs": "read-write",
    "application_name": "pointsman",
}
"""How a connection notices that the other side is gone, unless the URL says otherwise; of several hosts, the one that writes."""

_AUTHORITY = re.compile(r"postgres(?:ql)?://([^/?#]*)([^?#]*)")


class Session(psycopg.Connection[Row]):
    """A connection that waits no longer than `deadline_s` for any answer, and notes a warning that came with it."""

    deadline_s: float = 5.0
    warned: bool = False

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(gen, interval, self.deadline_s if timeout is None else timeout)

    def note(self, notice: Any) -> None:
        self.warned = self.warned or notice.severity_nonlocalized == "WARNING"


@dataclass(frozen=True, slots=True)
class Patience:
    """For how long anything is waited for. A client gives up a little after its server should have."""

    connection_s: float = 5.0
    lock_s: float = 5.0
    statement_s: float = 30.0
    idle_s: float = 10.0
    grace_s: float = 2.0

    @property
    def answer_s(self) -> float:
        return self.statement_s + self.grace_s


@dataclass(frozen=True, slots=True)
class Server:
    """A database by its connection string, which is secret, and by the URL that may be shown."""

    conninfo: str
    url: str
    patience: Patience
    asked: Mapping[str, Spelled]
    """What is asked of the server itself, from sql/postgres/server.sql."""

    def connect(self) -> Session:
        """A session with its deadlines set, on a server that keeps what it acknowledges; or a StoreError."""
        try:
            session = Session.connect(self.conninfo, autocommit=True, cursor_factory=psycopg.RawCursor[Row], client_encoding="UTF8")
        except psycopg.Error as error:
            raise fault(error, self.url) or unavailable(self.url, "it cannot be connected to") from error
        try:
            self._settle(session)
        except psycopg.Error as error:
            session.close()
            raise fault(error, self.url) or unavailable(self.url, str(error)) from error
        except StoreError:
            session.close()
            raise
        return session

    def ask(self, session: Session, name: str, /, **parameters: Any) -> list[Row]:
        """The rows of a statement about the server itself."""
        statement = self.asked[name]
        cursor = session.execute(statement.sql, [parameters[each] for each in statement.parameters])
        return cursor.fetchall() if cursor.description else []

    def _settle(self, session: Session) -> None:
        session.add_notice_handler(session.note)
        waits = {"statement_ms": self.patience.statement_s, "lock_ms": self.patience.lock_s, "idle_ms": self.patience.idle_s}
        found = self.ask(session, "settle_session", **{name: str(round(1000 * s)) for name, s in waits.items()})[0]
        if why := unfit(*found[4:]):
            raise unavailable(self.url, why)
        session.deadline_s = self.patience.answer_s


def unfit(version: str, fsync: str, synchronous_commit: str, encoding: str) -> str | None:
    """Why a server is not trusted with what it acknowledges; None when it is."""
    if int(version) < OLDEST_SERVER:
        return f"its PostgreSQL is older than {OLDEST_SERVER // 10000}"
    if fsync != "on":
        return "its fsync is off: a power cut would take acknowledged work with it. Set fsync = on"
    if synchronous_commit == "off":
        return "its synchronous_commit is off: a crash would take acknowledged work with it. Set synchronous_commit = on"
    if encoding != "UTF8":
        return f"its encoding is {encoding}: text would not come back as it was. Create it with ENCODING 'UTF8'"
    return None


def locate(url: str, patience: Patience, asked: Mapping[str, Spelled]) -> Server:
    """The server that a URL names. What cannot be read is not repeated, since a password may stand in it."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error:
        raise _unreadable() from None
    if _misread(url, parts):
        raise _unreadable() from None
    wanted = {**ALIVE, "connect_timeout": str(ceil(patience.connection_s))}
    defaults = {name: value for name, value in wanted.items() if name not in parts}
    return Server(make_conninfo(url, **defaults), shown(parts), patience, asked)


def shown(parts: Mapping[str, Any]) -> str:
    """The URL without secrets: user, hosts, ports and the database's name."""
    user = quote(str(parts["user"]), safe="") + "@" if parts.get("user") else ""
    host, port = str(parts.get("host") or ""), str(parts.get("port") or "")
    name = quote(str(parts.get("dbname") or ""), safe="")
    if "/" in host or "," in host:
        return f"postgresql://{user}/{name}?host={quote(host, safe='/,')}" + (f"&port={port}" if port else "")
    return f"postgresql://{user}{host}{':' if port else ''}{port}/{name}"


def _misread(url: str, parts: Mapping[str, Any]) -> bool:
    """Whether a password with an @, / or : in it was taken for something else, and would be shown."""
    found = _AUTHORITY.match(url)
    ports = str(parts.get("port") or "").split(",")
    return found is None or found[1].count("@") > 1 or "@" in found[2] or not all(port.isdigit() or not port for port in ports)


def _unreadable() -> StoreError:
    how = "postgresql://USER:PASSWORD@HOST:PORT/NAME, with %40 for an @ and %2F for a / in the password"
    return StoreError("store_unavailable", f"the URL of the database cannot be read; it is to be like {how}")
