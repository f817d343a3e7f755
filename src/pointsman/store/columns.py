"""Every column of every table is one of three things, declared here once; tests walk this table.

`covered`: hashed, so altering it is found. `derived`: recomputable from covered columns, so altering it is found by
recomputing. `volatile`: neither; nothing that matters may rest on it.

A row that history implies is missed when it is gone: entries, payloads, tasks, requests, snapshots, feed rows, machines. A dropped
judgement, proposal, hold, hook, schedule or checkpoint is not found, nor a request that what was there already answered: history does not
say that it was there. A use of a limit follows from the entry that it names, and goes when its window or its owner has gone; one that
went too early is not found. What pruning removed is not missed: `prunings` and `pruned` say what that was.

A copy of a database walks `COLUMNS` too, in this order, which is that of the foreign keys, and each table by its key in
`KEYS`.
"""

from collections.abc import Mapping

COVERED, DERIVED, VOLATILE = "covered", "derived", "volatile"


def _columns(**kinds: str) -> dict[str, str]:
    return {column: kind for kind, names in kinds.items() for column in names.split()}


COLUMNS: Mapping[str, Mapping[str, str]] = {
    "machines": _columns(covered="name version digest form functions published_at hash"),
    "tasks": _columns(
        covered="id machine machine_version state version revision digest fields owner owner_root session epoch priority evidence "
        "contributors decisions created_by created_at updated_at head since deadline run_at tags needs dedupe_key parent blocked_by "
        "attempts parked joining begun",
        derived="key final place blockers lane",
        volatile="lease_until ready wake_at",
    ),
    "entries": _columns(
        covered="version at kind event from_state to_state by session door auth epoch payload_digest request_key request_digest "
        "format previous hash",
        derived="key task",
    ),
    "payloads": _columns(covered="nonce body", derived="entry"),
    "requests": _columns(covered="known hash", derived="principal key digest task version at"),
    "judgements": _columns(covered="task check_name inputs_digest status reason detail at hash"),
    "feed": _columns(derived="seq task version entry at hash"),
    "snapshots": _columns(derived="task version body"),
    "proposals": _columns(
        covered="id task event asked principal request_key request_digest created_at status version refusal settled_at hash",
        volatile="claimed_until",
    ),
    "operations": _columns(
        covered="id name kind effect request request_digest settle compensates status epoch attempt begun_by begun_at deadline settled_by "
        "settled_at result note version hash",
        derived="task",
    ),
    "testimonies": _columns(covered="operation by epoch at status result note hash", volatile="key"),
    "checkpoints": _columns(covered="number version epoch at by data plan progress hash", derived="task"),
    "dependencies": _columns(derived="dependent upstream on_failure settled"),
    "settling": _columns(volatile="task at cascade times"),
    "holds": _columns(
        covered="id machine event state tag reason begins until release_per_s placed_by placed_at lifted_by lifted_at hash",
        derived="read_until",
        volatile="next_at",
    ),
    "hooks": _columns(
        covered="id kind url topics machine link private secrets made_by made_at disabled_at removed_by removed_at hash",
    ),
    "messages": _columns(covered="id topic task version body at hash", derived="hook", volatile="key"),
    "message_lanes": _columns(derived="hook task", volatile="next_at tries claim parked_at error"),
    "schedules": _columns(covered="machine name spec next_at hash"),
    "lanes": _columns(derived="key digest text"),
    "limit_uses": _columns(derived="task version name subject amount at ends"),
    "refusals": _columns(volatile="key at task event by door code detail"),
    "prunings": _columns(covered="number before payloads at hash"),
    "pruned": _columns(covered="version at hash", derived="task"),
    "clock": _columns(volatile="one mark uptime"),
    "unfinished": _columns(volatile="one copy source begun_at"),
}

KEYS: Mapping[str, tuple[str, ...]] = {
    "machines": ("name", "version"),
    "tasks": ("key",),
    "entries": ("key",),
    "payloads": ("entry",),
    "requests": ("principal", "key"),
    "judgements": ("task", "check_name", "inputs_digest"),
    "feed": ("seq",),
    "snapshots": ("task", "version"),
    "proposals": ("id",),
    "operations": ("id",),
    "testimonies": ("key",),
    "checkpoints": ("task",),
    "dependencies": ("dependent", "upstream"),
    "settling": ("task",),
    "holds": ("id",),
    "hooks": ("id",),
    "messages": ("key",),
    "message_lanes": ("hook", "task"),
    "schedules": ("machine", "name"),
    "lanes": ("key",),
    "limit_uses": ("task", "version", "name"),
    "refusals": ("key",),
    "prunings": ("number",),
    "pruned": ("task",),
    "clock": ("one",),
    "unfinished": ("one",),
}
"""The primary key of every table of `COLUMNS`."""

POSTGRES_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "steps": _columns(volatile="number name"),
    "unnumbered": _columns(derived="entry"),
}
"""What only a PostgreSQL database has beside them: SQLite keeps the number of its schema in the file's header, and commits
entries in the order of their keys."""
