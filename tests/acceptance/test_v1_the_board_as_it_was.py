"""P17 over HTTP, in small: the board at every feed number equals the one that was recorded when that number was the
last, and every version of a task equals what a reader saw then."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from acceptance.process import serving
from acceptance.v1 import Speaker

VOLATILE = {"allowed": [], "lease": None, "waiting": None}
"""Computed for the reader of the present."""


def test_the_past_is_what_was_seen(tmp_path: Path) -> None:
    with serving(tmp_path) as served, Speaker(served.url) as speaker:
        boards, versions = dict[int, Any](), dict[tuple[str, int], Any]()
        for state in ("queued", "claimed", "done", "awaiting_approval", "approved"):
            for step in _steps(speaker, state):
                page = speaker.told("/v1/tasks")
                boards[page["as_of"]] = page["tasks"]
                versions[step["id"], step["version"]] = speaker.told(f"/v1/tasks/{step['id']}")
        assert sorted(boards) == list(range(1, len(boards) + 1)), "one board for every number"
        for number, tasks in boards.items():
            past = speaker.told(f"/v1/tasks?at={quote(f'#{number}')}")
            assert past == {"tasks": [task | VOLATILE for task in tasks], "next": None, "as_of": number}
        for (id, version), task in versions.items():
            assert speaker.told(f"/v1/tasks/{id}?version={version}") == task | VOLATILE
            assert speaker.told(f"/v1/tasks/{id}?at={quote(task['updated_at'])}") == task | VOLATILE


def _steps(speaker: Speaker, state: str) -> Any:
    """A task led to a state, with a pause after each step; two steps are refused, and must change nothing."""
    task = speaker.create().body
    yield task
    for event, by, guard in WAY[: STATES.index(state)]:
        assert speaker.propose(task["id"], "complete", "nobody", {"epoch": 9}).status == 409
        task = speaker.move(task["id"], event, by, **guard(task))
        yield task


STATES = ("queued", "claimed", "drafting", "awaiting_approval", "approved", "done")
DRAFT = "Release notes, with what changed in version two."
WAY: tuple[tuple[str, str, Any], ...] = (
    ("claim", "bob", lambda task: {}),
    ("start_draft", "bob", lambda task: {"epoch": 1}),
    ("request_approval", "bob", lambda task: {"epoch": 1, "args": {"draft": DRAFT}}),
    ("approve", "rita", lambda task: {"digest": task["digest"]}),
    ("complete", "bob", lambda task: {"epoch": 1}),
)
