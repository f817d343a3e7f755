"""A flat body against its declared members: strict types, nothing missing, nothing more. What values mean is judged
by the engine; here is only what JSON cannot say by itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pointsman.errors import invalid
from pointsman.http.caller import faults as caller_faults
from pointsman.http.flat import Member, Post
from pointsman.kernel import ingest
from pointsman.kernel.ingest import Faults
from pointsman.types import Fields, task_id


@dataclass(frozen=True, slots=True)
class Call:
    """A flat body, read. `args` are the machine's fields; `caller` is None for one without a name."""

    task: str | None = None
    caller: str | None = None
    digest: str | None = None
    args: Fields = field(default_factory=Fields)


def read(post: Post, body: bytes) -> Call:
    """Raises Refused `malformed` or `invalid`, with every fault."""
    sent = ingest.parse(body)
    if not isinstance(sent, dict):
        raise invalid(("", "must be an object"))
    if found := list(faults(post, sent)):
        raise invalid(*found)
    return _call(post, sent)


def faults(post: Post, sent: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path, message) for each fault. An unknown member is not named: that would echo the input."""
    for member in post.members:
        yield from _member(member, sent.get(member.name))
    if sent.keys() - {member.name for member in post.members}:
        yield "", "takes no members but " + ", ".join(member.name for member in post.members)


def _member(member: Member, value: Any) -> Faults:
    if value is None:
        return [(member.name, "is required")] if member.required else []
    if type(value) is not str:
        return [(member.name, "must be text")]
    return _JUDGES[member.kind](value, member.name)


def _task(value: str, path: str) -> Faults:
    try:
        task_id(value)
    except ValueError as fault:
        return [(path, str(fault))]
    return []


_JUDGES: Mapping[str, Callable[[str, str], Faults]] = {
    "text": ingest.faults,
    "digest": ingest.faults,
    "caller": caller_faults,
    "task": _task,
}


def _call(post: Post, sent: Mapping[str, Any]) -> Call:
    by_kind = {member.kind: sent.get(member.name) for member in post.members if not member.sets}
    args = {member.sets: sent[member.name] for member in post.members if member.sets and sent.get(member.name) is not None}
    return Call(by_kind.get("task"), by_kind.get("caller"), by_kind.get("digest"), args)
