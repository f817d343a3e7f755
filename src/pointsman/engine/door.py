"""Who calls, through which door, and under which idempotency key."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pointsman.errors import invalid
from pointsman.kernel.chain import digest
from pointsman.kernel.ingest import faults, identifier
from pointsman.kernel.rules import ANONYMOUS, Principal
from pointsman.store.requests import Request


@dataclass(frozen=True, slots=True)
class Door:
    """How a call came in. A strict door must send an owner's epoch and the digest of what a decision judges; the
    flat service is not strict: it knows owners by name only, and its decisions may be blind."""

    name: str
    strict: bool = True


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a verb. `request` is its idempotency record; `given` says that the caller chose the key."""

    by: Principal
    door: Door
    session: str | None
    request: Request
    given: bool


def principal(by: str | Principal) -> Principal:
    """A name as a principal with every role; names are ASCII identifiers and `anonymous` is reserved."""
    if isinstance(by, Principal):
        if type(by.name) is not str or type(by.root) is not str:
            raise invalid(("by.name", "must be text"))
        return _sound(by)
    return _named(by)


@lru_cache(maxsize=1024)
def _sound(by: Principal) -> Principal:
    """A principal made by a program: its names are judged like any other."""
    found = identifier(by.name, "by.name") + (identifier(by.root, "by.root") if by.root != "" else [])
    if not found and by.name.casefold() == ANONYMOUS != by.name:
        found = [("by.name", "this name is reserved")]
    if found:
        raise invalid(*found)
    return by


def _named(by: object) -> Principal:
    return _by_name(by) if type(by) is str else _by_name(_text(by))


def _text(by: object) -> str:
    if not isinstance(by, str):
        raise invalid(("by", "must be a name or a Principal"))
    return str(by)


@lru_cache(maxsize=1024)
def _by_name(by: str) -> Principal:
    if found := identifier(by, "by"):
        raise invalid(*found)
    if by.casefold() == ANONYMOUS:
        raise invalid(("by", "this name is reserved"))
    return Principal(by)


def request(by: Principal, key: str | None, fresh: str, body: Mapping[str, Any]) -> Request:
    """The caller's key bound to what was asked, or a fresh key that nobody else can ask with."""
    if key is None:
        return Request(by.name, fresh, "")
    if found := identifier(key, "idempotency_key") + faults(dict(body)):
        raise invalid(*found)
    return Request(by.name, key, digest("request", dict(body)))
