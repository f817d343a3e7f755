"""Hooks: receivers outside, and which messages each is to be told."""

import re
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from pointsman.types import Instant

Kind = Literal["webhook", "slack", "ntfy", "cloudevents", "call"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SIGNED: tuple[Kind, ...] = ("webhook",)
"""Kinds whose receiver can tell by a signature who speaks."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What signs messages, until a time; without one until it is rotated."""

    text: str
    until: Instant | None = None

    def __repr__(self) -> str:
        return f"Secret(…, until={self.until})"


@dataclass(frozen=True, slots=True)
class Hook:
    """A receiver. `topics` are those it listens to, `machine` the only one it hears of; `link` is where people see a task.
    `private` allows addresses that are not public. One that is disabled is sent nothing until an operator redrives it."""

    id: str
    kind: Kind
    url: str = field(repr=False)
    topics: tuple[str, ...]
    machine: str | None
    link: str
    private: bool
    secrets: tuple[Secret, ...]
    made_by: str
    made_at: Instant
    disabled_at: Instant | None = None
    removed_by: str | None = None
    removed_at: Instant | None = None

    @property
    def shown(self) -> str:
        """The URL without what may be secret in it: for some receivers the path is all they know a sender by."""
        scheme, mark, rest = self.url.partition("://")
        if self.kind in ("cloudevents", "call") or not mark:
            return self.url
        host = re.split(r"[/?#]", rest, maxsplit=1)[0]
        return self.url if rest.removesuffix("/") == host else f"{scheme}://{host}/…"

    def signs(self, now: Instant) -> tuple[str, ...]:
        """The secrets that count at a time, the newest first."""
        return tuple(secret.text for secret in reversed(self.secrets) if secret.until is None or now < secret.until)

    def rotated(self, text: str, now: Instant, until: Instant) -> "Hook":
        """With one more secret; those before count until a time, and those that counted no more are forgotten."""
        older = tuple(Secret(old.text, until if old.until is None else min(old.until, until)) for old in self.secrets)
        return replace(self, secrets=(*(old for old in older if old.until is not None and now < old.until), Secret(text)))
