"""The flat service as data: which path is which event of which machine, and what it says when the answer is no.

A machine declares a `Flat`; `endpoints.py` serves any of them and knows none by name. `TASKS` is the built-in
machine's, with the eleven paths that existing clients call.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "task", "caller", "digest"]
Verb = Literal["create", "claim", "propose"]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a flat body: a string. A `task` is an id, a `caller` the name of whoever asks, a `digest` what the
    caller was shown; a `text` sets the machine's field called `sets`. One that is not required may be absent or null,
    which is the same."""

    name: str
    kind: Kind = "text"
    required: bool = True
    sets: str | None = None


@dataclass(frozen=True, slots=True)
class Post:
    """A path that calls one verb of the engine. `callers` is the kind of principal that a named caller is; whoever
    gives no name is anonymous. `conflict` is the detail of a 409 for the codes in `CONFLICTS`."""

    path: str
    verb: Verb
    conflict: str
    members: tuple[Member, ...]
    event: str = ""
    callers: str = "agent"
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """A path that lists tasks. `inbox` names the query parameter that says whose."""

    path: str
    columns: tuple[str, ...]
    order: Literal["created_at", "updated_at"]
    state: str | None = None
    open: bool | None = None
    inbox: str | None = None
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Flat:
    """A machine's flat paths. `evidence` is the check that `passed` and `evidence` report."""

    machine: str
    evidence: str
    posts: tuple[Post, ...] = ()
    rows: tuple[Rows, ...] = ()


CONFLICTS = frozenset({"unknown_task", "wrong_state", "already_decided", "not_owner", "lease_lost", "already_claimed", "nothing_to_claim"})
"""Codes that a flat path answers with its own sentence. Any other refusal answers with its own detail."""

_TASK = Member("task_id", "task")
_AGENT = Member("agent_id", "caller")
_DECISION = (
    _TASK,
    Member("note", required=False, sets="review_note"),
    Member("reviewer", "caller", required=False),
    Member("digest", "digest", required=False),
)

TASKS = Flat(
    machine="tasks",
    evidence="topic",
    posts=(
        Post(
            "/enqueue",
            "create",
            "not enqueued",
            (Member("title", sets="title"), Member("brief", sets="brief")),
            summary="Put a new task in the queue",
        ),
        Post(
            "/claim",
            "claim",
            "no queued task, or it was already claimed",
            (_AGENT, Member("task_id", "task", required=False)),
            summary="Take one task, or the oldest that is queued",
        ),
        Post(
            "/start-draft",
            "propose",
            "not your task, or not claimed or drafting",
            (_TASK, _AGENT),
            event="start_draft",
            summary="Begin, or begin again, to draft",
        ),
        Post(
            "/request-approval",
            "propose",
            "not your task, or not drafting",
            (_TASK, _AGENT, Member("draft", sets="draft")),
            event="request_approval",
            summary="Hand in a draft; it is kept, and goes to approval when its evidence passes",
        ),
        Post(
            "/approve",
            "propose",
            "not awaiting approval",
            _DECISION,
            event="approve",
            callers="person",
            summary="Approve the draft",
        ),
        Post(
            "/reject",
            "propose",
            "not awaiting approval",
            _DECISION,
            event="reject",
            callers="person",
            summary="Send the draft back to its owner",
        ),
        Post(
            "/complete",
            "propose",
            "not approved, or not your task",
            (_TASK, _AGENT),
            event="complete",
            summary="Finish an approved task",
        ),
        Post(
            "/fail",
            "propose",
            "already done or failed",
            (_TASK, Member("note", required=False, sets="review_note"), Member("agent_id", "caller", required=False)),
            event="fail",
            summary="Give a task up",
        ),
    ),
    rows=(
        Rows(
            "/open",
            ("id", "title", "state", "owner", "review_note"),
            "updated_at",
            open=True,
            summary="Every task that is not done or failed, the longest untouched first",
        ),
        Rows(
            "/inbox",
            ("id", "title", "brief", "state", "review_note"),
            "created_at",
            inbox="agent_id",
            summary="What waits in the queue and what this agent holds, oldest first",
        ),
        Rows(
            "/approvals",
            ("id", "title", "draft", "owner", "evidence"),
            "updated_at",
            state="awaiting_approval",
            summary="Every draft that awaits a decision, the longest waiting first",
        ),
    ),
)
