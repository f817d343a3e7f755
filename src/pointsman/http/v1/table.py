"""Every operation of `/v1`."""

from typing import Any

from pointsman.http.v1 import feed, holds, leases, machines, operations, past, shapes, tasks
from pointsman.http.v1.bodies import (
    BATCH,
    BEGINNING,
    CANCELLING,
    CHECKPOINT,
    CLAIM,
    COUNT,
    CREATION,
    HELD,
    NAME,
    OUTCOME,
    PROPOSED,
    RELEASE,
    RENEWAL,
    UNPARKING,
)
from pointsman.http.v1.operation import Answer, Call, Operation
from pointsman.http.v1.parameter import (
    LARGEST_PAGE,
    PAGE,
    WAIT_S,
    Parameter,
    flag,
    free,
    if_match,
    limit,
    moment,
    name,
    one_of,
    time,
    wait,
    who,
    whole,
)
from pointsman.http.v1.shapes import TEXT, closed, many, or_null, ref
from pointsman.kernel.definition import Schema
from pointsman.types import task_id

_FLAG: Schema = {"type": "boolean", "default": False}

AS = Parameter("Pointsman-As", who, NAME, "Who asks, in open mode.", "header", many=True)
SESSION = Parameter("Pointsman-Session", name, NAME, "Tells holders under one name apart.", "header")
KEY = Parameter("Idempotency-Key", name, NAME, "The same request with the same key is done once, and answered alike.", "header")
NO_KEY = Parameter("Idempotency-Key", name, NAME, "Not taken: the same hold by the same operator is placed once.", "header")
IF_MATCH = Parameter("If-Match", if_match, {"type": "string"}, 'Refuse unless the task is at this version, as in "7".', "header")
IF_NONE_MATCH = Parameter("If-None-Match", str, {"type": "string"}, "Answer 304 to a reader who has this version.", "header", listed=True)
PREFER = Parameter(
    "Prefer", wait, {"type": "string"}, f"`wait=N`: how many seconds to wait for checks, at most {WAIT_S}.", "header", listed=True
)
LAST_ID = Parameter("Last-Event-ID", whole, COUNT, "The last feed number that came; it goes before `after`.", "header")

TASK_ID = Parameter("id", task_id, shapes.ID, "The task's id.", "path", required=True)
PROPOSAL_ID = Parameter("id", task_id, shapes.ID, "The proposal's id.", "path", required=True)
OPERATION_ID = Parameter("id", task_id, shapes.ID, "The operation's id.", "path", required=True)
HOLD_ID = Parameter("id", task_id, shapes.ID, "The hold's id.", "path", required=True)
EVENT = Parameter("event", name, NAME, "The event's name.", "path", required=True)
MACHINE = Parameter("name", name, NAME, "The machine's name.", "path", required=True)

_LIMIT_SCHEMA: Schema = {"type": "integer", "minimum": 1, "default": PAGE}
LIMIT = Parameter("limit", limit, _LIMIT_SCHEMA, f"How many; over {LARGEST_PAGE} means {LARGEST_PAGE}.", default=PAGE)
CURSOR = Parameter("cursor", free, TEXT, "`next` of the page before.")
AT = Parameter("at", moment, TEXT, "A time, or a feed number as in #57 (the # spelled %23): as it was then.")
DRY = Parameter("dry_run", flag, _FLAG, "Say what would be decided; write nothing and run no check.", default=False)


def _query(name: str, read: Any, schema: Schema, said: str, **more: Any) -> Parameter:
    return Parameter(name, read, schema, said, **more)


