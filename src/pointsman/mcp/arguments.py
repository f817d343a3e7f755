"""The arguments that tools share, and how a connection bears on them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.engine.ordering import MOST_NAMES
from pointsman.kernel.definition import Definition, Event, Schema
from pointsman.kernel.lease import LONGEST, SHORTEST
from pointsman.kernel.rules import Principal, admits, mentions
from pointsman.mcp import shape
from pointsman.mcp.shape import Properties, count, one_of, optional, said
from pointsman.types import SECOND

PAGE, LARGEST_PAGE = 20, 100
WAIT_S, LONGEST_WAIT_S = 25, 50
VIEWS = ("open", "mine", "all")


@dataclass(frozen=True, slots=True)
class Seating:
    """What a connection says by itself: who calls (`named`), and epoch and session of what it acquired (`holds`)."""

    named: bool
    holds: bool


TASK_ID = said(shape.ID, "The task's id.")
EPOCH = said(count(0), "The epoch that claim_task returned to you: it shows that you still own the task.")
DIGEST = said({"type": "string", "minLength": 1, "maxLength": 128}, "The digest of the content you read in get_task and now decide on.")
EXPECT = optional(count(1), "Refuse unless the task is at this version.")
KEY = optional(shape.NAME, "Choose one per call; send the same one again when you repeat a call whose answer you did not get.")
SESSION = optional(shape.NAME, "The session that claim_task returned to you.")
LEASE_S = optional(
    {"type": "number", "minimum": SHORTEST / SECOND, "maximum": LONGEST / SECOND},
    "Hold it for so many seconds without a call of yours, in place of the usual time.",
)
NAMES = {"type": "array", "items": shape.NAME, "maxItems": MOST_NAMES}
RUN_AT = {"type": "string", "minLength": 1, "maxLength": 40}
AS = said(shape.NAME, "Your name, always the same, such as worker-1.")


def named_by(seating: Seating, *, required: bool) -> Properties:
    if seating.named:
        return {}
    return {"as": AS if required else optional(AS)}


def machine(machines: Mapping[str, Definition], *, required: bool) -> Properties:
    choice = said(one_of(machines), "The kind of task.")
    return {"machine": choice if required else optional(choice)}


def needed(properties: Properties) -> list[str]:
    """The arguments that may not be null are those that must be there."""
    return [name for name, schema in properties.items() if {"type": "null"} not in schema.get("anyOf", ())]


def strict(properties: Properties) -> Schema:
    return shape.arguments(properties, needed(properties))


def owning(event: Event, seating: Seating) -> Properties:
    """Epoch and session of whoever may qualify as owner. The epoch is required of whoever has no other right."""
    if not mentions(event.by, "owner"):
        return {}
    only = not any(admits(event.by, Principal("-", kind), is_owner=False, is_contributor=False) for kind in ("agent", "person"))
    return held(seating, required=only)


def held(seating: Seating, *, required: bool) -> Properties:
    """What shows that a task is the caller's; a connection that remembers it need not be told."""
    if seating.holds:
        return {"epoch": optional(EPOCH)}
    return {"epoch": EPOCH if required else optional(EPOCH), "session": SESSION}


def placed(fields: Properties, beside: Properties) -> dict[str, str]:
    """The argument for each field: its name, unless another argument has that name."""
    placed: dict[str, str] = {}
    for name in fields:
        argument = name
        while argument in beside or (argument != name and argument in fields):
            argument = f"field_{argument}"
        placed[argument] = name
    return placed
