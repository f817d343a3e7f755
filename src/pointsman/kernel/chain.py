"""Canonical text, digests and the hash chain.

One value has one text: keys sorted by code point, no spaces, UTF-8, no NaN; floats as Python's shortest repr
(ECMA-262 `Number::toString` digits). Every hash is SHA-256 over a domain tag, a NUL, and that text, so a digest of
one kind can never pass for another. Source of the scheme: RFC 8785's idea, without its UTF-16 key order.
"""

from hashlib import sha256
from json import JSONDecoder, JSONEncoder, encoder
from typing import Any, NamedTuple

from pointsman.types import Instant

FORMAT = 1
GENESIS = "0" * 64

_plain = JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_native: Any = getattr(encoder, "c_make_encoder", None)
"""What `JSONEncoder.encode` builds anew for every call, built once; an interpreter without it is only slower."""
_chunks = _native and _native(None, _plain.default, encoder.encode_basestring, None, ":", ",", True, False, False)
_decode = JSONDecoder().raw_decode


def canonical(value: Any) -> str:
    """The one JSON text of a value. NaN and infinities are a ValueError."""
    return "".join(_chunks(value, 0)) if _chunks else _plain.encode(value)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: 1, 1.0 and true are three values."""
    return one == other and (isinstance(one, str | None) or canonical(one) == canonical(other))


def parse(text: str) -> Any:
    """Read back what `canonical` wrote."""
    return _decode(text)[0]


def digest(domain: str, value: Any) -> str:
    """SHA-256 (hex) of a JSON value within a domain such as "content" or "inputs"."""
    return text_digest(domain, canonical(value))


def text_digest(domain: str, text: str) -> str:
    return sha256(f"pointsman:{domain}\0{text}".encode()).hexdigest()


def payload_digest(nonce: str, body: str) -> str:
    """The nonce keeps a pruned or redacted payload from being guessed from its digest."""
    return text_digest("payload", f"{nonce}\0{body}")


class Link(NamedTuple):
    """The covered columns of one history entry, in hash order."""

    task: str
    version: int
    at: Instant
    kind: str
    event: str
    from_state: str | None
    to_state: str
    by: str
    session: str | None
    door: str
    auth: str
    epoch: int
    payload_digest: str
    request_key: str
    request_digest: str
    format: int
    previous: str


def link_hash(link: Link) -> str:
    """The hash of an entry: over every covered column and the hash of the entry before it."""
    return digest("entry", link)
