"""A machine whose tasks wait for one another, and short words for what happens to them."""

from typing import Any

from pointsman import Event, Machine, Pointsman, Principal, Retry, State, Task, minutes, owner

OWNER, OTHER = "worker-a", "worker-b"
OLGA = Principal("olga", kind="person", roles=frozenset({"operator"}))


class Parts(Machine, name="parts"):
    name: str = ""
    retry = Retry(tries=1)
    max_children = 4
    max_depth = 2
    open = State(initial=True)
    work = State(lease=minutes(10))
    done = State(final=True)
    failed = State(final=True, outcome="failed")
    dropped = State(final=True, outcome="cancelled")
    take = Event(open >> work, acquires=True)
    note = Event(work >> work)
    finish = Event(work >> done, by=owner)
    fail = Event((open | work) >> failed)


def make(pm: Pointsman, name: str = "", *blocked_by: Task | tuple[Task, str], **terms: Any) -> Task:
    """A task that waits for others, each with a fate unless it is `block`."""
    waits = [item if isinstance(item, tuple) else (item, "block") for item in blocked_by]
    wanted = [{"task": task.id, "on_failure": fate} for task, fate in waits]
    return pm.create("parts", {"name": name}, by="ann", blocked_by=wanted, **terms)


def take(pm: Pointsman, task: Task, by: str = OWNER) -> Task:
    taken = pm.claim("parts", by=by, id=task.id)
    assert taken is not None
    return taken


def finish(pm: Pointsman, task: Task) -> Task:
    taken = take(pm, task)
    return pm.propose(task.id, "finish", by=OWNER, epoch=taken.epoch)


def fail(pm: Pointsman, task: Task) -> Task:
    return pm.propose(task.id, "fail", by="ann")


def park(pm: Pointsman, task: Task) -> Task:
    """Given back once, which is too often here."""
    taken = take(pm, task)
    pm.release(task.id, by=OWNER, epoch=taken.epoch)
    return pm.get(task.id)


def parent(pm: Pointsman, **terms: Any) -> Task:
    return take(pm, make(pm, "parent", **terms))


def batch(pm: Pointsman, under: Task | None, *items: dict[str, Any], **said: Any) -> list[Task]:
    """A batch of its owner's, if it has a parent."""
    mine = {} if under is None else {"parent": under.id, "epoch": under.epoch}
    return pm.create_batch([{"fields": {}, **item} for item in items], by=OWNER, machine="parts", **mine, **said)


def states(pm: Pointsman, *tasks: Task) -> list[str]:
    return [pm.get(task.id).state for task in tasks]
