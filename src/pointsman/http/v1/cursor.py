"""Cursors: where a page ended, bound to the list that it is a page of.

A cursor is opaque and validated: it carries a digest of its position and of the parameters that choose and order the
list. One that was altered, or that comes from another list, is refused. It is no secret, and gives nobody more than the
list itself would: filters hold on every page.
"""

import binascii
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from pointsman.errors import Refused, invalid
from pointsman.kernel.chain import digest

LONGEST = 512
SEAL = 24
_PAGING = ("limit", "cursor", "Pointsman-As", "Pointsman-Session", "If-None-Match")


def write(path: str, given: Mapping[str, Any], position: list[Any]) -> str:
    text = json.dumps(position, separators=(",", ":"))
    return urlsafe_b64encode(f"{_seal(path, given, position)}{text}".encode()).decode().rstrip("=")


def read(path: str, given: Mapping[str, Any]) -> list[Any] | None:
    """The position of the cursor that was given; None without one."""
    cursor: str | None = given["cursor"]
    if cursor is None:
        return None
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        position: list[Any] = json.loads(text[SEAL:])
    except (ValueError, binascii.Error, RecursionError):
        raise _foreign() from None
    if not isinstance(position, list) or write(path, given, position) != cursor:
        raise _foreign()
    return position


def _foreign() -> Refused:
    return invalid(("query.cursor", "is not a cursor that this list gave"))


def _seal(path: str, given: Mapping[str, Any], position: list[Any]) -> str:
    chosen = {name: value for name, value in given.items() if name not in _PAGING}
    return digest("cursor", [path, chosen, position])[:SEAL]