LISTING = (
    _query("machine", name, NAME, "Tasks of this machine."),
    _query("state", name, NAME, "Tasks in this state; several are several states.", many=True),
    _query("owner", name, NAME, "Tasks that this one owns."),
    _query("tag", name, NAME, "Tasks that have this tag."),
    _query("open", flag, _FLAG, "No task in a final state.", default=False),
    _query("q", free, TEXT, "Words that all occur in text fields, case ignored."),
    _query(
        "order",
        one_of("created_at", "updated_at", "priority"),
        {"type": "string", "enum": ["created_at", "updated_at", "priority"], "default": "created_at"},
        "The order, ties by id; the past is in order of creation.",
        default="created_at",
    ),
    AT,
    LIMIT,
    CURSOR,
)
AUDITED = (
    _query("actor", name, NAME, "Entries by this one."),
    _query("event", name, NAME, "Entries of this event."),
    _query("from", time, shapes.TIME, "Entries at this time or later."),
    _query("to", time, shapes.TIME, "Entries before this time."),
    LIMIT,
    CURSOR,
)
VERSION = _query("version", whole, COUNT, "The task as it was at this version.")
FROM = _query("from", whole, COUNT, "A version.", required=True)
TO = _query("to", whole, COUNT, "Another version.", required=True)
AFTER = _query("after", whole, COUNT, "Begin behind this feed number.", default=0)

ETAG = {"ETag": "The version as a strong entity tag."}
REPLAYED = {"Idempotent-Replayed": "`true` when this is the first answer to the same request."}
LOCATION = {"Location": "Where it is found."}
_PAGED = "A page; `next` is the cursor of the page after it"
_NEXT = or_null(TEXT)
_BOARD = Answer(_PAGED, closed({"tasks": many(ref("Task")), "next": _NEXT, "as_of": shapes.WHOLE}))
_ENTRIES = Answer(_PAGED, closed({"entries": many(ref("Entry")), "next": _NEXT}))
_EVIDENCE = Answer("The evidence", closed({"evidence": shapes.by_name(ref("Evidence"))}))
_DECISIONS = Answer("The decisions, oldest first", closed({"decisions": many(ref("Decision"))}))
_DIFFERENCE = Answer("The difference", ref("Difference"))
_REPORT = Answer("The report", ref("Report"))
_PROPOSAL = Answer("The proposal", ref("Proposal"))
_LATER = Answer("A check is still running; the proposal goes on", ref("Proposal"), LOCATION | REPLAYED)
_HOLDS = Answer(_PAGED, closed({"holds": many(ref("Hold")), "next": _NEXT}))
_OPERATION = Answer("The operation, as it stands", ref("Operation"), REPLAYED)
_OPERATIONS = Answer(_PAGED, closed({"operations": many(ref("Operation")), "next": _NEXT}))
_RESUMED = Answer("The durable facts", ref("Resumed"))
_MACHINES = Answer("The machines", closed({"machines": many(ref("Machine"))}))
_MACHINE = Answer("The machine", ref("Machine"))
_TAKEN = Answer("The tasks; none when nothing waits", closed({"tasks": many(ref("Task"))}), REPLAYED)
_EVENTS = Answer("Events `entry` and `reset`", TEXT, media_type="text/event-stream")

OF_A_CREATION = (
    *("identity_mismatch", "unknown_machine", "unknown_task", "idempotency_conflict", "dedupe_conflict", "machine_unavailable"),
    *("not_owner", "lease_lost", "wrong_state", "limit_reached", "guard_failed"),
)
"""What making tasks can be answered."""

REFUSALS = (
    *("idempotency_conflict", "identity_mismatch", "role_missing", "self_approval", "stale_version", "stale_content"),
    *("already_decided", "wrong_state", "not_owner", "lease_lost", "already_claimed", "held", "machine_unavailable", "guard_failed"),
    *("evidence_failed", "evidence_pending", "unknown_task", "unknown_event", "parked", "blocked", "limit_reached"),
)
"""What asking for an event can be answered."""

OF_A_CLAIM = (
    *("idempotency_conflict", "identity_mismatch", "role_missing", "self_approval", "wrong_state", "already_claimed"),
    *("machine_unavailable", "guard_failed", "evidence_pending", "unknown_machine", "unknown_event"),
)
"""What taking the next task can be answered."""

OF_AN_OWNER = ("identity_mismatch", "unknown_task", "not_owner", "lease_lost", "wrong_state", "machine_unavailable")
OF_THE_LEDGER = ("identity_mismatch", "unknown_task", "not_owner", "lease_lost", "wrong_state")
OF_A_TASK = ("unknown_task",)
OF_THE_PAST = ("unknown_task", "pruned")
OF_A_PROPOSAL = ("unknown_proposal",)


