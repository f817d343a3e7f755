"""Where a worker dies, and what that comes to: the table of docs/recovery.md, which the lab holds to.

Each line is one point of one effect. `attempts` is how often the operation was begun in the end, `asked` whether a person had to say.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Case:
    """A worker dies at `point` of an effect of this `kind` (after one died at `first`, where that is said)."""

    point: str
    when: str
    kind: str
    then: str
    attempts: int = 1
    asked: bool = False
    first: str | None = None


BEFORE, WRITTEN, SENT, SAID = "intent.before", "send.before", "send.after", "outcome.after"
_ALL = ("lookup", "keyed", "ask")
CASES: tuple[Case, ...] = (
    *(Case(BEFORE, "before anything is written down", kind, "the next owner begins it") for kind in _ALL),
    *(
        Case(point, when, kind, then, attempts=2, asked=kind == "ask")
        for point, when in (("intent.after", "written down, not sent"), (WRITTEN, "about to be sent"))
        for kind, then in (
            ("lookup", "the remote does not know it; once it cannot arrive any more it is sent"),
            ("keyed", "sent again under the same id"),
            ("ask", "a person says that it did not happen; then it is sent"),
        )
    ),
    *(
        Case(point, when, kind, then, attempts, asked=kind == "ask")
        for point, when in ((SENT, "sent, and no answer kept"), ("outcome.before", "answered, and the answer not written down"))
        for kind, then, attempts in (
            ("lookup", "the remote knows it: what it says is the outcome", 1),
            ("keyed", "sent again under the same id, which the remote knows", 2),
            ("ask", "a person says that it happened", 1),
        )
    ),
    *(Case(SAID, "its outcome is written down", kind, "the next owner is answered and goes on") for kind in _ALL),
    *(
        Case(point, when, "lookup", "the next owner looks again", first=SENT)
        for point, when in (
            ("find.before", "in doubt, about to be looked up"),
            ("find.after", "looked up, and the outcome not written down"),
        )
    ),
)
EFFECT_OF = {"lookup": ("refund", "ticket"), "keyed": ("mail",), "ask": ("letter",)}
"""The lab's effects of each kind."""


def table() -> str:
    """The failure cases as Markdown."""
    rows = [f"| {case.when} | `{case.kind}` | {case.then} |" for case in CASES]
    return "\n".join(["| a worker dies when it is | kind | and then |", "| --- | --- | --- |", *rows])
