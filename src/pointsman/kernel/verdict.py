"""What a check or guard answers."""

from dataclasses import dataclass

from pointsman.types import Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no with its reason; `detail` is any JSON worth keeping as evidence."""

    ok: bool
    reason: str = ""
    detail: Json = None