def _read(
    path: str,
    call: Call,
    summary: str,
    answer: Answer,
    *parameters: Parameter,
    codes: tuple[str, ...] = (),
) -> Operation:
    """An operation that only looks."""
    return Operation("GET", path, call, summary, (AS, SESSION, *parameters), {200: answer}, ("identity_mismatch", *codes))


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        tasks.TASKS,
        tasks.create,
        "Create a task",
        (AS, SESSION, KEY),
        {
            200: Answer("The task that is there under this dedupe_key", ref("Task"), ETAG | LOCATION),
            201: Answer("The task", ref("Task"), ETAG | LOCATION | REPLAYED),
        },
        OF_A_CREATION,
        CREATION,
        asks=True,
    ),
    Operation(
        "POST",
        "/v1/tasks/batch",
        tasks.batch,
        "Create many tasks, all or none",
        (AS, SESSION, KEY),
        {201: Answer("The tasks, in the order of the request", closed({"tasks": many(ref("Task"))}), REPLAYED)},
        OF_A_CREATION,
        BATCH,
        asks=True,
    ),
    _read(tasks.TASKS, tasks.listing, "List tasks, as they are or were", _BOARD, *LISTING, codes=("unknown_machine", "pruned")),
    Operation(
        "GET",
        "/v1/tasks/{id}",
        tasks.get,
        "One task, as it is or was",
        (AS, SESSION, TASK_ID, VERSION, AT, IF_NONE_MATCH),
        {200: Answer("The task", ref("Task"), ETAG), 304: Answer("The reader has this version", None, ETAG)},
        ("identity_mismatch", *OF_THE_PAST),
    ),
    Operation(
        "POST",
        "/v1/tasks/{id}/events/{event}",
        tasks.propose,
        "Propose an event",
        (AS, SESSION, TASK_ID, EVENT, KEY, IF_MATCH, PREFER, DRY),
        {200: Answer("The task after it", ref("Task"), ETAG | REPLAYED), 202: _LATER},
        REFUSALS,
        PROPOSED,
        asks=True,
    ),
    Operation(
        "POST",
        "/v1/tasks/{id}/cancel",
        tasks.cancel,
        "Take no further step of a task",
        (AS, SESSION, TASK_ID, KEY, IF_MATCH),
        {200: Answer("The cancel report", ref("Cancelled"), REPLAYED)},
        ("identity_mismatch", "unknown_task", "idempotency_conflict", "stale_version", "wrong_state", "not_owner", "lease_lost"),
        CANCELLING,
        asks=True,
    ),
    Operation(
        "POST",
        "/v1/tasks/{id}/unpark",
        tasks.unpark,
        "Put a parked task back into work",
        (AS, SESSION, TASK_ID, KEY, IF_MATCH),
        {200: Answer("The task", ref("Task"), ETAG | REPLAYED)},
        (
            "identity_mismatch",
            "unknown_task",
            "idempotency_conflict",
            "role_missing",
            "stale_version",
            "wrong_state",
            "machine_unavailable",
        ),
        UNPARKING,
        asks=True,
    ),
    Operation(
        "POST",
        leases.CLAIMS,
        leases.claim,
        "Take tasks that wait",
        (AS, SESSION, KEY),
        {200: _TAKEN},
        OF_A_CLAIM,
        CLAIM,
        asks=True,
    ),
    Operation(
        "POST",
        leases.LEASE,
        leases.renew,
        "Hold a task for longer",
        (AS, SESSION, TASK_ID),
        {200: Answer("The task with its new lease", ref("Task"), ETAG)},
        OF_AN_OWNER,
        RENEWAL,
    ),
    Operation(
        "DELETE",
        leases.LEASE,
        leases.release,
        "Give a task back",
        (AS, SESSION, TASK_ID, KEY),
        {200: Answer("The task as it was left", ref("Task"), ETAG | REPLAYED)},
        (*OF_AN_OWNER, "idempotency_conflict"),
        RELEASE,
        asks=True,
    ),
    Operation(
        "POST",
        operations.OPERATIONS,
        operations.begin,
        "Write down an operation before it happens",
        (AS, SESSION, TASK_ID, KEY),
        {
            200: Answer("The operation that is there under this name", ref("Operation"), REPLAYED),
            201: Answer("The operation", ref("Operation"), REPLAYED),
        },
        (*OF_THE_LEDGER, "idempotency_conflict", "operation_in_doubt", "approvals_missing", "pruned"),
        BEGINNING,
        asks=True,
    ),
    _read(
        operations.OPERATIONS,
        operations.listing,
        "A task's operations, as they stand",
        _OPERATIONS,
        TASK_ID,
        LIMIT,
        CURSOR,
        codes=OF_A_TASK,
    ),
    Operation(
        "POST",
        operations.OUTCOME,
        operations.settle,
        "Say what came of an operation",
        (AS, SESSION, OPERATION_ID, KEY),
        {200: _OPERATION},
        (*OF_THE_LEDGER, "unknown_operation", "idempotency_conflict", "operation_in_doubt", "pruned"),
        OUTCOME,
        asks=True,
    ),
    Operation(
        "PUT",
        operations.CHECKPOINT,
        operations.checkpoint,
        "Keep how far the owner is",
        (AS, SESSION, TASK_ID),
        {200: Answer("Where it stands", ref("Checkpoint"))},
        (*OF_THE_LEDGER, "stale_version"),
        CHECKPOINT,
    ),
    _read("/v1/tasks/{id}/resume", operations.resume, "All that is known of how far a task is", _RESUMED, TASK_ID, codes=OF_A_TASK),
    _read(past.HISTORY, past.history, "A task's history, oldest first", _ENTRIES, TASK_ID, LIMIT, CURSOR, codes=OF_A_TASK),
    _read("/v1/tasks/{id}/evidence", past.evidence, "A task's evidence by check", _EVIDENCE, TASK_ID, codes=OF_A_TASK),
    _read("/v1/tasks/{id}/decisions", past.decisions, "Every decision on a task", _DECISIONS, TASK_ID, codes=OF_A_TASK),
    _read("/v1/tasks/{id}/diff", past.difference, "What moved between versions", _DIFFERENCE, TASK_ID, FROM, TO, codes=OF_THE_PAST),
    _read("/v1/tasks/{id}/report", past.report, "A task's facts, for an auditor", _REPORT, TASK_ID, codes=OF_A_TASK),
    _read("/v1/proposals/{id}", tasks.proposal, "A proposal whose checks had to run", _PROPOSAL, PROPOSAL_ID, codes=OF_A_PROPOSAL),
    _read(tasks.APPROVALS, tasks.approvals, "What this caller may decide now", _BOARD, LIMIT, CURSOR),
    Operation(
        "POST",
        holds.HOLDS,
        holds.place,
        "Stop events on what matches",
        (AS, SESSION, NO_KEY),
        {201: Answer("The hold", ref("Hold"))},
        ("identity_mismatch", "role_missing", "unknown_machine"),
        HELD,
    ),
    _read(holds.HOLDS, holds.listing, "Every hold, oldest first, also those that ended", _HOLDS, LIMIT, CURSOR),
    Operation(
        "DELETE",
        holds.HOLD,
        holds.lift,
        "End a hold",
        (AS, SESSION, HOLD_ID),
        {200: Answer("The hold, as it ended", ref("Hold"))},
        ("identity_mismatch", "role_missing", "unknown_hold"),
    ),
    _read("/v1/feed", feed.read, "Every entry, in feed order, as server-sent events", _EVENTS, AFTER, LAST_ID),
    _read(past.AUDIT, past.audit, "Entries of all tasks, newest first", _ENTRIES, *AUDITED),
    _read("/v1/machines", machines.listing, "The machines served here", _MACHINES),
    _read("/v1/machines/{name}", machines.get, "One machine", _MACHINE, MACHINE, codes=("unknown_machine",)),
)
