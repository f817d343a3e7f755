"""For programs that receive Pointsman's webhooks: is a message genuine, is it fresh, and was it here before.

    message = opened(request.headers, request.body, secret, seen=handled_before)
    if message is not None:
        ...                              # the first time: do it, and answer 204
                                         # else it was done: answer 204 all the same

It knows nothing of a database: any program can use it, also one that shares none with Pointsman.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pointsman.engine.chance import wall_clock
from pointsman.errors import Refused
from pointsman.kernel import ingest
from pointsman.kernel.signature import fits, key
from pointsman.types import SECOND, Duration, Instant, minutes

TOLERANCE: Duration = minutes(5)
Seen = Callable[[str], bool]
"""Whether a message with this id was handled before. It is best asked and answered by one insert into a table of one's own, in the
transaction of what the message makes one do: then neither can happen without the other."""


class NotGenuine(Exception):
    """Not a message that was signed with this secret, or not within the tolerance; answer 400 and do nothing."""


def opened(
    headers: Mapping[str, str],
    body: bytes,
    secrets: str | Iterable[str],
    *,
    seen: Seen | None = None,
    now: Instant | None = None,
    tolerance: Duration = TOLERANCE,
) -> dict[str, Any] | None:
    """The message: its id, type, timestamp and data; None when it was seen before. NotGenuine when it cannot be believed. While
    a secret is being rotated, name the old one and the new one. ValueError when a secret is none, such as an empty one."""
    wanted = [secrets] if isinstance(secrets, str) else list(secrets)
    for secret in wanted:
        key(secret)
    given = {name.lower(): value for name, value in headers.items()}
    message, signature = _text(given, "webhook-id"), _text(given, "webhook-signature")
    at = _timestamp(_text(given, "webhook-timestamp"))
    if abs((wall_clock() if now is None else now) - at * SECOND) > tolerance:
        raise NotGenuine("its time is too far from ours")
    if not message or not fits(signature, wanted, message, at, body):
        raise NotGenuine("its signature does not fit")
    read = _read(body)
    return None if seen is not None and seen(message) else {**read, "id": message}


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.isascii():
        raise NotGenuine(f"it has no {name} that can be read")
    return value


def _read(body: bytes) -> dict[str, Any]:
    try:
        read = ingest.parse(body)
    except Refused as no:
        raise NotGenuine("its body is no message") from no
    if not isinstance(read, dict):
        raise NotGenuine("its body is no message")
    return read


def _timestamp(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise NotGenuine("it says no time")
    return int(text)
