"""Signatures of messages, as Standard Webhooks spells them (https://www.standardwebhooks.com, version 1)."""

import base64
import hmac
from collections.abc import Iterable
from hashlib import sha256

PREFIX = "whsec_"
VERSION = "v1,"


def sign(secret: str, message: str, timestamp: int, body: bytes) -> str:
    """One secret's signature of a message's id, the second it was sent at, and its body."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message}.{timestamp}.".encode() + body
    return VERSION + base64.b64encode(hmac.digest(key, signed, sha256)).decode()


def signatures(secrets: Iterable[str], message: str, timestamp: int, body: bytes) -> str:
    """Those of all secrets that count, as one header."""
    return " ".join(sign(secret, message, timestamp, body) for secret in secrets)


def fits(header: str, secrets: Iterable[str], message: str, timestamp: int, body: bytes) -> bool:
    """Whether one of the header's signatures is one of these secrets'. Each is compared in the same time."""
    wanted = [sign(secret, message, timestamp, body).encode() for secret in secrets]
    return any([hmac.compare_digest(given.encode(), one) for given in header.split(" ") for one in wanted])  # noqa: C419 - all of them
