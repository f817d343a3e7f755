"""What many tests share: drafts that pass and fail, and tasks brought to a state through the public door."""

from pointsman import Pointsman, Task

BRIEF = "Summarise the scheduler changes"
GOOD = "Release notes: the scheduler now shares its queue between six agents without double claims."
BAD = "too short"
OWNER, OTHER, REVIEWER = "worker-a", "worker-b", "rita"


def create(pm: Pointsman, title: str = "Release notes") -> Task:
    return pm.create("tasks", {"title": title, "brief": BRIEF}, by="ann")


def claimed(pm: Pointsman, owner: str = OWNER) -> Task:
    task = pm.claim("tasks", by=owner, id=create(pm).id)
    assert task is not None
    return task


def drafting(pm: Pointsman, owner: str = OWNER) -> Task:
    task = claimed(pm, owner)
    return pm.propose(task.id, "start_draft", by=owner, epoch=task.epoch)


def submitted(pm: Pointsman, owner: str = OWNER, draft: str = GOOD) -> Task:
    task = drafting(pm, owner)
    return pm.propose(task.id, "request_approval", {"draft": draft}, by=owner, epoch=task.epoch)


def approved(pm: Pointsman, owner: str = OWNER) -> Task:
    task = submitted(pm, owner)
    return pm.propose(task.id, "approve", by=REVIEWER, digest=task.digest)


def failed(pm: Pointsman, owner: str = OWNER) -> Task:
    task = drafting(pm, owner)
    return pm.propose(task.id, "fail", {"review_note": "no time"}, by=owner, epoch=task.epoch)
