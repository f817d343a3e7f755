"""The main job as a story. Every step is really proposed to the engine and told with what the engine answered."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import Any

from pointsman.engine.pointsman import Pointsman
from pointsman.errors import Refusal, Refused
from pointsman.kernel.task import Task
from pointsman.types import Fields

AGENTS = tuple(f"agent-{n}" for n in range(1, 9))
OWNER = "the owner"
WANTED: Fields = {"title": "Release notes for 2.1", "brief": "Tell readers what changed in the queue"}
POOR = "Done."
GOOD = "Release notes for 2.1: the queue hands each task to one agent."
BETTER = "Release notes for 2.1: the queue hands each task to one agent, so no work is done twice."
NOTE = "Say what readers gain."
Answer = Task | Refusal


@dataclass(frozen=True, slots=True)
class Ask:
    """A proposal to come. `read` counts the drafts handed in when the asker read the task; a decision names that one."""

    title: str
    who: str
    event: str
    args: Fields = field(default_factory=dict[str, Any])
    read: int | None = None


ASKS = (
    Ask("The winner starts to draft.", OWNER, "start_draft"),
    Ask("A poor draft. The check says no, and why; draft and evidence are kept.", OWNER, "request_approval", {"draft": POOR}),
    Ask("A better draft passes, and now waits for a reviewer.", OWNER, "request_approval", {"draft": GOOD}),
    Ask("The owner tries to approve its own work.", OWNER, "approve", read=1),
    Ask("Rita reads the draft and sends it back.", "rita", "reject", {"review_note": NOTE}, read=1),
    Ask("The owner hands in a new draft.", OWNER, "request_approval", {"draft": BETTER}),
    Ask("Sam approves the draft he read, but that text has been replaced.", "sam", "approve", read=1),
    Ask("Rita approves exactly the text she was shown.", "rita", "approve", read=2),
    Ask("The owner completes what was approved.", OWNER, "complete"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """What happened: who asked for what, and what each of them was answered."""

    title: str
    who: str
    asks: str
    answers: tuple[tuple[str, Answer], ...]

    def as_json(self) -> dict[str, Any]:
        answers = [{"who": who, **_plain(answer)} for who, answer in self.answers]
        return {"title": self.title, "who": self.who, "asks": self.asks, "answers": answers}


def story(pm: Pointsman) -> Iterator[Step]:
    """One task from the queue to done. A refusal is part of the story; any other failure ends it."""
    task = pm.create("tasks", WANTED, by="ann")
    yield Step("Ann puts a task in the queue.", "ann", _spelled("create", WANTED), (("ann", task),))
    race = _race(pm, task.id)
    yield Step("Eight agents claim it at the same moment. One gets it.", f"{AGENTS[0]} to {AGENTS[-1]}", "claim", race)
    yield from _asked(pm, next(answer for _, answer in race if isinstance(answer, Task)))


def _race(pm: Pointsman, id: str) -> tuple[tuple[str, Answer], ...]:
    """All claim at one barrier; the winner comes first in what is answered."""
    start = Barrier(len(AGENTS))

    def claim(name: str) -> tuple[str, Answer]:
        start.wait()
        try:
            task = pm.claim("tasks", by=name, id=id)
        except Refused as exc:
            return name, exc.refusal
        assert task is not None, "a claim by id is answered with the task or refused"
        return name, task

    with ThreadPoolExecutor(len(AGENTS)) as pool:
        return tuple(sorted(pool.map(claim, AGENTS), key=lambda answer: isinstance(answer[1], Refusal)))


def _asked(pm: Pointsman, task: Task) -> Iterator[Step]:
    drafts: list[str] = []
    for ask in ASKS:
        who = str(task.owner) if ask.who == OWNER else ask.who
        digest = drafts[ask.read - 1] if ask.read else None
        answer = _answer(pm, task, ask, who, digest)
        if isinstance(answer, Task) and ask.event == "request_approval":
            drafts.append(answer.digest)
        yield Step(ask.title, who, _spelled(ask.event, ask.args, digest), ((who, answer),))


def _answer(pm: Pointsman, task: Task, ask: Ask, who: str, digest: str | None) -> Answer:
    epoch = task.epoch if ask.who == OWNER and not ask.read else None
    try:
        return pm.propose(task.id, ask.event, ask.args, by=who, epoch=epoch, digest=digest)
    except Refused as exc:
        return exc.refusal


def _spelled(event: str, args: Fields, digest: str | None = None) -> str:
    content = f" digest={digest[:12]}…" if digest else ""
    return event + content + "".join(f' {name}="{value}"' for name, value in args.items())


def _plain(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Refusal):
        return {"accepted": False, **answer.as_json()}
    return {
        "accepted": True,
        "task": answer.id,
        "state": answer.state,
        "version": answer.version,
        "owner": answer.owner,
        "digest": answer.digest,
    }
