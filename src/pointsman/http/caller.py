"""Who asks, in open mode: whoever it says it is, in the body or in `Pointsman-As`, with every role."""

from collections.abc import Sequence

from pointsman.errors import Refusal, Refused, invalid
from pointsman.kernel import ingest
from pointsman.kernel.ingest import Faults
from pointsman.kernel.rules import ANONYMOUS, Principal


def faults(name: str, path: str) -> Faults:
    """What keeps a text from being a caller's name."""
    if name.casefold() == ANONYMOUS:
        return [(path, "is reserved for callers without a name")]
    return ingest.identifier(name, path)


def caller(in_body: str | None, in_header: Sequence[str], kind: str) -> Principal:
    """The principal of a request. Two names that differ are refused: nobody can say which is meant."""
    names = {*in_header, *([in_body] if in_body is not None else [])}
    if len(names) > 1:
        raise Refused(Refusal("identity_mismatch", "the request names its caller in two ways"))
    if not names:
        return Principal(ANONYMOUS, kind="person", auth="open")
    if found := faults(name := names.pop(), "header.Pointsman-As"):
        raise invalid(*found)
    return Principal(name, kind=kind, auth="open")
