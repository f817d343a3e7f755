"""What a check or guard answers."""

from dataclasses import dataclass

from pointsman.types import Json


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes or no with its reason; `detail` is any JSON worth keeping as evidence."""

    ok: bool
    reason: str = ""
    detail: Json = None


class NoVerdict(Exception):
    """Raised by a check that can say neither yes nor no. Its evidence is an error, with `detail`."""

    def __init__(self, reason: str, detail: Json = None):
        super().__init__(reason)
        self.detail = detail
