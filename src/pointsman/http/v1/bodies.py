"""What requests of `/v1` hold, as JSON Schemas."""

from pointsman.engine.ledger import LONGEST_S, MOST_PLANNED
from pointsman.engine.operating import FASTEST_RELEASE, LONGEST_REASON
from pointsman.engine.ordering import MOST_NAMES
from pointsman.engine.terms import LARGEST_PRIORITY
from pointsman.http.v1 import leases, shapes
from pointsman.http.v1.parameter import LARGEST, WAIT_S
from pointsman.http.v1.shapes import OBJECT, closed, or_null
from pointsman.kernel.definition import KINDS, Schema
from pointsman.kernel.graph import MOST_AT_ONCE, MOST_UPSTREAMS
from pointsman.kernel.hold import MEMBERS
from pointsman.kernel.lease import LONGEST, SHORTEST
from pointsman.kernel.operation import OUTCOMES
from pointsman.types import SECOND

_PATTERN = r"^[A-Za-z0-9_]([A-Za-z0-9 ._@:/+#=()\[\]~-]*[A-Za-z0-9._@:/+#=()\[\]~-])?$"
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 128, "pattern": _PATTERN}
_REF: Schema = {"type": "string", "minLength": 2, "maxLength": 129, "pattern": f"^#{_PATTERN.removeprefix('^')}"}
COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": LARGEST}

NAMES = or_null({"type": "array", "items": NAME, "maxItems": MOST_NAMES})
_ASKED: dict[str, Schema] = {
    "machine": or_null({"type": "string", "maxLength": 128}),
    "fields": OBJECT,
    "priority": {"type": "integer", "minimum": -LARGEST_PRIORITY, "maximum": LARGEST_PRIORITY},
    "tags": NAMES,
    "needs": NAMES,
    "run_at": or_null(shapes.TIME),
    "dedupe_key": or_null(NAME),
}
_MAY_LACK = ("machine", "priority", "tags", "needs", "run_at", "dedupe_key", "blocked_by")
_UPSTREAM = closed({"task": shapes.ID, "on_failure": shapes.FATE}, optional=["on_failure"])
_PART = closed({"task": {"anyOf": [shapes.ID, _REF]}, "on_failure": shapes.FATE}, optional=["on_failure"])
CREATION = closed(
    {
        **_ASKED,
        "blocked_by": {"type": "array", "items": _UPSTREAM, "maxItems": MOST_UPSTREAMS},
        "parent": or_null(shapes.ID),
        "epoch": or_null(COUNT),
    },
    optional=[*_MAY_LACK, "parent", "epoch"],
)
_ITEM = closed(
    {"ref": or_null(NAME), **_ASKED, "blocked_by": {"type": "array", "items": _PART, "maxItems": MOST_UPSTREAMS}},
    optional=["ref", *_MAY_LACK],
)
BATCH = closed(
    {
        "tasks": {"type": "array", "items": _ITEM, "minItems": 1, "maxItems": MOST_AT_ONCE},
        "parent": or_null(shapes.ID),
        "epoch": or_null(COUNT),
        "join": or_null(
            {"anyOf": [{"type": "string", "enum": ["all", "any"]}, {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE}]}
        ),
    },
    optional=["parent", "epoch", "join"],
)
PROPOSED = closed(
    {"args": OBJECT, "epoch": or_null(COUNT), "digest": or_null({"type": "string", "maxLength": 128})},
    optional=["args", "epoch", "digest"],
)
_LEASE_S = or_null({"type": "number", "minimum": SHORTEST / SECOND, "maximum": LONGEST / SECOND})
_REASON: Schema = {"type": "string", "maxLength": 4_000}
CLAIM = closed(
    {
        "machine": or_null({"type": "string", "maxLength": 128}),
        "states": or_null({"type": "array", "items": {"type": "string", "maxLength": 128}, "minItems": 1, "maxItems": leases.MOST}),
        "tags": NAMES,
        "capabilities": NAMES,
        "limit": {"type": "integer", "minimum": 1},
        "lease_s": _LEASE_S,
        "wait_s": {"type": "number", "minimum": 0, "maximum": WAIT_S},
    },
    optional=["machine", "states", "tags", "capabilities", "limit", "lease_s", "wait_s"],
)
RENEWAL = closed({"epoch": COUNT, "lease_s": _LEASE_S}, optional=["lease_s"])
RELEASE = closed(
    {"epoch": COUNT, "reason": or_null(_REASON), "counts": {"type": "boolean"}, "error": {"type": "boolean"}},
    optional=["reason", "counts", "error"],
)
_WHY: Schema = {"type": "string", "maxLength": 4_000, "pattern": r"\S"}
CANCELLING = closed({"reason": _WHY, "cascade": {"type": "boolean"}, "epoch": or_null(COUNT)}, optional=["cascade", "epoch"])
UNPARKING = closed({"reason": _WHY})
_WHEN = or_null({"type": "string", "format": "date-time"})
HELD = closed(
    {
        "match": {**closed(dict.fromkeys(MEMBERS, NAME), optional=MEMBERS), "minProperties": 1},
        "from": _WHEN,
        "until": _WHEN,
        "reason": {"type": "string", "minLength": 1, "maxLength": LONGEST_REASON},
        "release_per_s": or_null({"type": "integer", "minimum": 1, "maximum": FASTEST_RELEASE}),
    },
    optional=["from", "until", "release_per_s"],
)

_KIND = or_null({"type": "string", "enum": [*KINDS]})
BEGINNING = closed(
    {
        "epoch": COUNT,
        "name": NAME,
        "effect": or_null({"type": "string", "maxLength": 128}),
        "kind": _KIND,
        "request": {},
        "timeout_s": or_null({"type": "number", "minimum": 1, "maximum": LONGEST_S}),
        "settle_s": or_null({"type": "number", "minimum": 0, "maximum": LONGEST_S}),
        "compensates": or_null(shapes.ID),
    },
    optional=["effect", "kind", "request", "timeout_s", "settle_s", "compensates"],
)
OUTCOME = closed(
    {"epoch": or_null(COUNT), "status": {"type": "string", "enum": [*OUTCOMES]}, "result": {}, "note": or_null(_REASON)},
    optional=["epoch", "result", "note"],
)
CHECKPOINT = closed(
    {
        "epoch": COUNT,
        "data": {},
        "plan": {"type": "array", "items": closed({"name": NAME, "kind": _KIND}, optional=["kind"]), "maxItems": MOST_PLANNED},
        "progress": {},
        "expect": or_null(COUNT),
    },
    optional=["plan", "progress", "expect"],
)
