"""A head of the feed in a file of its own: kept elsewhere, it shows later that nothing was cut off or replaced."""

import os
from pathlib import Path
from typing import Any

from pointsman.errors import Refused, invalid
from pointsman.kernel.chain import canonical
from pointsman.kernel.ingest import parse
from pointsman.types import Json

FORMAT = 1
HASH_LENGTH = 64


def read(path: Path) -> dict[str, Any]:
    """The head that `write` kept. Whatever else the file holds is told, not guessed at."""
    try:
        head = parse(path.read_bytes())
    except OSError as exc:
        raise invalid(("--head", f"cannot read {path}: {exc.strerror}")) from exc
    except Refused as exc:
        raise invalid(("--head", f"{path} is not a head that --write-head wrote: {exc.detail}")) from exc
    if not isinstance(head, dict) or not _fits(head):
        raise invalid(("--head", f"{path} is not a head that --write-head wrote"))
    return head


def _fits(head: dict[str, Any]) -> bool:
    seq, hash_ = head.get("seq"), head.get("hash")
    return head.get("format") == FORMAT and type(seq) is int and seq >= 0 and isinstance(hash_, str) and len(hash_) == HASH_LENGTH


def write(path: Path, head: dict[str, Json]) -> None:
    """In one step, so that a head that is there is replaced by a whole one or not at all."""
    partial = path.with_name(path.name + "-partial")
    try:
        partial.write_text(canonical(head) + "\n", encoding="utf-8")
        os.replace(partial, path)
    except OSError as exc:
        raise invalid(("--write-head", f"cannot write {path}: {exc.strerror}")) from exc
