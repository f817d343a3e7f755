"""The machine that is served when no other is named: an agent writes a draft, somebody else approves it."""

from pointsman.kernel.authoring import (
    Event,
    Machine,
    NonBlank,
    State,
    Verdict,
    always,
    check,
    contributor,
    hours,
    minutes,
    note,
    optional,
    owner,
    role,
)

SHORTEST_DRAFT = 40


def mentions_topic(title: str, brief: str, draft: str | None) -> Verdict:
    """A draft must be long enough and name its subject: the title, or one of the brief's first four longer words."""
    text = (draft or "").strip()
    if not text:
        return Verdict(False, "no draft")
    if len(text) < SHORTEST_DRAFT:
        return Verdict(False, f"draft shorter than {SHORTEST_DRAFT} characters")
    longer = [word for word in brief.split() if len(word) > 3]
    subjects = [title, *longer[:4]]
    if any(subject.lower() in text.lower() for subject in subjects):
        return Verdict(True, "length and topic checks passed")
    return Verdict(False, "draft does not mention the title or the brief")


class Tasks(Machine, name="tasks"):
    """Work that an agent drafts, somebody else approves, and its owner then completes on evidence."""

    version = 1

    title: NonBlank
    brief: NonBlank
    draft: str | None = None
    review_note: str | None = note()

    queued = State(initial=True)
    claimed = State(lease=minutes(15))
    drafting = State(lease=minutes(15))
    awaiting_approval = State(deadline=hours(24), on_deadline="remind")
    approved = State(lease=hours(24), on_lapse="same")
    done = State(final=True)
    failed = State(final=True, outcome="failed")

    topic = check(mentions_topic, eager=True)

    claim = Event(queued >> claimed, approved >> approved, acquires=True)
    start_draft = Event(claimed >> drafting, drafting >> drafting, by=owner)
    request_approval = Event(drafting >> awaiting_approval, by=owner, sets="draft", requires=topic, otherwise=drafting)
    approve = Event(awaiting_approval >> approved, by=role("reviewer") & ~contributor, sets=optional("review_note", None))
    reject = Event(awaiting_approval >> drafting, by=role("reviewer") & ~contributor, sets=optional("review_note", ""))
    complete = Event(approved >> done, by=owner, requires=topic, tool="complete_task")
    fail = Event(
        (claimed | drafting | awaiting_approval | approved) >> failed,
        by=owner | role("operator"),
        sets=optional("review_note", ""),
        tool="fail_task",
    )

    proves = (always(done, approve),)
