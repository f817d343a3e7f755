"""Many submissions whose check takes a second, at once, while another task is written all the time."""

import threading
import time
from pathlib import Path

from bench.python_api import BY, again, drafting, opened
from bench.table import Line
from pointsman import Event, Machine, NonBlank, Pointsman, State, Task, Tasks, Verdict, check, owner

SUBMISSIONS = 64
JUDGE_S = 1.0


def takes_a_second(text: str) -> Verdict:
    """Pass after a second, as a slow judge would."""
    time.sleep(JUDGE_S)
    return Verdict(True, "judged")


class Judged(Machine, name="judged"):
    """One submission, judged by a slow check."""

    version = 1

    title: NonBlank
    text: str | None = None

    waiting = State(initial=True)
    writing = State()
    finished = State(final=True)
    given_up = State(final=True, outcome="failed")

    judged = check(takes_a_second)

    claim = Event(waiting >> writing, acquires=True)
    submit = Event(writing >> finished, by=owner, sets="text", requires=judged, otherwise=writing)
    give_up = Event(writing >> given_up, by=owner)


def figures(folder: Path) -> list[Line]:
    with opened(folder, machines=[Tasks, Judged]) as pm:
        took, others = submissions(pm)
    p99 = sorted(others)[int(0.99 * len(others))]
    return [
        Line(f"{SUBMISSIONS} submissions at once, the check takes {JUDGE_S:g} s", f"{took:.2f} s", aim="≤ 1.3 s"),
        Line("other calls meanwhile, p99", f"{1000 * p99:.1f} ms", f"{len(others):,} calls", aim="≤ 50 ms"),
    ]


def submissions(pm: Pointsman) -> tuple[float, list[float]]:
    """Seconds until all submissions are answered, and the seconds each other call took meanwhile."""
    tasks = [_claimed(pm) for _ in range(SUBMISSIONS)]
    gate = threading.Barrier(SUBMISSIONS + 1)

    def submit(task: Task) -> None:
        gate.wait()
        pm.propose(task.id, "submit", {"text": f"the text of {task.id}"}, by=BY, epoch=task.epoch)

    threads = [threading.Thread(target=submit, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    other = again(pm, drafting(pm))
    gate.wait()
    began = time.perf_counter()
    others: list[float] = []
    while any(thread.is_alive() for thread in threads):
        asked = time.perf_counter()
        other()
        others.append(time.perf_counter() - asked)
    return time.perf_counter() - began, others


def _claimed(pm: Pointsman) -> Task:
    task = pm.create("judged", {"title": "One"}, by=BY)
    claimed = pm.claim("judged", by=BY, id=task.id)
    assert claimed is not None
    return claimed
