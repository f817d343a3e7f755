"""Signatures of messages, as Standard Webhooks spells them (https://www.standardwebhooks.com, version 1)."""

import base64
import hmac
from collections.abc import Iterable
from hashlib import sha256

PREFIX = "whsec_"
VERSION = "v1,"
SHORTEST_KEY = 24
"""As Standard Webhooks has it, in bytes."""


def key(secret: str) -> bytes:
    """What a secret stands for. A ValueError for what is no secret: an empty one would sign for anybody."""
    if not isinstance(secret, str):  # pyright: ignore[reportUnnecessaryIsInstance] - it may come out of the environment
        raise ValueError("a secret is text")
    try:
        found = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise ValueError(f"a secret is {PREFIX} and base64 after it") from None
    if len(found) < SHORTEST_KEY:
        raise ValueError(f"a secret holds at least {SHORTEST_KEY} bytes")
    return found


def sign(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """One secret's signature of a message's id, the second it was sent at, and its body."""
    signed = f"{message}.{timestamp}.".encode() + body
    return VERSION + base64.b64encode(hmac.digest(key(secret), signed, sha256)).decode()


def signatures(secrets: Iterable[str], message: str, timestamp: int, body: bytes) -> str:
    """Those of all secrets that count, as one header."""
    return " ".join(sign(secret, message, timestamp, body) for secret in secrets)


def fits(header: str, secrets: Iterable[str], message: str, timestamp: int, body: bytes) -> bool:
    """Whether one of the header's signatures is one of these secrets'. Each is compared in the same time."""
    wanted = [sign(secret, message, timestamp, body).encode() for secret in secrets]
    return any([hmac.compare_digest(given.encode(), one) for given in header.split(" ") for one in wanted])  # noqa: C419 - all of them
