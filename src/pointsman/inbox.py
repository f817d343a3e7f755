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
from pointsman.kernel import ingest
from pointsman.kernel.signature import fits
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
    a secret is being rotated, name the old one and the new one."""
    given = {name.lower(): value for name, value in headers.items()}
    message, at = given.get("webhook-id", ""), _timestamp(given.get("webhook-timestamp", ""))
    if abs((wall_clock() if now is None else now) - at * SECOND) > tolerance:
        raise NotGenuine("its time is too far from ours")
    wanted = [secrets] if isinstance(secrets, str) else list(secrets)
    if not message or not fits(given.get("webhook-signature", ""), wanted, message, at, body):
        raise NotGenuine("its signature does not fit")
    if seen is not None and seen(message):
        return None
    read = ingest.parse(body)
    assert isinstance(read, dict), "whoever signs it sends an object"
    return {"id": message, **read}


def _timestamp(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise NotGenuine("it says no time")
    return int(text)
